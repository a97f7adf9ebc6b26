"""Reading a response of OpenAI's Responses API: whole, or the one inside a stream's last event."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import FinishReason
from proxy.context import Answer, Call
from proxy.errors import UpstreamFault
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.responses_shapes import is_sealed, read_usage

JSON = dict[str, Any]

#: `status` of a response that is an answer. Some providers leave it out.
_GOOD = ("completed", "incomplete", None)

#: Members of output items, and of their parts, that hold what the model wrote.
_WRITTEN = ("text", "refusal", "arguments", "input", "name", "code")


class _Item(msgspec.Struct):
    type: str | None = None


class Response(msgspec.Struct):
    """The members that metering needs; whatever else there is stays undecoded."""

    output: list[_Item] | None = None
    status: str | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None


_decode = msgspec.json.Decoder(Response).decode


def own_body(call: Call) -> JSON:
    """The client's own body. Reasoning that other providers signed is left out: OpenAI cannot read it."""
    body = dict(call.body)
    items = body.get("input")
    if isinstance(items, list) and any(is_sealed(item.get("encrypted_content")) for item in items):
        body["input"] = [item for item in items if not is_sealed(item.get("encrypted_content"))]
    if call.output_cap is not None and body.get("max_output_tokens") is None:
        body["max_output_tokens"] = call.output_cap
    return body


def whole_response(body: bytes) -> Answer:
    """A good answer that the client gets as it is. Raises UpstreamFault when it is none."""
    try:
        response = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UpstreamFault("protocol", "the answer is not a response", status=200) from None
    finish = finish_of(response)
    usage = read_usage(response.usage)
    produced = written_characters(msgspec.json.decode(body)["output"]) if usage is None else 0
    return Answer(body=body, usage=usage, finish_reason=finish, produced_chars=produced)


def finish_of(response: Response) -> FinishReason:
    """Why the model stopped. Raises UpstreamFault for a response that failed or never ended."""
    if response.error or response.status == "failed":
        raise fault_of_failure(response.error)
    if response.output is None or response.status not in _GOOD:
        raise UpstreamFault("protocol", "a response without an answer", status=200)
    if response.status == "incomplete":
        details = response.incomplete_details
        reason = details.get("reason") if isinstance(details, dict) else None
        return "content_filter" if reason == "content_filter" else "length"
    called = any(item.type in ("function_call", "custom_tool_call") for item in response.output)
    return "tool_calls" if called else "stop"


def fault_of_failure(error: Any) -> UpstreamFault:
    """What the error of a failed response means: codes about the prompt, its images or a policy are the caller's."""
    if not error:
        return UpstreamFault("server", "the response failed", status=200)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and ("image" in code or code == "invalid_prompt" or code.endswith("policy")):
        return fault_of_error({**error, "status_code": 400})
    return fault_of_error(error)


def written_characters(value: Any) -> int:
    """Characters of all texts, reasoning, refusals, arguments and names in output items."""
    if isinstance(value, list):
        return sum(map(written_characters, value))
    if not isinstance(value, dict):
        return 0
    written = sum(len(value[name]) for name in _WRITTEN if isinstance(value.get(name), str))
    return written + sum(written_characters(value.get(name)) for name in ("content", "summary"))
