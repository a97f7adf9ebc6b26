"""The contract of a provider adapter: a pure translator, no I/O, no state between calls.

ADD A PROVIDER = ADD ONE FILE in this package with one subclass of `Adapter` that names its `kind`; `adapter_for(kind)`
finds it. Adapters never import each other, except for `base` and the OpenAI adapter that its relatives extend.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import ClassVar, Protocol

from proxy.canonical import ChatResponse, EmbeddingResponse, FinishReason, StreamEvent, Usage
from proxy.context import CHAT, Answer, Call, ProviderReply, ProviderRequest, ProviderTarget, Relay
from proxy.errors import UpstreamFault

#: A count above this in a provider's usage is nonsense: treated as if no usage was sent.
MAX_PLAUSIBLE_TOKENS = 10_000_000

#: A line of a provider's stream longer than this is refused (bytes).
MAX_LINE_BYTES = 1 << 20


class StreamDecoder(Protocol):
    """A provider's stream bytes in, canonical events out. Any chunking of a stream gives the same events.

    `fault` is set when the provider reports an error or breaks its protocol; events before it are still returned.
    `done` is set by the provider's own terminal marker, never by the mere end of the stream.
    """

    fault: UpstreamFault | None
    done: bool

    def feed(self, chunk: bytes) -> list[StreamEvent]: ...

    def eof(self) -> list[StreamEvent]: ...


class Adapter:
    """One kind of provider. Subclasses set the class variables and implement the verbs."""

    kind: ClassVar[str] = ""
    #: The client dialects (proxy.context) this provider speaks itself: bodies and answers pass through.
    dialects: ClassVar[frozenset[str]] = frozenset()
    #: What it can be asked for (proxy.context): CHAT, EMBED, COUNT.
    operations: ClassVar[frozenset[str]] = frozenset((CHAT,))
    #: Where the provider's API is when the configuration names no base_url; None: it must be named.
    default_base_url: ClassVar[str | None] = None
    #: Whether an account there is known by a credential of its own.
    needs_secret: ClassVar[bool] = True

    @property
    def needs_region(self) -> bool:
        """Whether the default address is one of a region."""
        return "{region}" in (self.default_base_url or "")

    def build_request(self, call: Call, target: ProviderTarget) -> ProviderRequest:
        """The HTTP request for `call` at `target`. Raises BadRequest naming a block the provider cannot express."""
        raise NotImplementedError

    def parse_response(self, call: Call, reply: ProviderReply) -> ChatResponse | EmbeddingResponse:
        """A 2xx answer in canonical form. Raises UpstreamFault (kind protocol, or the error inside) when it is none.

        A call with `operation` EMBED has an EmbeddingRequest as its canonical form and gets an EmbeddingResponse.
        """
        raise NotImplementedError

    def pass_through(self, call: Call, reply: ProviderReply) -> Answer:
        """Same dialect only: the 2xx answer for the client as it is, with what metering must know read from it."""
        raise NotImplementedError

    def parse_error(self, reply: ProviderReply) -> UpstreamFault:
        """What a non-2xx answer means: JSON, plain text, HTML or nothing at all."""
        raise NotImplementedError

    def stream_decoder(self, call: Call) -> StreamDecoder:
        raise NotImplementedError

    def stream_pass_through(self, call: Call) -> Relay:
        """Same dialect only: the relay that hands the provider's own events on."""
        raise NotImplementedError


@cache
def adapters() -> dict[str, Adapter]:
    """Every adapter of this package by kind."""
    found: dict[str, Adapter] = {}
    package = importlib.import_module("proxy.providers")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"proxy.providers.{module.name}")
    pending = list(Adapter.__subclasses__())
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if "kind" in cls.__dict__ and cls.kind:
            found[cls.kind] = cls()
    return found


def adapter_for(kind: str) -> Adapter:
    return adapters()[kind]


# ---------------------------------------------------------------- reading what providers send


def token_count(source: object, name: str) -> int | None:
    """A count out of a provider's usage object; None when it is absent. Raises ValueError when it is nonsense."""
    value = source.get(name) if isinstance(source, dict) else None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_PLAUSIBLE_TOKENS:
        raise ValueError(name)
    return value


def fault_from_status(
    status: int, message: str, *, retry_after_ms: int | None = None, code: str | None = None, param: str | None = None
) -> UpstreamFault:
    """The usual meaning of a provider's status. Adapters refine it where a provider differs."""
    if status in (400, 413, 422):
        kind = "request"
    elif status in (401, 402, 403):
        kind = "credential"
    elif status == 404:
        kind = "not_found"
    elif status == 429:
        kind = "rate_limit"
    elif status in (408, 504):
        kind = "timeout" if status == 504 else "server"
    else:
        kind = "server"
    return UpstreamFault(
        kind,  # type: ignore[arg-type]
        message,
        status=status,
        retry_after_ms=retry_after_ms,
        code=code,
        param=param,
    )


def retry_after_ms(headers: dict[str, str]) -> int | None:
    """`retry-after-ms` or `Retry-After` in seconds (RFC 9110 also allows a date, which no provider sends)."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            wait = float(value) * factor
        except ValueError:
            continue
        if 0 <= wait < 86_400_000:
            return int(wait)
    return None


__all__ = [
    "MAX_LINE_BYTES",
    "MAX_PLAUSIBLE_TOKENS",
    "Adapter",
    "Answer",
    "Call",
    "ChatResponse",
    "FinishReason",
    "ProviderReply",
    "ProviderRequest",
    "ProviderTarget",
    "Relay",
    "StreamDecoder",
    "Usage",
    "adapter_for",
    "adapters",
    "fault_from_status",
    "retry_after_ms",
    "token_count",
]
