"""Every error a caller of the data plane can see, and the decision each one carries.

    GatewayError                    status, code, and what to tell the caller
    ├── BadRequest                  400  invalid_json duplicate_key invalid_request unknown_parameter
    │                                    context_length_exceeded
    │   └── Inexpressible                    sound, but only a provider of the same dialect can take it
    ├── Unauthenticated             401  invalid_api_key invalid_token
    ├── PaymentRequired             402  budget_exceeded quota_exceeded
    ├── Forbidden                   403  model_not_allowed model_not_priced ip_not_allowed
    │                                    insufficient_scope tenant_suspended
    ├── NotFound                    404  model_not_found not_found
    ├── MethodNotAllowed            405  method_not_allowed
    │   └── UpgradeRequired         426  method_not_allowed (an attempt at a WebSocket)
    ├── Conflict                    409  idempotency_in_progress
    ├── TooLarge                    413  request_too_large
    ├── UnsupportedMediaType        415  unsupported_media_type
    ├── Unprocessable               422  idempotency_mismatch
    ├── RateLimited                 429  rate_limit_exceeded token_rate_limit_exceeded
    │                                    concurrency_limit_exceeded shed_low_priority provider_rate_limited
    ├── UpstreamFailed              502  upstream_error
    ├── Unavailable                 503  no_provider_available budget_unavailable rate_limit_unavailable
    │                                    server_shutdown
    ├── UpstreamTimeout             504  upstream_timeout
    └── ClientGone                  499  client_closed_request (audit only: nobody is left to read it)

The codes are public (README, docs/errors.md). An error about a provider is first an
`UpstreamFault` (what happened there and whether another attempt may help); the pipeline turns
the last one into a GatewayError when no candidate is left.
"""

from __future__ import annotations

from typing import Any, Literal

FaultKind = Literal["request", "credential", "not_found", "rate_limit", "server", "timeout", "connection", "protocol"]


class GatewayError(Exception):
    """An answer other than 200.

    `details` of a refusal names scope, limit, used, window, resets_at. `retry_after_ms` becomes the
    Retry-After headers. `should_retry` becomes `x-should-retry` (read by the official SDKs); None sends none.
    """

    status: int = 500
    default_code: str = "upstream_error"
    type: str = "api_error"
    should_retry: bool | None = None

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        details: dict[str, Any] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param
        self.details = details
        self.retry_after_ms = retry_after_ms
        self.headers: dict[str, str] = {}


class BadRequest(GatewayError):
    status, default_code, type = 400, "invalid_request", "invalid_request_error"


class Inexpressible(BadRequest):
    """The request is sound, but cannot be said in another dialect than its own."""


class Unauthenticated(GatewayError):
    status, default_code, type = 401, "invalid_api_key", "authentication_error"


class PaymentRequired(GatewayError):
    status, default_code, type, should_retry = 402, "budget_exceeded", "billing_error", False


class Forbidden(GatewayError):
    status, default_code, type = 403, "model_not_allowed", "permission_error"


class NotFound(GatewayError):
    status, default_code, type = 404, "not_found", "not_found_error"


class MethodNotAllowed(GatewayError):
    status, default_code, type = 405, "method_not_allowed", "invalid_request_error"

    def __init__(self, message: str, *, allow: str) -> None:
        super().__init__(message)
        self.headers["allow"] = allow


class UpgradeRequired(MethodNotAllowed):
    """An attempt to open a WebSocket. Clients of this status go on over plain HTTP (RFC 9110, section 15.5.22)."""

    status = 426

    def __init__(self) -> None:
        super().__init__("WebSockets are not spoken here. Use POST.", allow="POST")
        self.headers["upgrade"] = "HTTP/1.1"


class Conflict(GatewayError):
    status, default_code, type = 409, "idempotency_in_progress", "invalid_request_error"


class TooLarge(GatewayError):
    status, default_code, type = 413, "request_too_large", "request_too_large"


class UnsupportedMediaType(GatewayError):
    status, default_code, type = 415, "unsupported_media_type", "invalid_request_error"


class Unprocessable(GatewayError):
    status, default_code, type = 422, "idempotency_mismatch", "invalid_request_error"


class RateLimited(GatewayError):
    status, default_code, type, should_retry = 429, "rate_limit_exceeded", "rate_limit_error", True


class UpstreamFailed(GatewayError):
    status, default_code, type = 502, "upstream_error", "api_error"


class Unavailable(GatewayError):
    status, default_code, type = 503, "no_provider_available", "api_error"


class UpstreamTimeout(GatewayError):
    status, default_code, type = 504, "upstream_timeout", "api_error"


class ClientGone(GatewayError):
    status, default_code, type = 499, "client_closed_request", "api_error"


class StoreUnavailable(Exception):
    """The limiter's store (Redis) did not answer in time; the caller applies the failure policy."""


class UpstreamFault(Exception):
    """One attempt at a provider failed. Carries its own decision.

    kind        what happened: `request` is the caller's fault (nothing else is tried, the message is passed on);
                `credential` and `not_found` are the operator's (another candidate may do)
    status      the provider's HTTP status, None when there was no answer
    message     the provider's words, already cleaned of our credential; shown to the caller only for `request`
    retry_after_ms   what the provider asked for, None when it did not
    """

    def __init__(
        self,
        kind: FaultKind,
        message: str = "",
        *,
        status: int | None = None,
        retry_after_ms: int | None = None,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retry_after_ms = retry_after_ms
        self.code = code
        self.param = param

    @property
    def retryable(self) -> bool:
        """Whether the same target may be tried again."""
        return self.kind in ("rate_limit", "server", "timeout", "connection", "protocol")

    @property
    def failover(self) -> bool:
        """Whether another target may be tried."""
        return self.kind != "request"

    @property
    def counts_against_breaker(self) -> bool:
        """A provider that answers 4xx or 429 is alive: only outages open its breaker."""
        return self.kind in ("server", "timeout", "connection", "protocol")

    def to_gateway_error(self) -> GatewayError:
        """What the caller is told when this was the last attempt."""
        if self.kind == "request":
            return BadRequest(
                self.message or "The provider refused the request.",
                code=self.code or "invalid_request",
                param=self.param,
            )
        if self.kind == "rate_limit":
            return RateLimited(
                "The provider's rate limit was reached.",
                code="provider_rate_limited",
                retry_after_ms=self.retry_after_ms or 1000,
            )
        if self.kind == "timeout":
            return UpstreamTimeout("The provider did not answer in time.")
        return UpstreamFailed("The provider failed to answer the request.")
