"""Query parameters beyond what their schema can say."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Schema

from proxy.errors import BadRequest


def only_known(request: HttpRequest, filters: type[Schema]) -> None:
    """Refuse a parameter that nobody reads: a misspelt filter would otherwise answer another question than asked."""
    known = {field.alias or name for name, field in filters.model_fields.items()}
    for name in request.GET:
        if name not in known:
            raise BadRequest("A query parameter is not known here.", code="unknown_parameter", param=name[:64])
