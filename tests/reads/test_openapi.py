"""GET /v1/openapi.json and GET /v1/docs."""

import re

import pytest

from proxy.consumers import ROUTES

READS = {"/v1/models", "/v1/models/{model_id}", "/v1/usage", "/v1/audit", "/v1/limits", "/v1/health"}


def references_of(node):
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for child in node.values():
            yield from references_of(child)
    elif isinstance(node, list):
        for child in node:
            yield from references_of(child)


@pytest.fixture
async def document(gateway):
    answer = await gateway.ask("/v1/openapi.json")
    assert answer.status_code == 200
    return answer.json()


async def test_every_endpoint_is_in_the_document_and_nothing_else(document):
    told = {(path, method) for path, item in document["paths"].items() for method in item}
    assert told == {(path, "get") for path in READS} | {(path, "post") for path in ROUTES}


async def test_every_reference_leads_somewhere(document):
    schemas = document["components"]["schemas"]
    for reference in references_of(document):
        assert reference.removeprefix("#/components/schemas/") in schemas
    assert {"ErrorBody", "ChatCall", "ChatCompletionCall", "MessagesCall", "UsageReport"} <= set(schemas)


async def test_every_operation_has_a_name_of_its_own_and_tells_its_errors(document):
    operations = [operation for item in document["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    for operation in operations:
        assert {"200", "400", "401", "403", "500", "503"} <= set(operation["responses"])


async def test_a_key_may_be_sent_in_every_documented_way(gateway, cast, document):
    for name, scheme in document["components"]["securitySchemes"].items():
        header = scheme.get("name", "Authorization")
        value = cast.keys["app"] if scheme["type"] == "apiKey" else f"Bearer {cast.keys['app']}"
        assert (await gateway.ask("/v1/limits", headers={header: value})).status_code == 200, name


@pytest.mark.parametrize("path", ["/v1/openapi.json", "/v1/docs"])
async def test_the_documents_are_public_and_say_nothing_of_the_installation(gateway, cast, path):
    anonymous = await gateway.ask(path)
    assert anonymous.status_code == 200
    for word in (
        "acme",
        "globex",
        "alpha",
        "beta",
        "smart-large",
        "sqlite",
        "postgres",
        "127.0.0.1",
        "/work",
        "Django",
    ):
        assert word not in anonymous.text


async def test_the_page_lists_every_endpoint_and_loads_nothing_from_elsewhere(gateway, document):
    page = await gateway.ask("/v1/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in document["paths"]:
        assert path in page.text
    assert "<script" not in page.text
    assert re.findall(r'(?:src|href)="(?!#|/v1/)', page.text) == []


async def test_documented_statuses_of_a_body_are_those_of_the_error_shape(gateway, document):
    shape = document["components"]["schemas"]["ErrorBody"]
    body = (await gateway.ask("/v1/models")).json()
    assert set(shape["required"]) == set(body)
    problem = document["components"]["schemas"]["Problem"]
    assert set(problem["required"]) == set(problem["properties"]) == set(body["error"])
