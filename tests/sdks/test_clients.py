"""Clients that people use, unmodified, each in a process of its own: only base URL and key say that it is the gateway.

Every client goes to a provider of its own dialect and to one of the other, so that each is also translated.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Stage
from tests.fakes.provider import Request
from tests.sdks.weather import AFTER_RESULT, ARGUMENTS, GREETING, RESULT, USAGE

# The first test also installs the clients.
pytestmark = [pytest.mark.sdk, pytest.mark.slow, pytest.mark.timeout(600)]

SCRIPTS = Path(__file__).parent / "python"
CLIENT_SECONDS = 90

# A script, and what it is told to speak when it can speak more than one API.
PYTHON = [
    "openai",
    "anthropic",
    "langchain_openai chat",
    "langchain_openai responses",
    "langchain_anthropic",
    "llama_index",
]
NODE = ["openai", "anthropic", "vercel_ai openai-chat", "vercel_ai openai-responses", "vercel_ai anthropic"]

either_provider = pytest.mark.parametrize("model", ["gpt", "claude"])


def ask(command: list[str], stage: Stage, model: str, home: Path, **settings: str) -> dict[str, Any]:
    """What the client saw. It gets nothing of the caller's environment: no proxy, no key, no configuration."""
    given = {"GATEWAY_URL": stage.gateway.url, "GATEWAY_KEY": stage.key, "MODEL": model, "HOME": str(home), **settings}
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **given},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=CLIENT_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}\n{stage.gateway.log()[-2000:]}"
    saw: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return saw


def sent(stage: Stage, model: str, speaks: str = "") -> list[Request]:
    """What the provider of `model` got, all of it at the API it is meant for; the other one got nothing."""
    asked, other = (stage.openai, stage.anthropic) if model == "gpt" else (stage.anthropic, stage.openai)
    openai_path = "/v1/responses" if "responses" in speaks else "/v1/chat/completions"
    assert {request.path for request in asked.requests} == {openai_path if model == "gpt" else "/v1/messages"}
    assert not other.requests
    return asked.requests


def assert_went_round(saw: dict[str, Any], requests: list[Request]) -> None:
    assert saw["chat"] == "".join(GREETING)
    assert saw["usage"] == list(USAGE)
    assert saw["stream"] == GREETING
    assert saw["call"] == {"name": "get_weather", "arguments": ARGUMENTS}
    assert saw["answer"] == "".join(AFTER_RESULT)
    chat, stream, call, result = (request.json for request in requests)
    assert not chat.get("stream")
    assert stream["stream"] is True
    assert call["stream"] is True
    assert "get_weather" in json.dumps(call["tools"])
    assert RESULT in json.dumps(result.get("messages") or result["input"])


@either_provider
@pytest.mark.parametrize("name", PYTHON)
def test_a_python_client_chats_streams_and_calls_a_tool(
    name: str, model: str, stage: Stage, client_python: Path, tmp_path: Path
) -> None:
    script, _, speaks = name.partition(" ")
    saw = ask([str(client_python), str(SCRIPTS / f"ask_{script}.py")], stage, model, tmp_path, SPEAKS=speaks)
    assert_went_round(saw, sent(stage, model, speaks))


@either_provider
def test_instructor_gets_structured_answers_by_tool_call_and_by_schema(
    model: str, stage: Stage, client_python: Path, tmp_path: Path
) -> None:
    saw = ask([str(client_python), str(SCRIPTS / "ask_instructor.py")], stage, model, tmp_path)
    assert saw["chat"] == "".join(GREETING)
    assert saw["usage"] == list(USAGE)
    assert saw["stream"][-1] == ARGUMENTS
    assert saw["call"] == {"name": "Place", "arguments": ARGUMENTS}
    assert saw["answer"] == ARGUMENTS
    bodies = [request.json for request in sent(stage, model)]
    assert [bool(body.get("stream")) for body in bodies] == [False, True, False, False]


@either_provider
@pytest.mark.parametrize("name", NODE)
def test_a_node_client_chats_streams_and_calls_a_tool(
    name: str, model: str, stage: Stage, node_folder: Path, tmp_path: Path
) -> None:
    script, _, speaks = name.partition(" ")
    saw = ask(["node", str(node_folder / f"ask_{script}.mjs")], stage, model, tmp_path, SPEAKS=speaks)
    assert_went_round(saw, sent(stage, model, speaks))
