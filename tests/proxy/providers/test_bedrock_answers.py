"""Whole answers of the Converse API, and vectors of InvokeModel."""

import json

import pytest

from proxy.canonical import (
    ChatRequest,
    ChatResponse,
    EmbeddingRequest,
    EmbeddingResponse,
    Foreign,
    Text,
    Thinking,
    ToolCall,
    Usage,
)
from proxy.context import EMBED, ProviderReply
from proxy.errors import BadRequest, UpstreamFault
from proxy.providers.bedrock import BedrockAdapter
from tests.proxy.bedrock_wire import call_of, target, tool

TITAN, TITAN_1, TITAN_IMAGE = (
    "amazon.titan-embed-text-v2:0",
    "amazon.titan-embed-text-v1",
    "amazon.titan-embed-image-v1",
)
COHERE_3, COHERE_4 = "cohere.embed-multilingual-v3", "us.cohere.embed-v4:0"
USAGE = {"inputTokens": 25, "outputTokens": 9, "totalTokens": 34, "serverToolUsage": {}}


def reply(document, **headers: str) -> ProviderReply:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return ProviderReply(200, {name.replace("_", "-"): value for name, value in headers.items()}, body)


def answered(*blocks: dict, reason: str = "end_turn", names: tuple[str, ...] = (), **members) -> ChatResponse:
    message = {"role": "assistant", "content": list(blocks)}
    document = {"output": {"message": message}, "stopReason": reason, "usage": USAGE, "metrics": {}} | members
    request = ChatRequest(messages=[], tools=[tool(name) for name in names])
    found = BedrockAdapter().parse_response(call_of(request), reply(document))
    assert isinstance(found, ChatResponse)
    return found


def fault_of(document) -> UpstreamFault:
    with pytest.raises(UpstreamFault) as fault:
        BedrockAdapter().parse_response(call_of(ChatRequest(messages=[])), reply(document))
    return fault.value


def test_a_text():
    assert answered({"text": "Grüße 🌍"}) == ChatResponse(
        parts=[Text("Grüße 🌍")],
        finish_reason="stop",
        native_finish="end_turn",
        usage=Usage(input_tokens=25, output_tokens=9),
    )


def test_calls_have_their_input_as_json_text():
    found = answered(
        {"text": "Let me look."},
        {"toolUse": {"toolUseId": "a", "name": "weather", "input": {"city": "Zürich"}}},
        {"toolUse": {"toolUseId": "b", "name": "time", "input": {}}},
        {"toolUse": {"toolUseId": "c", "name": "time"}},
        reason="tool_use",
    )
    assert found.parts[1:] == [
        ToolCall("a", "weather", '{"city":"Zürich"}'),
        ToolCall("b", "time", "{}"),
        ToolCall("c", "time", "{}"),
    ]
    assert found.finish_reason == "tool_calls"


def test_a_turn_that_ends_with_calls_in_it_calls_tools_whatever_it_says():
    found = answered({"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}, reason="end_turn")
    assert (found.finish_reason, found.native_finish) == ("tool_calls", "end_turn")


def test_thinking_keeps_its_signature():
    found = answered(
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}},
        {"reasoningContent": {"reasoningText": {"text": "unsigned"}}},
        {"reasoningContent": {"redactedContent": "eHg="}},
        {"reasoningContent": {"somethingNew": 1}},
    )
    assert found.parts == [Thinking("hm", signature="sig"), Thinking("unsigned"), Thinking(redacted="eHg=")]


def test_cited_texts_are_texts():
    citation = {"location": {"web": {"url": "https://x"}}}
    found = answered(
        {"text": "It has "},
        {"citationsContent": {"content": [{"text": "20 days"}, {"text": ""}], "citations": [citation]}},
        {"citationsContent": {"citations": [citation]}},
        {"text": "."},
    )
    assert [part.text for part in found.parts] == ["It has ", "20 days", "."]


