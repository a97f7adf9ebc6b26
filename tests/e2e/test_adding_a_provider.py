"""A provider is one file, a vendor one row: what CONTRIBUTING.md walks through is done here and called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import openai
import pytest
import yaml

from tests.conftest import ROOT
from tests.fakes.gateway import Gateway
from tests.fakes.provider import FakeProvider, Reply, Request, openai_answer

pytestmark = pytest.mark.slow

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ASK: list[Any] = [{"role": "user", "content": "Hello"}]


def snippet(language: str) -> str:
    (found,) = [code for code in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if "parrot" in code]
    return str(found)


def parrot(request: Request) -> Reply:
    """Parrot's server: it repeats the last line."""
    if request.headers.get("x-parrot-key") != "parrot-secret":
        return Reply(status=401, body=b"who are you?")
    text = request.json["lines"][-1]["text"]
    last = {"ended": "end", "read": 7, "said": 3}
    if not request.json["stream"]:
        return Reply(body=json.dumps({"text": text, **last}).encode())
    pieces = [json.dumps({"text": letter}).encode() + b"\n" for letter in text]
    return Reply(pieces=[*pieces, json.dumps(last).encode() + b"\n"])


class Added:
    """A gateway that finds one more adapter in the folder's path, and one more row."""

    def __init__(self, gateway: Gateway, bird: FakeProvider, vendor: FakeProvider) -> None:
        self.gateway, self.bird, self.vendor = gateway, bird, vendor
        self.key = gateway.create_key("acme")["secret"]


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Added]:
    folder = tmp_path_factory.mktemp("added")
    (folder / "adapters").mkdir()
    (folder / "adapters" / "parrot.py").write_text(snippet("python"))
    path = f"import proxy.providers\nproxy.providers.__path__.append({str(folder / 'adapters')!r})\n"
    (folder / "sitecustomize.py").write_text(path)
    bird, vendor = FakeProvider(), FakeProvider()
    bird.always, vendor.always = parrot, openai_answer("from a row")
    config = yaml.safe_load(snippet("yaml"))
    config["providers"][0]["base_url"] = bird.url
    config["providers"].append({"name": "vendor", "kind": "openai_compatible", "base_url": f"{vendor.url}/v1"})
    config["models"].append({"name": "row", "targets": [{"provider": "vendor", "model": "m"}]})
    config["prices"].append({"provider": "vendor", "model": "m", "input": "1.00", "output": "1.00"})
    config["tenants"] = [{"slug": "acme", "name": "Acme"}]
    gateway = Gateway(folder, PYTHONPATH=f"{folder}:{ROOT}", PARROT_KEY="parrot-secret").migrate().apply(config)
    try:
        yield Added(gateway.serve(), bird, vendor)
    finally:
        gateway.stop()
        bird.stop()
        vendor.stop()


def test_the_file_answers_openais_client(added: Added) -> None:
    with httpx2.Client(trust_env=False) as http:
        client = openai.OpenAI(api_key=added.key, base_url=f"{added.gateway.url}/v1", http_client=http)
        answer = client.chat.completions.create(model="bird", messages=ASK, max_tokens=9)
        assert answer.choices[0].message.content == "Hello"
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 3)
        stream = client.chat.completions.create(model="bird", messages=ASK, stream=True)
        pieces = [chunk.choices[0].delta.content for chunk in stream]
        assert [piece for piece in pieces if piece] == list("Hello")
    first = added.bird.requests[0]
    assert first.path == "/say"
    assert first.json == {"voice": "grey", "lines": [{"who": "user", "text": "Hello"}], "stream": False, "limit": 9}


def test_the_file_answers_anthropics_client_and_names_what_it_cannot_say(added: Added) -> None:
    image: list[Any] = [
        {
            "role": "user",
            "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}],
        }
    ]
    with httpx2.Client(trust_env=False) as http:
        client = anthropic.Anthropic(api_key=added.key, base_url=added.gateway.url, http_client=http, max_retries=0)
        with client.messages.stream(model="bird", messages=ASK, max_tokens=9) as stream:
            assert stream.get_final_text() == "Hello"
        with pytest.raises(anthropic.BadRequestError) as caught:
            client.messages.create(model="bird", messages=image, max_tokens=9)
    assert "text only" in str(caught.value)


def test_a_vendor_is_a_row(added: Added) -> None:
    with httpx2.Client(trust_env=False) as http:
        client = openai.OpenAI(api_key=added.key, base_url=f"{added.gateway.url}/v1", http_client=http)
        answer = client.chat.completions.create(model="row", messages=ASK)
        assert answer.choices[0].message.content == "from a row"
    (request,) = added.vendor.requests
    assert (request.path, request.json["model"]) == ("/v1/chat/completions", "m")
