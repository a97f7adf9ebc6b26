"""Responses of OpenAI's Responses API: the object, its output items, and a whole answer."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec

from proxy.canonical import ChatResponse, FinishReason, Text, Thinking, ToolCall, Usage
from proxy.context import AnswerFacts, Call
from proxy.openai_format.responses_shapes import sealed_signature, sealed_thinking, usage_object

JSON = dict[str, Any]

#: Why an answer is not complete, as this API says it.
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def new_id(prefix: str) -> str:
    """resp_, msg_, rs_ or fc_ and what nobody else has."""
    return f"{prefix}_{uuid.uuid4().hex}"


def is_incomplete(finish: FinishReason) -> bool:
    return finish in _INCOMPLETE


def text_part(text: str) -> JSON:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def refusal_part(text: str) -> JSON:
    return {"type": "refusal", "refusal": text}


def summary_part(text: str) -> JSON:
    return {"type": "summary_text", "text": text}


def message_item(item_id: str, parts: list[JSON], status: str) -> JSON:
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": parts}


def reasoning_item(item_id: str, text: str, encrypted: str | None) -> JSON:
    summary = [summary_part(text)] if text else []
    return {"id": item_id, "type": "reasoning", "summary": summary, "encrypted_content": encrypted}


def call_item(item_id: str, call: ToolCall, status: str) -> JSON:
    return {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


class Shell:
    """The members of one response that stay the same from its first event to its last."""

    def __init__(self, call: Call, model: str) -> None:
        body = call.body
        reasoning = body.get("reasoning") or {}
        text = body.get("text") or {}
        self._fixed: JSON = {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(time.time()),
            "background": False,
            "error": None,
            "instructions": body.get("instructions"),
            "max_output_tokens": call.max_tokens,
            "max_tool_calls": None,
            "model": model,
            "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
            "previous_response_id": None,
            "reasoning": {"effort": reasoning.get("effort"), "summary": reasoning.get("summary")},
            "store": False,  # the gateway keeps no answers
            "temperature": _or(body.get("temperature"), 1.0),
            "text": {**text, "format": text.get("format") or {"type": "text"}},
            "tool_choice": _or(body.get("tool_choice"), "auto"),
            "tools": [_tool(tool) for tool in body.get("tools") or ()],
            "top_logprobs": 0,
            "top_p": _or(body.get("top_p"), 1.0),
            "truncation": _or(body.get("truncation"), "disabled"),
            "user": call.user,
            "metadata": body.get("metadata") or {},
        }

    def begun(self) -> JSON:
        """The response before its first content."""
        return self._fixed | {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}

    def ended(self, output: list[JSON], usage: Usage, finish: FinishReason) -> JSON:
        """The response with its whole output."""
        reason = _INCOMPLETE.get(finish)
        return self._fixed | {
            "status": "incomplete" if reason else "completed",
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": usage_object(usage),
        }


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _tool(tool: JSON) -> JSON:
    """As declared, with the members that every answer has."""
    return {"description": None, "parameters": None, "strict": None, **tool}


def response_body(call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
    """A whole answer as JSON bytes."""
    output = _Output()
    for part in response.parts:
        output.add(part)
    if response.refusal:
        output.say(refusal_part(response.refusal))
    finish = response.finish_reason
    if is_incomplete(finish) and output.items and "status" in output.items[-1]:
        output.items[-1]["status"] = "incomplete"
    return msgspec.json.encode(Shell(call, facts.model).ended(output.items, facts.usage, finish))


class _Output:
    """Output items from parts, one after the other. What only another dialect can say is left out."""

    def __init__(self) -> None:
        self.items: list[JSON] = []

    def add(self, part: Any) -> None:
        if isinstance(part, Text):
            if part.text:
                self._add_text(part.text)
        elif isinstance(part, Thinking):
            self.items.append(reasoning_item(new_id("rs"), part.text, sealed_thinking(part)))
        elif isinstance(part, ToolCall):
            if part.signature:
                self.items.append(reasoning_item(new_id("rs"), "", sealed_signature(part)))
            written = part if part.arguments else ToolCall(part.id, part.name, "{}")
            self.items.append(call_item(new_id("fc"), written, "completed"))

    def say(self, part: JSON) -> None:
        """A part of the message that is the latest item, or of a new one."""
        if not self.items or self.items[-1]["type"] != "message":
            self.items.append(message_item(new_id("msg"), [], "completed"))
        self.items[-1]["content"].append(part)

    def _add_text(self, text: str) -> None:
        last = self.items[-1] if self.items else None
        if last is not None and last["type"] == "message":
            last["content"][-1]["text"] += text
        else:
            self.say(text_part(text))
