"""Embedding calls of clients: what is checked, their canonical form, and answers of other providers."""

import json
import struct
from base64 import b64decode

import pytest

from proxy.canonical import EmbeddingRequest, EmbeddingResponse, Usage
from proxy.context import EMBED, Call
from proxy.dialects.base import STEERING_FIELDS
from proxy.dialects.embeddings import MAX_INPUTS, EmbeddingsDialect
from proxy.errors import BadRequest, Inexpressible
from proxy.metering import Estimate, estimate
from proxy.snapshot import ModelSpec
from tests.proxy.wire import facts

MODEL = ModelSpec(name="smart", strategy="ordered", targets=())


def parsed(**members) -> Call:
    return EmbeddingsDialect().parse_call({"model": "smart", "input": "a"} | members)


def refused_param(**members) -> str | None:
    with pytest.raises(BadRequest) as caught:
        parsed(**members)
    return caught.value.param


@pytest.mark.parametrize("given", ["text", ["a", "b"], [1, 2], [[1, 2], [3]], [5.0]])
def test_a_text_token_ids_and_lists_of_either_are_inputs(given):
    call = parsed(input=given, dimensions=8, user="u", metadata={"a": "b"}, encoding_format="base64", x_vendor=1)
    assert (call.operation, call.stream, call.user, call.metadata) == (EMBED, False, "u", {"a": "b"})
    assert call.body["input"] == given
    assert call.body["x_vendor"] == 1


@pytest.mark.parametrize(
    ("given", "param"),
    [
        (None, "input"),
        ("", "input"),
        ([], "input"),
        ({}, "input"),
        (["a", ""], "input[1]"),
        (["a", 1], "input[1]"),
        ([1, "a"], "input"),
        ([True], "input[0]"),
        ([-1], "input[0]"),
        ([[1], []], "input[1]"),
        ([[1], "a"], "input[1]"),
        ([None], "input[0]"),
        (["a"] * (MAX_INPUTS + 1), "input"),
    ],
)
def test_an_input_that_is_empty_or_mixed_is_refused_by_its_place(given, param):
    assert refused_param(input=given) == param


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimensions", 0),
        ("dimensions", "8"),
        ("encoding_format", "int8"),
        ("encoding_format", ["float"]),
        ("stream", True),
        ("user", 1),
        ("metadata", []),
        ("model", ""),
    ],
)
def test_other_members_are_checked_too(name, value):
    assert refused_param(**{name: value}) == name


@pytest.mark.parametrize("name", sorted(STEERING_FIELDS))
def test_nothing_steers_the_call(name):
    assert refused_param(**{name: "x"}) == name


def test_texts_have_a_canonical_form():
    dialect = EmbeddingsDialect()
    assert dialect.canonical(parsed(input="a", dimensions=3, user="u")) == EmbeddingRequest(
        inputs=["a"], dimensions=3, user="u"
    )
    assert dialect.canonical(parsed(input=["a", "b"])).inputs == ["a", "b"]


@pytest.mark.parametrize("given", [[1, 2], [[1], [2]]])
def test_token_ids_belong_to_one_vocabulary(given):
    with pytest.raises(Inexpressible) as caught:
        EmbeddingsDialect().canonical(parsed(input=given))
    assert caught.value.param == "input"


def rendered(encoding_format: str | None) -> dict:
    response = EmbeddingResponse(vectors=[[0.5, -1.0], [0.25, 0.0]])
    call = parsed(input=["a", "b"], encoding_format=encoding_format)
    return json.loads(EmbeddingsDialect().render_response(call, response, facts(Usage(input_tokens=7))))


def test_vectors_of_another_provider_in_openais_words():
    document = rendered(None)
    assert (document["object"], document["model"]) == ("list", "gpt-x")
    assert document["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert document["data"] == [
        {"object": "embedding", "index": 0, "embedding": [0.5, -1.0]},
        {"object": "embedding", "index": 1, "embedding": [0.25, 0.0]},
    ]


def test_base64_is_little_endian_float32():
    packed = [entry["embedding"] for entry in rendered("base64")["data"]]
    assert [struct.unpack("<2f", b64decode(text)) for text in packed] == [(0.5, -1.0), (0.25, 0.0)]


@pytest.mark.parametrize(
    ("given", "size", "bounds"),
    [
        ("text", 400, Estimate(101, 464, 0, 0)),
        (["a", "b"], 400, Estimate(101, 464, 0, 0)),
        ([1, 2, 3], 400, Estimate(3, 67, 0, 0)),
        ([[1, 2], [3]], 400, Estimate(3, 67, 0, 0)),
    ],
)
def test_only_input_is_reserved_by_bytes_or_by_the_number_of_token_ids(given, size, bounds):
    assert estimate(parsed(input=given), size, MODEL) == bounds
