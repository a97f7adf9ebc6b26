"""GET /v1/openapi.json and GET /v1/docs: every /v1 endpoint, the data plane's too, and nothing of this installation.

ninja documents the reads; what the data plane takes and gives is described by hand in proxy/v1_inference.yaml.
"""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase
from ninja.openapi.schema import OpenAPISchema

JSON = dict[str, Any]

PREFIX = "/v1"
_INFERENCE = Path(__file__).with_name("v1_inference.yaml")

#: The four ways to send a key; header names are the same in any case.
SECURITY_SCHEMES: JSON = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a JWT of the tenant's issuer."},
    "x-api-key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
}
#: The bodies that the data plane takes.
CALLS = (
    "ChatCall",
    "ChatCompletionCall",
    "CompletionCall",
    "EmbeddingsCall",
    "ResponsesCall",
    "MessagesCall",
    "CountTokensCall",
)
METHODS = ("get", "post", "put", "patch", "delete")


@cache
def inference_document() -> JSON:
    """The hand-written part: `paths` and `components.schemas`."""
    document: JSON = yaml.safe_load(_INFERENCE.read_text(encoding="utf-8"))
    for call in CALLS:
        _null_is_absent(document["components"]["schemas"][call])
    return document


def _null_is_absent(schema: JSON) -> None:
    """A member that may be left out may be null instead; `false` members are refused whatever they hold."""
    for name, member in schema["properties"].items():
        if name not in schema["required"] and isinstance(member, dict):
            schema["properties"][name] = {
                "anyOf": [member, {"type": "null"}],
                "description": member.get("description", ""),
            }


def inference_paths() -> list[str]:
    """Addresses of the data plane, below /v1."""
    return [path.removeprefix(PREFIX) for path in inference_document()["paths"]]


class DocumentedAPI(NinjaAPI):
    """An API whose document also tells of the endpoints that Django does not serve."""

    def get_openapi_schema(self, *, path_prefix: str | None = None, path_params: JSON | None = None) -> OpenAPISchema:
        document = super().get_openapi_schema(path_prefix=path_prefix, path_params=path_params)
        inference = copy.deepcopy(inference_document())
        document["paths"].update(inference["paths"])
        document["components"]["schemas"].update(inference["components"]["schemas"])
        document["components"]["securitySchemes"] = SECURITY_SCHEMES
        document["security"] = [{name: []} for name in SECURITY_SCHEMES]
        document["servers"] = [{"url": "/"}]
        return document


class DocsPage(DocsBase):
    """The document as one page of plain HTML: no script, nothing from elsewhere."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        document = api.get_openapi_schema()
        context = {
            "title": document["info"]["title"],
            "description": document["info"]["description"],
            "operations": operations(document),
        }
        return render(request, "v1/docs.html", context)


def operations(document: JSON) -> list[JSON]:
    """The operations in the order of their paths, ready to be shown."""
    shown: list[JSON] = []
    for path, item in sorted(document["paths"].items()):
        shown.extend(_shown(document, path, method, item[method]) for method in METHODS if method in item)
    return shown


def _shown(document: JSON, path: str, method: str, operation: JSON) -> JSON:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return {
        "path": path,
        "method": method.upper(),
        "summary": operation.get("summary", ""),
        "description": operation.get("description", ""),
        "parameters": [
            {**parameter, "type": _type(parameter["schema"])} for parameter in operation.get("parameters", ())
        ],
        "fields": _fields(document, content.get("schema", {})),
        "answers": sorted((str(status), answer["description"]) for status, answer in operation["responses"].items()),
    }


def _fields(document: JSON, schema: JSON) -> list[JSON]:
    """The members of a body; `false` ones are refused and not shown."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    required = schema.get("required", ())
    return [
        {
            "name": name,
            "type": _type(member),
            "required": name in required,
            "description": member.get("description", ""),
        }
        for name, member in schema.get("properties", {}).items()
        if isinstance(member, dict)
    ]


def _type(schema: JSON) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(part) for part in schema[several] if part != {"type": "null"}))
    kind = schema.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(schema.get("format", kind))
