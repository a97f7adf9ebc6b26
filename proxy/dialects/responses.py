"""OpenAI's Responses API as clients speak it: POST /v1/responses.

Nothing is stored here: what goes on from a stored response reaches only providers that speak this API themselves.
"""

from __future__ import annotations

from typing import Any, ClassVar

from proxy.canonical import ChatRequest, ChatResponse
from proxy.context import RESPONSES, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.base import Dialect, refuse_steering
from proxy.dialects.responses_items import response_body
from proxy.dialects.responses_rendering import ResponsesStreamRenderer
from proxy.dialects.responses_request import STORED, chat_request, kind_of

JSON = dict[str, Any]

ROLES = ("user", "assistant", "system", "developer")


class ResponsesDialect(Dialect):
    name: ClassVar[str] = RESPONSES

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are."""
        refuse_steering(body)
        model = fields.model(body)
        _check_input(body)
        if not isinstance(body.get("instructions"), str | None):
            raise fields.refused("instructions", "must be a text")
        fields.number(body, "temperature", 0, 2)
        fields.objects(body, "tools", fields.MAX_TOOLS)
        return Call(
            dialect=RESPONSES,
            body=body,
            model=model,
            stream=fields.boolean(body, "stream") or False,
            max_tokens=fields.integer(body, "max_output_tokens", 1, fields.MAX_OUTPUT_TOKENS),
            user=fields.text(body, "user", fields.MAX_USER),
            metadata=fields.metadata(body),
            background=fields.boolean(body, "background") or False,
        )

    def canonical(self, call: Call) -> ChatRequest:
        return chat_request(call)

    def render_response(self, call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
        return response_body(call, response, facts)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> ResponsesStreamRenderer:
        return ResponsesStreamRenderer(call, model)


def _check_input(body: JSON) -> None:
    """`input` is a text, or a list of objects of which messages have a role."""
    given = body.get("input")
    if given is None:
        if all(body.get(name) is None for name in STORED):
            raise fields.refused("input", "must be a text or a list that is not empty")
        return
    if isinstance(given, str):
        return
    if not isinstance(given, list) or not given:
        raise fields.refused("input", "must be a text or a list that is not empty")
    if len(given) > fields.MAX_MESSAGES:
        raise fields.refused("input", f"has more than {fields.MAX_MESSAGES} items")
    for number, item in enumerate(given):
        if not isinstance(item, dict):
            raise fields.refused(f"input[{number}]", "must be an object")
        kind = kind_of(item)
        if not isinstance(kind, str):
            raise fields.refused(f"input[{number}].type", "must be a text")
        if kind == "message" and item.get("role") not in ROLES:
            raise fields.refused(f"input[{number}].role", f"must be one of {', '.join(ROLES)}")
