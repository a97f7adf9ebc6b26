"""Canonical messages as the contents Gemini takes.

The API's rules: roles alternate and the first turn is the user's, no turn is empty, the results of all calls of a turn
are in the one after it and name their function. Thinking goes back where Gemini signed it, and nowhere else: other
providers' signatures are refused. Newer models refuse calls that nobody signed, but for the word Google documents for
calls that another model made, or whose signature got lost.
"""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import (
    GEMINI_SIGNED,
    Audio,
    File,
    Foreign,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from proxy.errors import BadRequest
from proxy.gemini_format.media import inexpressible, media_part
from proxy.gemini_format.models import signs_calls
from proxy.gemini_format.shapes import UNREADABLE, allowed_name

JSON = dict[str, Any]

#: Stands for the user's turn when a conversation has none at its beginning.
OPENING = "Begin."

#: Google's own word for a call that has no signature ("Thought signatures", FAQ).
NO_SIGNATURE = "skip_thought_signature_validator"


def contents(messages: list[Message], model: str) -> list[JSON]:
    """Raises BadRequest naming a part that Gemini cannot be sent."""
    written: list[JSON] = []
    names: dict[str, str] = {}
    for message in messages:
        role = "model" if message.role == "assistant" else "user"
        parts = [inner for part in message.parts for inner in _parts(part, names)]
        if not parts:
            continue
        if written and written[-1]["role"] == role:
            written[-1]["parts"] += parts
        else:
            written.append({"role": role, "parts": parts})
    for turn in written:
        if turn["role"] == "user":
            turn["parts"].sort(key=lambda part: "functionResponse" not in part)
        elif signs_calls(model):
            _sign(turn["parts"])
    if not written or written[0]["role"] != "user":
        written.insert(0, {"role": "user", "parts": [{"text": OPENING}]})
    return written


def _sign(parts: list[JSON]) -> None:
    """Only the first of parallel calls has a signature."""
    first = next((part for part in parts if "functionCall" in part), None)
    if first is not None:
        first.setdefault("thoughtSignature", NO_SIGNATURE)


def _parts(part: Any, names: dict[str, str]) -> list[JSON]:
    """What one part becomes; `names` are the functions of the calls so far, by call id."""
    if isinstance(part, Text):
        return [{"text": part.text}] if part.text else []
    if isinstance(part, Thinking):
        return _thinking(part)
    if isinstance(part, ToolCall):
        names[part.id] = part.name
        return [_call(part)]
    if isinstance(part, ToolResult):
        return _result(part, names)
    if isinstance(part, Image | File | Audio):
        written = media_part(part)
        return [] if written.get("text") == "" else [written]
    raise inexpressible(f"a block of type '{part.type if isinstance(part, Foreign) else type(part).__name__.lower()}'")


def _thinking(part: Thinking) -> list[JSON]:
    """A signature without thinking came with a part of the answer's text, or with an empty one."""
    if not part.signature or not part.signature.startswith(GEMINI_SIGNED):
        return []
    written: JSON = {"text": part.text, "thoughtSignature": part.signature.removeprefix(GEMINI_SIGNED)}
    if part.text:
        written["thought"] = True
    return [written]


def _call(call: ToolCall) -> JSON:
    function = {"id": call.id, "name": allowed_name(call.name), "args": _arguments(call.arguments)}
    written: JSON = {"functionCall": function}
    if call.signature:
        written["thoughtSignature"] = call.signature
    return written


def _arguments(text: str) -> JSON:
    """The object that `args` must be. What a model wrote that is none stays readable under `_raw`."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except UNREADABLE:
        return {"_raw": text}
    return value if isinstance(value, dict) else {"_raw": text}


def _result(result: ToolResult, names: dict[str, str]) -> list[JSON]:
    """The result as text, by the names that Google gives a meaning; what is no text stands beside it."""
    name = names.get(result.call_id) or result.name
    if not name:
        raise BadRequest(f"The tool result '{result.call_id[:100]}' has no call before it.", param="messages")
    inner = [written for part in result.content for written in _parts(part, names)]
    text = "\n".join(part["text"] for part in inner if "text" in part)
    response = {"error" if result.is_error else "output": text}
    function = {"id": result.call_id, "name": allowed_name(name), "response": response}
    return [{"functionResponse": function}, *(part for part in inner if "text" not in part)]
