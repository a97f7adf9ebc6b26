"""Errors of everything Django answers for programs, in the envelopes of docs/errors.md.

The data plane renders its own (proxy.answering); both go by the same GatewayError and the same retry headers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from proxy.answering import retry_headers
from proxy.dialects.base import openai_error_body
from proxy.errors import BadRequest, GatewayError, MethodNotAllowed, NotFound, StoreUnavailable, Unavailable

logger = logging.getLogger(__name__)

ANTHROPIC_PATH = "/v1/messages"
NOT_FOUND_MESSAGE = "There is nothing at this address."


def request_id_of(request: HttpRequest) -> str:
    """The id of this request, as the request-id middleware settled it."""
    return str(request.META.get("HTTP_X_REQUEST_ID", ""))


def error_response(request: HttpRequest, error: GatewayError) -> HttpResponse:
    """`error` in the envelope of the requested path."""
    request_id = request_id_of(request)
    body: dict[str, Any]
    if request.path == ANTHROPIC_PATH or request.path.startswith(f"{ANTHROPIC_PATH}/"):
        body = {
            "type": "error",
            "error": {"type": error.type, "message": error.message},
            "request_id": request_id,
        }
    else:
        body = openai_error_body(error, request_id)
    response = JsonResponse(body, status=error.status)
    response.headers["Content-Length"] = str(len(response.content))
    for name, value in error.headers.items():
        response.headers[name] = value
    for raw_name, raw_value in retry_headers(error):
        response.headers[raw_name.decode()] = raw_value.decode()
    return response


def error_of_status(status: int, *, allow: str = "") -> GatewayError:
    """What a bare HTTP status of Django or of a library means in our words."""
    if status == 404:
        return NotFound(NOT_FOUND_MESSAGE)
    if status == 405:
        return MethodNotAllowed(f"This address answers {allow or 'other methods'} only.", allow=allow)
    if status == 503:
        return records_unavailable()
    error: GatewayError
    if status >= 500:
        error = GatewayError("The gateway failed to answer the request.")
    else:
        error = BadRequest("The request cannot be understood.")
        error.status = status
    return error


def records_unavailable() -> Unavailable:
    """The database or the limiter's store did not answer."""
    return Unavailable("This cannot be read at the moment.", code="rate_limit_unavailable", retry_after_ms=1000)


def register_error_responses(api: NinjaAPI) -> None:
    """Every way a view of `api` can fail, in one place."""
    responders: dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]] = {
        GatewayError: error_response,
        StoreUnavailable: lambda request, _: error_response(request, records_unavailable()),
        Http404: lambda request, _: error_response(request, error_of_status(404)),
        ValidationError: _invalid,
        SuspiciousOperation: lambda request, _: error_response(request, error_of_status(400)),
        HttpError: lambda request, error: error_response(request, error_of_status(error.status_code)),
        Exception: _unexpected,
    }
    for kind, responder in responders.items():
        api.add_exception_handler(kind, responder)


def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    """The first parameter that does not validate, by name. Never repeats what was sent."""
    first = error.errors[0]
    places = [str(place) for place in first["loc"]]  # "query", models around the parameter, its name, parts of a union
    name = next((place for place in reversed(places) if place in request.GET), places[-1])
    message = str(first["msg"]).removeprefix("Value error, ")
    return error_response(request, BadRequest(f"{name}: {message}.", param=name))


def _unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    logger.error("request failed unexpectedly", exc_info=error, extra={"request_id": request_id_of(request)})
    return error_response(request, error_of_status(500))
