"""What one request carries through the pipeline, and what the stages hand each other. Plain data, no behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

from proxy.canonical import FinishReason, Usage
from proxy.errors import UpstreamFault

JSON = dict[str, Any]

#: Client dialects: Tollbar's own, OpenAI chat completions, Anthropic messages, and OpenAI's and Anthropic's other APIs.
TOLLBAR, OPENAI, ANTHROPIC = "chat", "openai", "anthropic"
RESPONSES, COMPLETIONS, EMBEDDINGS, COUNT_TOKENS = "responses", "completions", "embeddings", "count_tokens"

#: What a call wants of a provider: an answer, vectors, or the number of tokens of its input.
CHAT, EMBED, COUNT = "chat", "embeddings", "count_tokens"


class Call(msgspec.Struct, kw_only=True):
    """A validated chat call in its client's own words.

    Made by a dialect's `parse_call(body)`. `body` is the client's JSON as sent (never changed in place: an adapter
    of the same dialect copies it). `chat()` of the dialect gives the canonical form, built once, on demand.
    Limits are in tokens, `timeout_ms` is the caller's own deadline.
    """

    dialect: str
    body: JSON
    model: str
    operation: str = CHAT
    stream: bool = False
    include_usage: bool = False  # OpenAI dialect: the client asked for a usage chunk
    max_tokens: int | None = None
    choices: int = 1  # OpenAI's n
    user: str | None = None
    metadata: dict[str, str] | None = None
    provider_preference: list[str] | None = None
    cheapest_first: bool = False
    cache: bool | None = None
    webhook_url: str | None = None
    background: bool = False
    timeout_ms: int | None = None
    anthropic_version: str | None = None  # header of the client, forwarded to Anthropic
    anthropic_beta: str | None = None
    output_cap: int | None = None  # set by admission when the client named no max_tokens and a limit needs one
    canonical: Any = None  # ChatRequest, or EmbeddingRequest of EMBED; filled on demand by proxy.dialects.canonical()


class AnswerFacts(msgspec.Struct, kw_only=True):
    """What an answer says about itself once it is settled."""

    request_id: str
    provider: str
    model: str
    usage: Usage
    latency_ms: int
    cost_usd: str | None  # decimal string; None: the model has no price and the tenant allows that
    cached: bool = False
    fallback_used: bool = False
    attempts: int = 1
    finish_reason: FinishReason = "stop"


class ProviderTarget(msgspec.Struct, kw_only=True):
    """What an adapter may know of the target it writes a request for. `secret` is the provider's credential."""

    provider: str
    kind: str
    model: str
    base_url: str
    secret: str = ""
    region: str | None = None
    api_version: str | None = None
    headers: dict[str, str] = {}


class ProviderRequest(msgspec.Struct):
    """An HTTP request to a provider: always POST, never following redirects.

    `aws_region` names the region when AWS Signature Version 4 must still be put on it (proxy.aws_signing).
    """

    url: str
    headers: dict[str, str]
    body: bytes
    aws_region: str | None = None


class ProviderReply(msgspec.Struct):
    """A provider's whole answer. Header names are lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Answer(msgspec.Struct, kw_only=True):
    """A provider's good answer, ready for the client: `body` in the client's dialect unless it needs AnswerFacts."""

    body: bytes | None
    usage: Usage | None
    finish_reason: FinishReason
    produced_chars: int = 0
    response: Any = None  # ChatResponse when the answer was translated


class AttemptRecord(msgspec.Struct, kw_only=True):
    """One try at one target, as the audit event lists it. outcome: success | failed | cancelled."""

    provider: str
    model: str
    outcome: str
    http_status: int | None = None
    error_code: str | None = None
    latency_ms: int = 0


class Relay:
    """Turns a provider's stream into the client's, chunk by chunk. The pipeline owns I/O, a relay only bytes.

    feed(chunk)   bytes for the client so far; sets `fault` (and stops) when the provider reports an error
    eof()         the provider closed: sets `fault` (kind protocol) unless its terminal marker was seen
    end(facts)    the closing frames, sent after settlement
    fail(error)   the error frame of the dialect, for a failure after content
    `started`     the first content was seen: no failover from here on
    `done`        the provider's own terminal marker was seen
    `usage`       cumulative usage as the provider sent it, None while it sent none
    `produced_chars`  characters of text, thinking and tool arguments seen (for an estimate when usage is missing)
    """

    started: bool = False
    done: bool = False
    fault: UpstreamFault | None = None
    usage: Usage | None = None
    usage_final: bool = False  # the provider's closing usage came (Anthropic sends a first one at the start)
    finish_reason: FinishReason = "stop"
    produced_chars: int = 0

    def feed(self, chunk: bytes) -> bytes:
        raise NotImplementedError

    def eof(self) -> bytes:
        raise NotImplementedError

    def end(self, facts: AnswerFacts) -> bytes:
        raise NotImplementedError

    def fail(self, message: str, code: str, type_: str, request_id: str) -> bytes:
        raise NotImplementedError
