"""OpenAI's chat completions as clients speak them: POST /v1/chat/completions."""

from __future__ import annotations

from typing import Any, ClassVar

from proxy.canonical import ChatRequest, ChatResponse
from proxy.context import OPENAI, AnswerFacts, Call
from proxy.dialects import fields
from proxy.dialects.base import Dialect, refuse_steering
from proxy.dialects.openai_rendering import OpenAIStreamRenderer, completion
from proxy.dialects.openai_request import chat_request

JSON = dict[str, Any]

ROLES = ("user", "assistant", "system", "tool", "developer", "function")
#: Biased tokens in one call; more is an attempt to make us work.
MAX_LOGIT_BIAS = 2048


class OpenAIDialect(Dialect):
    name: ClassVar[str] = OPENAI

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are."""
        refuse_steering(body)
        model = fields.model(body)
        fields.messages(body, ROLES)
        limits = [
            limit
            for name in ("max_tokens", "max_completion_tokens")
            if (limit := fields.integer(body, name, 1, fields.MAX_OUTPUT_TOKENS)) is not None
        ]
        fields.number(body, "temperature", 0, 2)
        fields.stops(body)
        for name in ("tools", "functions"):
            fields.objects(body, name, fields.MAX_TOOLS)
        bias = body.get("logit_bias")
        if bias is not None and (not isinstance(bias, dict) or len(bias) > MAX_LOGIT_BIAS):
            raise fields.refused("logit_bias", f"must be an object of at most {MAX_LOGIT_BIAS} entries")
        return Call(
            dialect=OPENAI,
            body=body,
            model=model,
            stream=fields.boolean(body, "stream") or False,
            include_usage=include_usage(body),
            max_tokens=max(limits) if limits else None,
            choices=fields.integer(body, "n", 1, fields.MAX_CHOICES) or 1,
            user=fields.text(body, "user", fields.MAX_USER),
            metadata=fields.metadata(body),
        )

    def canonical(self, call: Call) -> ChatRequest:
        return chat_request(call)

    def render_response(self, call: Call, response: ChatResponse, facts: AnswerFacts) -> bytes:
        return completion(call, response, facts)

    def stream_renderer(self, call: Call, request_id: str, model: str) -> OpenAIStreamRenderer:
        return OpenAIStreamRenderer(call, model)


def include_usage(body: JSON) -> bool:
    """Whether a stream's client asked for a chunk of usage."""
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise fields.refused("stream_options", "must be an object")
    include = options.get("include_usage")
    if include is not None and not isinstance(include, bool):
        raise fields.refused("stream_options.include_usage", "must be true or false")
    return bool(include)
