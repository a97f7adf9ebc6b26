"""The contract of a client dialect: what applications speak on one endpoint. Pure, no I/O.

ADD A DIALECT = ADD ONE FILE in this package with one subclass of `Dialect`; a consumer names it for its endpoint.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from proxy.canonical import StreamEvent
from proxy.context import AnswerFacts, Call
from proxy.errors import BadRequest, GatewayError

JSON = dict[str, Any]

#: Body fields that would steer where or as whom a call goes: refused on every endpoint.
STEERING_FIELDS = frozenset(
    (
        "api_base",
        "base_url",
        "api_key",
        "organization",
        "extra_headers",
        "extra_body",
        "custom_llm_provider",
        "user_config",
    )
)


class StreamRenderer(Protocol):
    """Canonical events in, the dialect's own frames out. Always well-formed, whatever the order of events.

    `render` never emits the closing frames; `end` does, once, after settlement. After `fail` nothing follows.
    """

    def render(self, events: list[StreamEvent]) -> bytes: ...

    def end(self, facts: AnswerFacts) -> bytes: ...

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes: ...


class Dialect:
    """What one endpoint family speaks."""

    name: ClassVar[str] = ""

    def parse_call(self, body: JSON) -> Call:
        """Validate what the gateway relies on; raises BadRequest with `param`. Cheap: no canonical form is built."""
        raise NotImplementedError

    def canonical(self, call: Call) -> Any:
        """The call in neutral words: ChatRequest, or EmbeddingRequest where that is the operation.

        Raises BadRequest naming what is malformed, Inexpressible for what only this dialect can say.
        """
        raise NotImplementedError

    def render_response(self, call: Call, response: Any, facts: AnswerFacts) -> bytes:
        """A whole answer (ChatResponse or EmbeddingResponse) as JSON bytes."""
        raise NotImplementedError

    def stream_renderer(self, call: Call, request_id: str, model: str) -> StreamRenderer:
        """`model` is the target's name, as the answer tells it."""
        raise NotImplementedError

    def error_body(self, error: GatewayError, request_id: str) -> JSON:
        """The error envelope. OpenAI's unless the dialect has its own."""
        return openai_error_body(error, request_id)


def openai_error_body(error: GatewayError, request_id: str) -> JSON:
    return {
        "error": {
            "message": error.message,
            "type": error.type,
            "param": error.param,
            "code": error.code,
            "details": error.details,
        },
        "request_id": request_id,
    }


def refuse_steering(body: JSON) -> None:
    """Raises BadRequest `unknown_parameter` for a field that would steer the call."""
    found = STEERING_FIELDS.intersection(body)
    if found:
        name = min(found)
        raise BadRequest(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def canonical(dialect: Dialect, call: Call) -> Any:
    """The canonical form of `call`, built at most once."""
    if call.canonical is None:
        call.canonical = dialect.canonical(call)
    return call.canonical
