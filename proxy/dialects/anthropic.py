"""Anthropic's Messages as clients speak them: POST /v1/messages."""

from __future__ import annotations

from typing import Any, ClassVar

from proxy.anthropic_format.shapes import error_object
from proxy.canonical import ChatRequest, ChatResponse
from proxy.context import ANTHROPIC, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.anthropic_rendering import AnthropicStreamRenderer, message
from proxy.dialects.anthropic_request import chat_request
from proxy.dialects.base import Dialect, refuse_steering
from proxy.errors import GatewayError

JSON = dict[str, Any]

#: `system` inside a conversation is what newer models take.
ROLES = ("user", "assistant", "system")

#: Statuses whose error has another type here than GatewayError names.
_ERROR_TYPES = {503: "overloaded_error", 504: "timeout_error"}


class AnthropicDialect(Dialect):
    name: ClassVar[str] = ANTHROPIC

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are."""
        refuse_steering(body)
        model = check_conversation(body)
        limit = fields.integer(body, "max_tokens", 1, fields.MAX_OUTPUT_TOKENS)
        if limit is None:
            raise fields.refused("max_tokens", "is required")
        fields.number(body, "temperature", 0, 2)
        _check_stops(body)
        return Call(
            dialect=ANTHROPIC,
            body=body,
            model=model,
            stream=fields.boolean(body, "stream") or False,
            max_tokens=limit,
            user=user_of(body),
        )

    def canonical(self, call: Call) -> ChatRequest:
        return chat_request(call)

    def render_response(self, call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
        return message(response, facts)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> AnthropicStreamRenderer:
        return AnthropicStreamRenderer(model)

    def error_body(self, error: GatewayError, request_id: str) -> JSON:
        """With the gateway's own `code`, and `param` and `details` where there are any."""
        members = {"param": error.param, "details": error.details}
        told = {name: value for name, value in members.items() if value is not None}
        return error_object(error.message, error.code, _ERROR_TYPES.get(error.status, error.type), request_id, **told)


def check_conversation(body: JSON) -> str:
    """What a call says, and to which model: gives the model's name. Raises BadRequest."""
    model = fields.model(body)
    for number, entry in enumerate(fields.messages(body, ROLES)):
        if not isinstance(entry.get("content"), str | list):
            raise fields.refused(f"messages[{number}].content", "must be a text or a list of blocks")
    if not isinstance(body.get("system", ""), str | list | None):
        raise fields.refused("system", "must be a text or a list of blocks")
    fields.objects(body, "tools", fields.MAX_TOOLS)
    return model


def _check_stops(body: JSON) -> None:
    stops = body.get("stop_sequences")
    if stops is None:
        return
    if not isinstance(stops, list) or len(stops) > fields.MAX_STOPS or not all(isinstance(stop, str) for stop in stops):
        raise fields.refused("stop_sequences", f"must be a list of at most {fields.MAX_STOPS} texts")


def user_of(body: JSON) -> str | None:
    """metadata.user_id; whatever else metadata holds is between the client and Anthropic."""
    metadata = body.get("metadata")
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise fields.refused("metadata", "must be an object")
    return fields.text(metadata, "user_id", fields.MAX_USER)