def test_what_aws_runs_itself_is_no_call_of_the_caller():
    use = {"toolUse": {"toolUseId": "a", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
    result = {"toolResult": {"toolUseId": "a", "content": [{"text": "found"}], "type": "nova_grounding_result"}}
    assert answered(use, result, {"text": "So it is."}, reason="tool_use").parts == [Text("So it is.")]
    assert answered(use, result, reason="tool_use").finish_reason == "stop"
    assert answered(use, result, names=("nova_grounding",)).parts == [ToolCall("a", "nova_grounding", "{}")]


def test_a_block_of_another_kind_is_kept_as_foreign():
    block = {"image": {"format": "png", "source": {"bytes": "eA=="}}}
    assert answered(block).parts == [Foreign("bedrock", "image", block)]


def test_the_stop_sequence_is_told():
    found = answered({"text": "a"}, reason="stop_sequence", additionalModelResponseFields={"stop_sequence": "END"})
    assert (found.finish_reason, found.stop_sequence) == ("stop", "END")


def test_older_names_of_cached_tokens_count():
    usage = {"inputTokens": 3, "outputTokens": 1, "cacheReadInputTokenCount": 10, "cacheWriteInputTokenCount": 5}
    found = answered({"text": "a"}, usage=usage).usage
    assert found is not None
    assert (found.input_tokens, found.cache_read_tokens, found.cache_write_tokens) == (18, 10, 5)


@pytest.mark.parametrize("usage", [None, {}, [], {"inputTokens": -1, "outputTokens": 1}, {"inputTokens": 10**12}])
def test_usage_that_is_missing_or_makes_no_sense_is_none(usage):
    assert answered({"text": "a"}, usage=usage).usage is None


@pytest.mark.parametrize(
    "document",
    [b"", b"<html>", b"[]", b'{"output": {"message": {"content"', {}, {"output": {}}, {"output": {"message": {}}}],
)
def test_what_is_no_answer_is_a_breach_of_protocol(document):
    assert fault_of(document).kind == "protocol"


def test_an_error_with_status_200_is_told_by_its_name():
    fault = fault_of({"__type": "com.amazon.bedrock#ThrottlingException", "message": "slow down"})
    assert (fault.kind, fault.message, fault.status) == ("rate_limit", "slow down", 200)


@pytest.mark.parametrize("use", [{"name": "f"}, {"toolUseId": "a"}])
def test_a_call_without_id_or_name_is_a_breach_of_protocol(use):
    with pytest.raises(UpstreamFault) as fault:
        answered({"toolUse": use})
    assert fault.value.kind == "protocol"


# ------------------------------------------------------------------ embeddings


def embedding(*inputs: str, dimensions: int | None = None):
    return call_of(EmbeddingRequest(inputs=list(inputs), dimensions=dimensions), operation=EMBED)


def embedding_sent(model: str, *inputs: str, dimensions: int | None = None) -> dict:
    request = BedrockAdapter().build_request(embedding(*inputs, dimensions=dimensions), target(model))
    assert request.url.endswith("/invoke")
    assert request.aws_region == "eu-west-1"
    return json.loads(request.body)


def vectors(document, *inputs: str, **headers: str) -> EmbeddingResponse:
    found = BedrockAdapter().parse_response(embedding(*inputs), reply(document, **headers))
    assert isinstance(found, EmbeddingResponse)
    return found


def test_titan_is_asked_for_the_vector_of_one_text():
    assert embedding_sent(TITAN, "a") == {"inputText": "a"}
    assert embedding_sent(TITAN, "a", dimensions=256) == {"inputText": "a", "dimensions": 256}
    assert embedding_sent(TITAN_IMAGE, "a", dimensions=256)["embeddingConfig"] == {"outputEmbeddingLength": 256}


def test_cohere_is_asked_for_all_texts_at_once():
    body = {"texts": ["a", "b"], "input_type": "search_document", "embedding_types": ["float"]}
    assert embedding_sent(COHERE_3, "a", "b") == body
    assert embedding_sent(COHERE_4, "a", "b", dimensions=512) == body | {"output_dimension": 512}


@pytest.mark.parametrize(
    ("model", "inputs", "dimensions", "param"),
    [
        (TITAN, ("a", "b"), None, "input"),
        (TITAN_1, ("a",), 256, "dimensions"),
        (COHERE_3, ("a",), 256, "dimensions"),
        ("amazon.nova-lite-v1:0", ("a",), None, "model"),
    ],
)
def test_what_a_model_cannot_be_asked_is_refused_by_name(model, inputs, dimensions, param):
    with pytest.raises(BadRequest) as refusal:
        embedding_sent(model, *inputs, dimensions=dimensions)
    assert refusal.value.param == param


def test_vectors_of_titan_with_the_tokens_it_counts():
    assert vectors({"embedding": [0.5, 1], "inputTextTokenCount": 3}, "a") == EmbeddingResponse(
        vectors=[[0.5, 1]], usage=Usage(input_tokens=3)
    )


@pytest.mark.parametrize("found", [[[0.5], [1.5]], {"float": [[0.5], [1.5]]}])
def test_vectors_of_cohere_with_the_tokens_of_the_header(found):
    answer = vectors({"embeddings": found, "id": "x"}, "a", "b", x_amzn_bedrock_input_token_count="7")
    assert answer == EmbeddingResponse(vectors=[[0.5], [1.5]], usage=Usage(input_tokens=7))


@pytest.mark.parametrize("count", ["", "-3", "many", "9" * 11, "٣"])
def test_a_count_that_makes_no_sense_is_none(count):
    assert vectors({"embedding": [0.5]}, "a", x_amzn_bedrock_input_token_count=count).usage is None


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"embeddings": [[0.5]]},
        {"embeddings": {"int8": [[1], [2]]}},
        {"embeddings": [[], []]},
        {"embeddings": [[0.5], ["x"]]},
        {"embeddings": [[True], [0.5]]},
        b"no",
    ],
)
def test_anything_but_one_vector_for_each_text_is_a_breach_of_protocol(document):
    with pytest.raises(UpstreamFault) as fault:
        vectors(document, "a", "b")
    assert fault.value.kind == "protocol"
