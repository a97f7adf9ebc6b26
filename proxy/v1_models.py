"""GET /v1/models: the aliases this credential may name, in OpenAI's shape or, for its clients, in Anthropic's."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Field, Query, Router, Schema
from pydantic.json_schema import SkipJsonSchema

from proxy.errors import NotFound
from proxy.runtime import ensure_started
from proxy.v1_auth import caller, may_use, principal_of
from proxy.v1_schemas import ERRORS, AnthropicModel, AnthropicModelList, ErrorBody, Model, ModelList

router = Router(tags=["models"], auth=caller())

#: Every model fits one page unless the client asks for less.
MAX_PAGE = 1000


class AnthropicPaging(Schema):
    """Read only for Anthropic's clients; OpenAI's list has no pages."""

    limit: int = Field(MAX_PAGE, ge=1, le=MAX_PAGE)
    after_id: str | SkipJsonSchema[None] = None
    before_id: str | SkipJsonSchema[None] = None


@router.get(
    "/models", response={200: ModelList | AnthropicModelList, **ERRORS}, summary="Models", operation_id="list_models"
)
async def list_models(request: HttpRequest, paging: Query[AnthropicPaging]) -> ModelList | AnthropicModelList:
    """The models this key may call. Clients that send `anthropic-version` get Anthropic's list."""
    names = await _allowed(request)
    if _speaks_anthropic(request):
        return _anthropic_page(names, paging)
    return ModelList(data=[Model(id=name) for name in names])


@router.get(
    "/models/{path:model_id}",
    response={200: Model | AnthropicModel, 404: ErrorBody, **ERRORS},
    summary="One model",
    operation_id="get_model",
)
async def get_model(request: HttpRequest, model_id: str) -> Model | AnthropicModel:
    """404 for a model that does not exist and, in the same words, for one this key may not call."""
    if model_id not in await _allowed(request):
        raise NotFound("The model does not exist.", code="model_not_found", param="model")
    if _speaks_anthropic(request):
        return AnthropicModel(id=model_id, display_name=model_id)
    return Model(id=model_id)


async def _allowed(request: HttpRequest) -> list[str]:
    plane, principal = await ensure_started(), principal_of(request)
    return sorted(name for name in plane.snapshot.models if may_use(principal, name))


def _speaks_anthropic(request: HttpRequest) -> bool:
    return "HTTP_ANTHROPIC_VERSION" in request.META


def _anthropic_page(names: list[str], paging: AnthropicPaging) -> AnthropicModelList:
    if paging.after_id is not None:
        found = [name for name in names if name > paging.after_id]
        page, more = found[: paging.limit], len(found) > paging.limit
    elif paging.before_id is not None:
        found = [name for name in names if name < paging.before_id]
        page, more = found[-paging.limit :], len(found) > paging.limit
    else:
        page, more = names[: paging.limit], len(names) > paging.limit
    data: list[Any] = [AnthropicModel(id=name, display_name=name) for name in page]
    return AnthropicModelList(
        data=data, has_more=more, first_id=page[0] if page else None, last_id=page[-1] if page else None
    )
