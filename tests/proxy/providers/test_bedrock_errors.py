"""What Bedrock's errors mean."""

import json

import pytest

from proxy.context import ProviderReply
from proxy.errors import UpstreamFault
from proxy.providers.bedrock import BedrockAdapter

CORAL = ":http://internal.amazon.com/coral/com.amazon.bedrock/"


def fault(status: int, name: str = "", message: str = "no", body: bytes | None = None, **headers: str) -> UpstreamFault:
    told = {"x-amzn-errortype": name + CORAL} if name else {}
    told |= {key.replace("_", "-"): value for key, value in headers.items()}
    return BedrockAdapter().parse_error(
        ProviderReply(status, told, json.dumps({"message": message}).encode() if body is None else body)
    )


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "ValidationException", "request"),
        (429, "ThrottlingException", "rate_limit"),
        (400, "ThrottlingException", "rate_limit"),
        (400, "ServiceQuotaExceededException", "rate_limit"),
        (429, "ModelNotReadyException", "rate_limit"),
        (408, "ModelTimeoutException", "server"),
        (424, "ModelErrorException", "server"),
        (500, "InternalServerException", "server"),
        (503, "ServiceUnavailableException", "server"),
        (403, "AccessDeniedException", "credential"),
        (403, "UnrecognizedClientException", "credential"),
        (403, "InvalidSignatureException", "credential"),
        (400, "ExpiredTokenException", "credential"),
        (403, "MissingAuthenticationTokenException", "credential"),
        (404, "ResourceNotFoundException", "not_found"),
        (404, "", "not_found"),
        (403, "SomethingNewException", "credential"),
        (418, "", "server"),
    ],
)
def test_an_error_is_known_by_the_name_in_its_header_else_by_its_status(status, name, kind):
    found = fault(status, name)
    assert (found.kind, found.status, found.message) == (kind, status, "no")


@pytest.mark.parametrize("member", ["__type", "code"])
@pytest.mark.parametrize("prefix", ["", "com.amazon.coral.availability#"])
def test_an_error_is_known_by_the_name_in_its_body(member, prefix):
    body = json.dumps({member: f"{prefix}ThrottlingException", "Message": "slow down"}).encode()
    found = fault(400, body=body)
    assert (found.kind, found.message) == ("rate_limit", "slow down")


@pytest.mark.parametrize(
    "message",
    [
        "Input is too long for requested model.",
        "The model returned errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length.",
        "The model returned the following errors: prompt is too long: 215000 tokens > 200000 maximum",
        "This model's maximum context length is 8192 tokens.",
        "Too many input tokens. Max input tokens: 8192",
    ],
)
def test_a_prompt_that_is_too_long_has_a_code_of_its_own(message):
    found = fault(400, "ValidationException", message)
    assert (found.kind, found.code, found.message) == ("request", "context_length_exceeded", message)


@pytest.mark.parametrize(
    "message",
    [
        "The provided model identifier is invalid.",
        "Invocation of model ID x.y with on-demand throughput isn’t supported. Retry with an inference profile.",
        "This model version has reached the end of its life.",
        "The inference profile that was named could not be used: it does not exist.",
    ],
)
def test_a_complaint_about_the_model_is_the_operators(message):
    assert fault(400, "ValidationException", message).kind == "not_found"


@pytest.mark.parametrize(
    "message",
    [
        "Operation not allowed",
        "You don't have access to the model with the specified model ID.",
        "Access to this model is not available for channel program accounts.",
    ],
)
def test_a_complaint_about_the_account_is_the_operators(message):
    assert fault(400, "ValidationException", message).kind == "credential"


@pytest.mark.parametrize(
    "message",
    [
        "The maximum tokens you requested exceeds the model limit of 4096.",
        "This model doesn't support tool use.",
        "messages: roles must alternate",
    ],
)
def test_a_complaint_about_the_request_is_passed_on(message):
    found = fault(400, "ValidationException", message)
    assert (found.kind, found.code, found.message) == ("request", None, message)


def test_how_long_to_wait_is_kept():
    assert fault(429, "ThrottlingException", retry_after="3").retry_after_ms == 3000


def test_a_path_that_aws_does_not_know():
    body = json.dumps({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"})
    assert fault(404, body=body.encode()).kind == "not_found"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"<html>Bad gateway</html>", ""),
        (b"upstream  connect\nerror", "upstream connect error"),
        (b"{", ""),
        (b"[1]", ""),
        (b'"text"', "text"),
        (b'{"message": 3}', ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_bodies_of_any_kind_are_borne(body, message):
    found = fault(502, body=body)
    assert (found.kind, found.message) == ("server", message)


def test_a_message_is_kept_to_what_a_provider_may_say():
    assert len(fault(400, "ValidationException", "x" * 9000).message) == 2000
