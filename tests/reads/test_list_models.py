"""GET /v1/models."""

import anthropic
import httpx2  # what the anthropic package speaks through
import openai
import pytest


async def test_a_key_sees_the_models_it_may_call_and_no_provider(gateway, cast):
    answer = await gateway.ask("/v1/models", cast.keys["app"])
    assert answer.status_code == 200
    models = answer.json()
    assert models["object"] == "list"
    assert [model["id"] for model in models["data"]] == ["fast", "smart-large", "smart-small"]
    assert models["data"][0] == {"id": "fast", "object": "model", "created": 0, "owned_by": "tollbar"}
    assert "alpha" not in answer.text
    assert "beta" not in answer.text


@pytest.mark.parametrize(("key", "visible"), [("narrow", ["smart-large", "smart-small"]), ("other", ["fast"])])
async def test_key_and_tenant_each_narrow_the_list(gateway, cast, key, visible):
    answer = await gateway.ask("/v1/models", cast.keys[key])
    assert [model["id"] for model in answer.json()["data"]] == visible


async def test_one_model_is_found_by_its_id(gateway, cast):
    answer = await gateway.ask("/v1/models/smart-large", cast.keys["app"])
    assert answer.json() == {"id": "smart-large", "object": "model", "created": 0, "owned_by": "tollbar"}


async def test_a_forbidden_model_is_missing_in_the_same_words_as_an_unknown_one(gateway, cast):
    forbidden = await gateway.ask("/v1/models/fast", cast.keys["narrow"], headers={"x-request-id": "same"})
    unknown = await gateway.ask("/v1/models/no-such", cast.keys["narrow"], headers={"x-request-id": "same"})
    assert forbidden.status_code == unknown.status_code == 404
    assert forbidden.json()["error"]["code"] == "model_not_found"
    assert forbidden.content == unknown.content


async def test_anthropics_clients_get_anthropics_list(gateway, cast):
    headers = {"anthropic-version": "2023-06-01"}
    answer = await gateway.ask("/v1/models", cast.keys["app"], headers=headers)
    page = answer.json()
    assert page["data"][0] == {
        "type": "model",
        "id": "fast",
        "display_name": "fast",
        "created_at": "1970-01-01T00:00:00Z",
    }
    assert (page["has_more"], page["first_id"], page["last_id"]) == (False, "fast", "smart-small")
    one = await gateway.ask("/v1/models/fast", cast.keys["app"], headers=headers)
    assert one.json() == page["data"][0]


async def test_the_openai_package_lists_models(gateway, cast):
    client = openai.AsyncOpenAI(api_key=cast.keys["app"], base_url="http://127.0.0.1/v1", http_client=gateway)
    assert [model.id async for model in client.models.list()] == ["fast", "smart-large", "smart-small"]
    assert (await client.models.retrieve("fast")).owned_by == "tollbar"


async def test_the_anthropic_package_pages_through_models(gateway, cast):
    transport = httpx2.ASGITransport(app=gateway.application)
    client = anthropic.AsyncAnthropic(
        api_key=cast.keys["app"],
        base_url="http://127.0.0.1",
        http_client=httpx2.AsyncClient(transport=transport),
    )
    assert [model.id async for model in client.models.list(limit=2)] == ["fast", "smart-large", "smart-small"]
    before = await client.models.list(limit=1, before_id="smart-small")
    assert ([model.id for model in before.data], before.has_more) == (["smart-large"], True)
