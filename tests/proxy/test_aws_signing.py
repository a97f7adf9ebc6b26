"""Requests to AWS are authorized: by a signature that AWS would accept, or by a token. No credentials is no hang."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from proxy import aws_signing
from proxy.aws_signing import AwsSigner
from proxy.canonical import ChatRequest, Message, Text
from proxy.context import ProviderRequest
from proxy.errors import UpstreamFault
from proxy.providers.bedrock import BedrockAdapter
from proxy.upstream import Timeouts, Upstream, read_reply
from tests.fakes.aws import Raw, assume_role_answer, fake_aws, instance_metadata, signature_problem
from tests.proxy.bedrock_wire import CLAUDE, call_of, target

KEY, SECRET = "AKIAEXAMPLEEXAMPLE00", "secret/with+signs"
SCOPE = ("eu-west-1", "bedrock")
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3d4e5f6"
REQUEST = ProviderRequest("https://x/model/m/converse", {"content-type": "application/json"}, b"{}", "eu-west-1")


@pytest.fixture(autouse=True)
def nowhere(monkeypatch, tmp_path):
    """No credentials but those that a test sets."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def static(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def in_minutes(minutes: int) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def signed_by(request: ProviderRequest) -> str:
    """The access key that a request was signed with."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    return headers["authorization"].partition("Credential=")[2].partition("/")[0]


async def refused(signer: AwsSigner) -> str:
    with pytest.raises(UpstreamFault) as fault:
        await signer.sign(REQUEST)
    assert fault.value.kind == "credential"
    assert SECRET not in fault.value.message
    return fault.value.message


def test_the_check_of_these_tests_knows_the_published_example():
    """get-vanilla of AWS's test suite for Signature Version 4."""
    authorization = (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z", "authorization": authorization}
    request, scope = Raw("GET", "/", headers, b""), ("us-east-1", "service")
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    assert signature_problem(request, "AKIDEXAMPLE", secret, scope) is None
    assert signature_problem(request, "AKIDEXAMPLE", secret + "x", scope) is not None


# ------------------------------------------------------------------ what is sent


@pytest.mark.parametrize("model", [CLAUDE, PROFILE, "plain-model", "us.amazon.nova-lite-v1:0"])
@pytest.mark.parametrize("stream", [False, True])
async def test_aws_would_accept_what_is_sent(static, model, stream):
    upstream = Upstream()
    await upstream.start()
    chat = ChatRequest(messages=[Message("user", [Text("Grüße 🌍")])])
    try:
        async with fake_aws(lambda request: (200, b"{}")) as fake:
            where = target(model, base_url=f"{fake.url}/base/path", headers={"X-Team": "two  spaces"})
            request = BedrockAdapter().build_request(call_of(chat, stream=stream), where)
            await read_reply(await upstream.open(request, Timeouts(5, 5, 5, 5)), 1000)
        (got,) = fake.requests
        assert signature_problem(got, KEY, SECRET, SCOPE) is None
        assert ":" not in got.target, "the path was changed on its way"
        assert "x-team" in got.headers["authorization"]
    finally:
        await upstream.close()


async def test_a_token_of_the_process_goes_before_credentials(static, monkeypatch):
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "token-1\n")
    signed = await AwsSigner().sign(REQUEST)
    assert signed.headers == {"content-type": "application/json", "authorization": "Bearer token-1"}


async def test_a_request_that_needs_no_signature_stays_as_it_is():
    request = ProviderRequest("https://x", {"authorization": "Bearer own"}, b"{}")
    assert await AwsSigner().sign(request) is request


async def test_what_was_signed_is_not_signed_again(static):
    signer = AwsSigner()
    signed = await signer.sign(REQUEST)
    assert await signer.sign(signed) is signed


# ------------------------------------------------------------------ where credentials come from


def role_profile(tmp_path: Path, monkeypatch, sts: str) -> None:
    (tmp_path / "credentials").write_text(f"[base]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text(
        "[profile worker]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\nregion = eu-west-1\n"
    )
    monkeypatch.setenv("AWS_PROFILE", "worker")
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts)


async def test_a_role_is_assumed_once_for_all_who_wait(tmp_path, monkeypatch):
    answer = assume_role_answer("ASIAROLE", "role-secret", "role-token", in_minutes(60))
    async with fake_aws(lambda request: (200, answer)) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        signer = AwsSigner()
        signed = await asyncio.gather(*(signer.sign(REQUEST) for _ in range(20)))
    assert len(sts.requests) == 1
    assert signature_problem(sts.requests[0], KEY, SECRET, ("eu-west-1", "sts")) is None
    assert {signed_by(request) for request in signed} == {"ASIAROLE"}
    assert {request.headers["X-Amz-Security-Token"] for request in signed} == {"role-token"}


