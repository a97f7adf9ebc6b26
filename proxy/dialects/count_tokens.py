"""Anthropic's token counting as clients speak it: POST /v1/messages/count_tokens. A Messages body without a limit."""

from __future__ import annotations

from typing import Any, ClassVar, Never

from proxy.context import COUNT, COUNT_TOKENS, AnswerFacts, Call
from proxy.dialects.anthropic import AnthropicDialect, check_conversation, user_of
from proxy.dialects.base import refuse_steering

JSON = dict[str, Any]


class CountTokensDialect(AnthropicDialect):
    name: ClassVar[str] = COUNT_TOKENS

    def parse_call(self, body: JSON) -> Call:
        """Members that are not known here go to providers of this dialect as they are."""
        refuse_steering(body)
        model = check_conversation(body)
        return Call(dialect=COUNT_TOKENS, operation=COUNT, body=body, model=model, user=user_of(body))

    def render_response(self, call: Call, response: Any, facts: AnswerFacts) -> Never:
        raise TypeError("a count is passed on or estimated, never translated")

    def stream_renderer(self, call: Call, request_id: str, model: str) -> Never:
        raise TypeError("a count is not streamed")
