"""Reading OpenAI-style chat completions: whole answers and usage."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall, Usage
from proxy.context import Answer
from proxy.errors import UpstreamFault
from proxy.openai_format.errors import fault_of_error
from proxy.openai_format.shapes import finish_reason, read_signature, read_thinking
from proxy.providers.base import token_count

JSON = dict[str, Any]


class _Choice(msgspec.Struct):
    finish_reason: str | None = None
    message: msgspec.Raw = msgspec.Raw()


class _Completion(msgspec.Struct):
    """The members that metering needs; whatever else there is stays undecoded."""

    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None


_decode = msgspec.json.Decoder(_Completion).decode


def whole_answer(body: bytes) -> Answer:
    """A good answer that the client gets as it is. Raises UpstreamFault when it is none."""
    try:
        completion = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _not_an_answer(body) from None
    if not completion.choices:
        raise _no_choices(completion.error)
    usage = read_usage(completion.usage)
    choice = completion.choices[0]
    return Answer(
        body=body,
        usage=usage,
        finish_reason=finish_reason(choice.finish_reason),
        produced_chars=_characters(completion.choices) if usage is None else 0,
    )


def chat_response(body: bytes) -> ChatResponse:
    """A good answer in canonical form. Raises UpstreamFault when it is none."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _not_an_answer(body) from None
    choices = document.get("choices") if isinstance(document, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise _no_choices(document.get("error") if isinstance(document, dict) else None)
    message = choices[0].get("message")
    message = message if isinstance(message, dict) else {}  # Azure leaves it out of a filtered answer
    calls = tool_calls_of(message)
    native = _text(choices[0].get("finish_reason")) or None
    return ChatResponse(
        id=_text(document.get("id")) or None,
        model=_text(document.get("model")) or None,
        parts=[*_texts_of(message), *calls],
        finish_reason=finish_reason(native, has_calls=bool(calls)),
        native_finish=native,
        refusal=_text(message.get("refusal")) or None,
        usage=read_usage(document.get("usage")),
    )


def read_usage(source: Any) -> Usage | None:
    """Token counts in one meaning; None when there are none or they are nonsense (negative, huge, texts).

    Some providers leave hidden reasoning out of completion_tokens: then total_tokens tells (xAI, Gemini).
    """
    if not isinstance(source, dict):
        return None
    prompt_details, completion_details = source.get("prompt_tokens_details"), source.get("completion_tokens_details")
    try:
        prompt, completion = token_count(source, "prompt_tokens"), token_count(source, "completion_tokens")
        total = token_count(source, "total_tokens") or 0
        read = token_count(prompt_details, "cached_tokens") or token_count(source, "prompt_cache_hit_tokens")
        read = read or token_count(source, "cached_tokens") or 0
        write = token_count(prompt_details, "cache_write_tokens") or 0
        reasoning = token_count(completion_details, "reasoning_tokens") or 0
    except ValueError:
        return None
    if prompt is None and completion is None:
        return None
    prompt, completion = prompt or 0, completion or 0
    if total - prompt > completion:
        reasoning = max(reasoning, total - prompt - completion)
        completion = total - prompt
    read = min(read, prompt)  # some count cached tokens of more than this prompt
    return Usage(
        input_tokens=prompt,
        output_tokens=completion,
        cache_read_tokens=read,
        cache_write_tokens=min(write, prompt - read),
        reasoning_tokens=reasoning,
    )


def tool_calls_of(message: JSON) -> list[ToolCall]:
    """The calls of a whole message, legacy function_call included. Raises UpstreamFault for one without a name."""
    found = []
    entries = message.get("tool_calls")
    for entry in entries if isinstance(entries, list) else []:
        function = entry.get("function") or entry.get("custom") if isinstance(entry, dict) else None
        if not isinstance(function, dict) or not _text(function.get("name")):
            raise UpstreamFault("protocol", "a tool call without a name", status=200)
        arguments = arguments_text(function.get("arguments", function.get("input")))
        call_id = _text(entry.get("id")) or made_up_id()
        found.append(ToolCall(call_id, function["name"], arguments, read_signature(entry)))
    legacy = message.get("function_call")
    if not found and isinstance(legacy, dict) and _text(legacy.get("name")):
        found.append(ToolCall(made_up_id(), legacy["name"], arguments_text(legacy.get("arguments"))))
    return found


def arguments_text(arguments: Any) -> str:
    """Arguments as JSON text; some providers send the object itself."""
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def made_up_id() -> str:
    """For a provider that gives its calls no id."""
    return f"call_{uuid.uuid4().hex[:24]}"


def content_parts(content: list[Any]) -> list[Text | Thinking]:
    """Content as a list of parts (Mistral's thinking models); parts of another type say nothing to a chat client."""
    found: list[Text | Thinking] = []
    for part in content:
        if isinstance(part, str):
            found.append(Text(part))
        elif isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            texts = inner if isinstance(inner, list) else [inner]
            found.append(Thinking(text="".join(_part_text(text) for text in texts)))
        elif _part_text(part):
            found.append(Text(_part_text(part)))
    return found


def _part_text(part: Any) -> str:
    return part if isinstance(part, str) else _text(part.get("text")) if isinstance(part, dict) else ""


def _texts_of(message: JSON) -> list[Any]:
    content = message.get("content")
    parts: list[Any] = list(read_thinking(message))
    if isinstance(content, str):
        return [*parts, Text(content)] if content else parts
    return parts + content_parts(content) if isinstance(content, list) else parts


def _characters(choices: list[_Choice]) -> int:
    """Of all texts and arguments of an answer without usage."""
    count = 0
    for choice in choices:
        try:
            message = msgspec.json.decode(choice.message) if bytes(choice.message) else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise UpstreamFault("protocol", "the answer is not JSON", status=200) from None
        if isinstance(message, dict):
            count += sum(len(part.text) for part in _texts_of(message)) + len(_text(message.get("refusal")))
            count += sum(len(call.arguments) + len(call.name) for call in tool_calls_of(message))
    return count


def _no_choices(error: Any) -> UpstreamFault:
    if error:
        return fault_of_error(error)
    return UpstreamFault("protocol", "an answer without choices", status=200)


def _not_an_answer(body: bytes) -> UpstreamFault:
    """JSON that is cut or has not the shape of a completion, or no JSON at all."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return UpstreamFault("protocol", "the answer is not JSON", status=200)
    if isinstance(document, dict) and document.get("error"):
        return fault_of_error(document["error"])
    return UpstreamFault("protocol", "the answer is not a chat completion", status=200)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
