"""OpenAI's chat completions, with what its relatives add: thinking as text, and Google's signatures of calls."""

from __future__ import annotations

from proxy.canonical import ChatResponse, ToolCall
from tests.fakes.formats.style import JSON, Style, calls_of, compact, cut, sse, texts_of, thinking_of, usage_of

SAYS = frozenset(("text", "thinking", "calls", "call_signature", "refusal", "cache_read", "cache_write", "reasoning"))


def whole(answer: ChatResponse) -> bytes:
    message: JSON = {"role": "assistant", "content": texts_of(answer) or None, "refusal": answer.refusal}
    thought = "".join(part.text for part in thinking_of(answer))
    if thought:
        message["reasoning_content"] = thought
    if calls := calls_of(answer):
        message["tool_calls"] = [_call(call, call.arguments) for call in calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
    document = _identity("chat.completion") | {"choices": [choice]}
    return compact(document if answer.usage is None else document | {"usage": usage(answer)}).encode()


def stream(answer: ChatResponse, style: Style) -> bytes:
    deltas: list[JSON] = [{"role": "assistant", "content": "", "refusal": None}]
    thought = "".join(part.text for part in thinking_of(answer))
    deltas += [{"reasoning_content": piece} for piece in cut(thought, style.step) if piece]
    deltas += [{"content": piece} for piece in cut(texts_of(answer), style.step) if piece]
    deltas += [{"refusal": piece} for piece in cut(answer.refusal or "", style.step) if piece]
    for index, call in enumerate(calls_of(answer)):
        deltas.append({"tool_calls": [{"index": index} | _call(call, "")]})
        pieces = [piece for piece in cut(call.arguments, style.step) if piece]
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces]
    events: list[JSON | str] = [_chunk(delta, None) for delta in deltas]
    events.append(_chunk({}, answer.finish_reason))
    if answer.usage is not None:
        events.append(_identity("chat.completion.chunk") | {"choices": [], "usage": usage(answer)})
    return sse([(None, event) for event in [*events, "[DONE]"]], style)


def usage(answer: ChatResponse) -> JSON:
    used = usage_of(answer)
    prompt = {"cached_tokens": used.cache_read_tokens, "cache_write_tokens": used.cache_write_tokens}
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": used.reasoning_tokens},
    }


def _call(call: ToolCall, arguments: str) -> JSON:
    written: JSON = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
    if call.signature:
        written["extra_content"] = {"google": {"thought_signature": call.signature}}
    return written


def _chunk(delta: JSON, finish: str | None) -> JSON:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _identity("chat.completion.chunk") | {"choices": [choice], "usage": None}


def _identity(kind: str) -> JSON:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m-1", "service_tier": "default"}
