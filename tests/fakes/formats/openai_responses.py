"""OpenAI's Responses API. A signature is the encrypted content of a reasoning item."""

from __future__ import annotations

from proxy.canonical import ChatResponse, Thinking, ToolCall
from tests.fakes.formats.style import JSON, Style, compact, cut, sse, texts_of, usage_of

SAYS = frozenset(("text", "thinking", "signature", "calls", "refusal", "cache_read", "cache_write", "reasoning"))

Events = list[tuple[str | None, JSON]]


def whole(answer: ChatResponse) -> bytes:
    return compact(_response(answer, _items(answer))).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    opened = _response(answer, []) | {"status": "in_progress", "usage": None, "incomplete_details": None}
    documents: list[JSON] = [{"type": "response.created", "response": opened}]
    documents.append({"type": "response.in_progress", "response": opened})
    for place, item in enumerate(_items(answer)):
        documents += _item_events(place, item, style)
    kind = "response.incomplete" if answer.finish_reason in ("length", "content_filter") else "response.completed"
    documents.append({"type": kind, "response": _response(answer, _items(answer))})
    numbered = [document | {"sequence_number": number} for number, document in enumerate(documents)]
    return sse([(document["type"], document) for document in numbered], style)


def _items(answer: ChatResponse) -> list[JSON]:
    items: list[JSON] = []
    for number, part in enumerate(answer.parts):
        if isinstance(part, Thinking):
            item: JSON = {"type": "reasoning", "id": f"rs_{number}", "summary": []}
            if part.text:
                item["summary"] = [{"type": "summary_text", "text": part.text}]
            items.append(item | {"encrypted_content": part.signature})
        elif isinstance(part, ToolCall):
            items.append(_call(number, part))
    text = texts_of(answer)
    content: list[JSON] = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}] if text else []
    if answer.refusal:
        content.append({"type": "refusal", "refusal": answer.refusal})
    if content:
        message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content}
        place = sum(1 for item in items if item["type"] == "reasoning")
        items.insert(place, message)
    return items


def _call(number: int, call: ToolCall) -> JSON:
    identity = {"type": "function_call", "id": f"fc_{number}", "status": "completed"}
    return identity | {"call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}


def _response(answer: ChatResponse, items: list[JSON]) -> JSON:
    used = usage_of(answer)
    reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(answer.finish_reason)
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": "m-1",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": used.input_tokens,
            "input_tokens_details": {
                "cached_tokens": used.cache_read_tokens,
                "cache_write_tokens": used.cache_write_tokens,
            },
            "output_tokens": used.output_tokens,
            "output_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
            "total_tokens": used.input_tokens + used.output_tokens,
        },
    }


def _item_events(place: int, item: JSON, style: Style) -> list[JSON]:
    where = {"item_id": item["id"], "output_index": place}
    empty = item | {name: [] for name in ("content", "summary") if name in item}
    if "arguments" in item:
        empty["arguments"] = ""
    documents: list[JSON] = [{"type": "response.output_item.added", "output_index": place, "item": empty}]
    if "arguments" in item:
        kind = "response.function_call_arguments"
        documents += [where | {"type": f"{kind}.delta", "delta": piece} for piece in cut(item["arguments"], style.step)]
        documents.append(where | {"type": f"{kind}.done", "arguments": item["arguments"], "name": item["name"]})
    for number, part in enumerate(item.get("summary") or ()):
        kind, at = "response.reasoning_summary_text", where | {"summary_index": number}
        documents.append(
            at | {"type": "response.reasoning_summary_part.added", "part": {"type": "summary_text", "text": ""}}
        )
        documents += [at | {"type": f"{kind}.delta", "delta": piece} for piece in cut(part["text"], style.step)]
        documents.append(at | {"type": f"{kind}.done", "text": part["text"]})
        documents.append(at | {"type": "response.reasoning_summary_part.done", "part": part})
    for number, part in enumerate(item.get("content") or ()):
        documents += _content_events(where | {"content_index": number}, part, style)
    return [*documents, {"type": "response.output_item.done", "output_index": place, "item": item}]


def _content_events(at: JSON, part: JSON, style: Style) -> list[JSON]:
    name = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if name == "refusal" else "response.output_text"
    return [
        at | {"type": "response.content_part.added", "part": part | {name: ""}},
        *(at | {"type": f"{kind}.delta", "delta": piece} for piece in cut(part[name], style.step)),
        at | {"type": f"{kind}.done", name: part[name]},
        at | {"type": "response.content_part.done", "part": part},
    ]
