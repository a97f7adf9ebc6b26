"""Reading Gemini's answers: usage, parts, and whole GenerateContentResponses.

Of several candidates the first counts: more are never asked for. Parts that no client's format has (an image, code that
ran at Google, server tools) become Foreign: clients of other formats get the rest. What search or a grounding adds
beside the parts is left out.
"""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from proxy.canonical import GEMINI_SIGNED, ChatResponse, Foreign, Text, Thinking, ToolCall, Usage
from proxy.errors import UpstreamFault
from proxy.gemini_format.errors import fault_of_error
from proxy.gemini_format.shapes import GEMINI, UNREADABLE, finish_reason, reason, text_of
from proxy.providers.base import token_count

JSON = dict[str, Any]
Part = Text | Thinking | ToolCall | Foreign

#: Members of a part that say something about it and are no content.
_ABOUT = ("thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution")


class PartReader:
    """Reads the parts of one answer. `names` are those of functions that Gemini knows otherwise."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._ids: set[str] = set()

    @property
    def has_calls(self) -> bool:
        return bool(self._ids)

    def read(self, candidate: Any) -> list[Part]:
        """The parts of a candidate, or of a piece of it. Raises UpstreamFault for a call without a name."""
        content = candidate.get("content") if isinstance(candidate, dict) else None
        parts = content.get("parts") if isinstance(content, dict) else None
        if not isinstance(parts, list):
            return []
        return [found for part in parts if isinstance(part, dict) for found in self._part(part)]

    def _part(self, part: JSON) -> list[Part]:
        if isinstance(part.get("functionCall"), dict):
            return [self._call(part["functionCall"], _signature(part))]
        text, signature = text_of(part, "text"), _signature(part)
        marked = GEMINI_SIGNED + signature if signature else None
        if part.get("thought") is True and (text or marked):
            return [Thinking(text=text, signature=marked)]
        found: list[Part] = [Text(text)] if text else []
        kind = next((name for name in part if name not in _ABOUT and name != "text"), None)
        if kind is not None:
            return [*found, Foreign(GEMINI, kind[:60], part)]
        return [*found, Thinking(signature=marked)] if marked else found

    def _call(self, function: JSON, signature: str | None) -> ToolCall:
        name = text_of(function, "name")
        if not name:
            raise UpstreamFault("protocol", "a function call without a name", status=200)
        call_id = text_of(function, "id")
        if not call_id or call_id in self._ids:
            call_id = f"call_{uuid.uuid4().hex[:20]}"
        self._ids.add(call_id)
        arguments = msgspec.json.encode(function.get("args") or {}).decode()
        return ToolCall(call_id, self._names.get(name, name), arguments, signature)


def _signature(part: JSON) -> str | None:
    return text_of(part, "thoughtSignature") or None


def read_document(raw: bytes) -> JSON:
    """One GenerateContentResponse. Raises UpstreamFault for none, and for an error in its place."""
    try:
        document = msgspec.json.decode(raw)
    except UNREADABLE:
        raise UpstreamFault("protocol", "the answer is not JSON", status=200) from None
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        raise UpstreamFault("protocol", "the answer is not an object", status=200)
    if document.get("error"):
        raise fault_of_error(document["error"])
    return document


def first_candidate(document: JSON) -> JSON | None:
    """The candidate with index 0, or the first where they have none."""
    candidates = document.get("candidates")
    found = [one for one in candidates if isinstance(one, dict)] if isinstance(candidates, list) else []
    return next((one for one in found if not one.get("index")), None)


def blocked(document: JSON) -> str | None:
    """Why the prompt was blocked; None when it was not."""
    feedback = document.get("promptFeedback")
    return reason(feedback.get("blockReason")) if isinstance(feedback, dict) else None


def chat_response(body: bytes, names: dict[str, str]) -> ChatResponse:
    """A good answer in canonical form. Raises UpstreamFault when it is none."""
    document = read_document(body)
    candidate, block = first_candidate(document), blocked(document)
    if candidate is None and block is None:
        raise UpstreamFault("protocol", "an answer without candidates", status=200)
    reader = PartReader(names)
    parts = reader.read(candidate)
    native = reason(candidate.get("finishReason")) if candidate else None
    response = ChatResponse(
        id=text_of(document, "responseId") or None,
        model=text_of(document, "modelVersion") or None,
        parts=parts,
        finish_reason=finish_reason(native, has_calls=reader.has_calls),
        native_finish=native,
        usage=read_usage(document.get("usageMetadata")),
    )
    if native is None and block is not None:
        response.finish_reason, response.native_finish = "content_filter", block
    return response


def read_usage(source: Any) -> Usage | None:
    """Token counts in one meaning; None when there are none or they are nonsense (negative, huge, texts).

    Thoughts count beside the candidates, unless the total says that they are among them. Members that are zero, and
    now and then promptTokenCount, are left out by Google.
    """
    try:
        prompt, said = token_count(source, "promptTokenCount"), token_count(source, "candidatesTokenCount")
        thoughts, tools = token_count(source, "thoughtsTokenCount"), token_count(source, "toolUsePromptTokenCount") or 0
        cached, total = token_count(source, "cachedContentTokenCount") or 0, token_count(source, "totalTokenCount")
    except ValueError:
        return None
    if prompt is None and said is None and thoughts is None:
        return None
    said, thoughts = said or 0, thoughts or 0
    if prompt is None:
        prompt = max((total or 0) - said - thoughts - tools, cached, 0)
    output = said if thoughts and prompt + said == total else said + thoughts
    return Usage(
        input_tokens=prompt + tools,
        output_tokens=output,
        cache_read_tokens=min(cached, prompt + tools),
        reasoning_tokens=min(thoughts, output),
    )