async def test_one_who_leaves_does_not_take_the_credentials_from_the_others(tmp_path, monkeypatch):
    answer = assume_role_answer("ASIAROLE", "role-secret", "role-token", in_minutes(60))
    async with fake_aws(lambda request: (200, answer)) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        sts.open.clear()
        signer = AwsSigner()
        leaves, stays = asyncio.create_task(signer.sign(REQUEST)), asyncio.create_task(signer.sign(REQUEST))
        await sts.asked.wait()
        leaves.cancel()
        sts.open.set()
        assert signed_by(await stays) == "ASIAROLE"
    assert leaves.cancelled()
    assert len(sts.requests) == 1


async def test_credentials_that_are_about_to_expire_are_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(aws_signing, "REMEMBER_SECONDS", 0)
    numbers = iter(range(9))

    def answer(request: Raw) -> tuple[int, bytes]:
        number = next(numbers)
        return 200, assume_role_answer(f"ASIA{number}", "s", "t", in_minutes(5 if number == 0 else 60))

    async with fake_aws(answer) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        signer = AwsSigner()
        keys = [signed_by(await signer.sign(REQUEST)) for _ in range(3)]
    assert keys == ["ASIA0", "ASIA1", "ASIA1"]


async def test_credentials_are_used_to_their_end_while_no_new_ones_can_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(aws_signing, "REMEMBER_SECONDS", 0)
    good = assume_role_answer("ASIAROLE", "s", "t", in_minutes(5))
    async with fake_aws(lambda request: (200, good) if len(sts.requests) == 1 else (403, b"<Error/>")) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        signer = AwsSigner()
        assert [signed_by(await signer.sign(REQUEST)) for _ in range(2)] == ["ASIAROLE", "ASIAROLE"]
    assert len(sts.requests) > 1


async def test_an_instance_gives_its_own(monkeypatch):
    async with fake_aws(instance_metadata("ASIAINSTANCE", "s", in_minutes(60))) as metadata:
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        signed = await AwsSigner().sign(REQUEST)
    assert signed_by(signed) == "ASIAINSTANCE"
    assert signed.headers["X-Amz-Security-Token"] == "instance-token"


# ------------------------------------------------------------------ when there are none


async def test_no_credentials_are_the_operators_fault():
    assert await refused(AwsSigner()) == "no AWS credentials: none were found"


async def test_that_there_are_none_is_remembered_for_a_moment(monkeypatch):
    async with fake_aws(lambda request: (404, b"")) as metadata:
        monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        signer = AwsSigner()
        await refused(signer)
        asked = len(metadata.requests)
        await refused(signer)
        assert asked == len(metadata.requests) > 0
        monkeypatch.setattr(aws_signing, "REMEMBER_SECONDS", 0)
        await refused(signer)
    assert len(metadata.requests) > asked


async def test_a_role_that_may_not_be_assumed_is_the_operators_fault(tmp_path, monkeypatch):
    denied = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>secret words</Message></Error></ErrorResponse>"
    async with fake_aws(lambda request: (403, denied)) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        assert await refused(AwsSigner()) == "no AWS credentials: ClientError"


async def test_a_profile_that_is_not_there_is_the_operators_fault(monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert await refused(AwsSigner()) == "no AWS credentials: ProfileNotFound"


async def test_credentials_that_do_not_come_are_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(aws_signing, "WAIT_SECONDS", 0.05)
    answer = assume_role_answer("ASIAROLE", "s", "t", in_minutes(60))
    async with fake_aws(lambda request: (200, answer)) as sts:
        role_profile(tmp_path, monkeypatch, sts.url)
        sts.open.clear()
        signer = AwsSigner()
        assert await refused(signer) == "no AWS credentials: they did not come in time"
        monkeypatch.setattr(aws_signing, "WAIT_SECONDS", 30)
        sts.open.set()
        assert signed_by(await signer.sign(REQUEST)) == "ASIAROLE"


def test_botocore_is_loaded_for_those_who_use_it_only():
    code = "import sys, proxy.upstream, proxy.providers.base as base; base.adapters(); print('botocore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
