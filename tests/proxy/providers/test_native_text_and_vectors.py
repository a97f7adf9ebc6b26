"""Legacy completions and embeddings between clients and providers that both speak OpenAI's words."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.canonical import Usage
from proxy.context import COMPLETIONS, EMBED, EMBEDDINGS, OPENAI, Answer, Call, ProviderReply, ProviderTarget
from proxy.dialects.completions import CompletionsDialect
from proxy.dialects.embeddings import EmbeddingsDialect
from proxy.errors import UpstreamFault
from proxy.openai_format.text import TextRelay
from proxy.providers.base import adapter_for
from proxy.providers.mock import MOCK_SCHEME, mock_reply
from tests.proxy.wire import documents, facts, pieces_of, play, sse

KINDS = ("openai", "openai_compatible", "azure_openai", "mock")


def target(kind: str = "openai") -> ProviderTarget:
    return ProviderTarget(provider="main", kind=kind, model="gpt-x", base_url="https://llm.example/v1", secret="s3")


def text_call(**members) -> Call:
    return CompletionsDialect().parse_call({"model": "smart", "prompt": "Once", "max_tokens": 9} | members)


def vector_call(**members) -> Call:
    return EmbeddingsDialect().parse_call({"model": "smart", "input": ["a", "b"]} | members)


def passed(call: Call, document) -> Answer:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return adapter_for("openai").pass_through(call, ProviderReply(200, {}, body))


def fault(call: Call, document) -> UpstreamFault:
    with pytest.raises(UpstreamFault) as caught:
        passed(call, document)
    return caught.value


def text_chunk(text: str | None = "", finish: str | None = None, index: int = 0, **members) -> dict:
    choice = {"text": text, "index": index, "logprobs": None, "finish_reason": finish}
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m-1", "choices": [choice]} | members


USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
CLOSE = text_chunk("", "stop")
COUNTED = text_chunk(choices=[], usage=USAGE)


def relayed(*events, call: Call | None = None, pieces: list[int] | None = None) -> tuple[TextRelay, list]:
    relay = TextRelay(call or text_call(stream=True))
    raw = play(relay, pieces_of(sse(*events), pieces or []))
    assert relay.fault is None
    return relay, documents(raw + relay.end(facts()))


@pytest.mark.parametrize("kind", KINDS)
def test_all_relatives_speak_these_words_and_embed(kind):
    adapter = adapter_for(kind)
    assert {OPENAI, COMPLETIONS, EMBEDDINGS} <= adapter.dialects
    assert EMBED in adapter.operations


# ---------------------------------------------------------------- requests


def test_a_completion_is_forwarded_with_the_targets_model():
    call = text_call(prompt=[1, 2], suffix="end", x_vendor={"a": 1})
    request = adapter_for("openai_compatible").build_request(call, target())
    assert request.url == "https://llm.example/v1/completions"
    assert json.loads(request.body) == call.body | {"model": "gpt-x"}
    assert call.body["model"] == "smart"


def test_the_limit_is_always_named_and_usage_asked_for_in_a_stream():
    call = text_call(max_tokens=None, stream=True, stream_options={"include_obfuscation": False})
    body = json.loads(adapter_for("openai").build_request(call, target()).body)
    assert body["max_tokens"] == 16
    assert body["stream_options"] == {"include_obfuscation": False, "include_usage": True}


def test_an_embedding_call_is_forwarded_as_it_is():
    call = vector_call(input=[[1, 2], [3]], dimensions=5, encoding_format="base64", x_vendor=1)
    call.output_cap = 100
    request = adapter_for("openai").build_request(call, target())
    assert request.url == "https://llm.example/v1/embeddings"
    assert json.loads(request.body) == call.body | {"model": "gpt-x"}


# ---------------------------------------------------------------- whole answers


def test_a_completion_passes_with_its_usage_and_finish_reason():
    body = json.dumps(text_chunk("upon", "length") | {"usage": USAGE}).encode()
    answer = passed(text_call(), body)
    assert (answer.body, answer.finish_reason) == (body, "length")
    assert answer.usage == Usage(input_tokens=3, output_tokens=5)


def test_a_completion_without_usage_is_counted_by_the_texts_of_all_choices():
    choices = [{"text": "abc", "index": 0}, {"text": "de", "index": 1}]
    answer = passed(text_call(n=2), text_chunk(choices=choices))
    assert (answer.usage, answer.produced_chars) == (None, 5)


def test_vectors_pass_undecoded_with_the_tokens_of_the_input():
    usage = b'{"prompt_tokens":7,"total_tokens":9}'
    body = b'\n  {"object":"list","data":[{"index":0,"embedding":[0.1,2e-3]}],"usage":%b}' % usage
    answer = passed(vector_call(), body)
    assert (answer.body, answer.usage) == (body, Usage(input_tokens=7))


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [({"total_tokens": 4}, 4), ({"prompt_tokens": 0}, 0), ({"prompt_tokens": -1}, None), ({}, None), (None, None)],
)
def test_usage_of_vectors_in_other_shapes(usage, tokens):
    counted = passed(vector_call(), {"data": [{"embedding": [1]}], "usage": usage}).usage
    assert counted == (None if tokens is None else Usage(input_tokens=tokens))


@pytest.mark.parametrize("call", [text_call(), vector_call()])
def test_what_is_no_answer_is_a_fault(call):
    bad: list[Any] = [b"<html>", b'{"data":[', {}, {"choices": [], "data": []}, [], {"data": 1, "choices": 1}]
    for document in bad:
        assert fault(call, document).kind == "protocol"
    told = fault(call, {"error": {"message": "too many", "code": 429}})
    assert (told.kind, told.message) == ("rate_limit", "too many")


# ---------------------------------------------------------------- streams


def test_a_stream_passes_with_its_finish_reason_last():
    relay, events = relayed(text_chunk("up"), text_chunk("on"), CLOSE, COUNTED, "DONE")
    assert events == [text_chunk("up"), text_chunk("on"), CLOSE, "DONE"]
    assert (relay.usage, relay.usage_final, relay.finish_reason) == (Usage(3, 5), True, "stop")
    assert relay.produced_chars == 4


def test_usage_is_handed_on_when_the_client_asked_for_it():
    call = text_call(stream=True, stream_options={"include_usage": True})
    _, events = relayed(text_chunk("up", usage=None), CLOSE, COUNTED, "DONE", call=call)
    assert events[-2:] == [COUNTED, "DONE"]
    _, silent = relayed(text_chunk("up", usage=None), CLOSE, "DONE", call=call)
    assert silent[-2]["object"] == "text_completion"
    assert silent[-2]["usage"]["total_tokens"] == 7, "made up of what was settled"


def test_a_client_that_did_not_ask_sees_no_usage_at_all():
    _, events = relayed(text_chunk("up", usage=None), text_chunk("", "stop", usage=USAGE), "DONE")
    assert not any("usage" in event for event in events[:-1])


def test_several_choices_end_each_for_itself():
    call = text_call(stream=True, n=2)
    relay, events = relayed(
        text_chunk("a"), text_chunk("b", index=1), text_chunk("c", "length"), text_chunk("late"), "DONE", call=call
    )
    texts = [(e["choices"][0]["index"], e["choices"][0]["text"], e["choices"][0]["finish_reason"]) for e in events[:-1]]
    assert texts == [(0, "a", None), (1, "b", None), (0, "c", "length"), (1, "", "stop")]
    assert relay.finish_reason == "length"


def test_a_provider_without_an_end_marker_ends_with_its_finish_reasons():
    _, events = relayed(text_chunk("up"), CLOSE)
    assert events[-1] == "DONE"


def test_a_chunk_is_called_what_it_is():
    _, events = relayed(text_chunk(None, object="chat.completion.chunk"), text_chunk("a", object=""), CLOSE, "DONE")
    assert {event["object"] for event in events[:-1]} == {"text_completion"}
    assert events[0]["choices"][0]["text"] == ""


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([text_chunk("up")], "protocol"),
        (["DONE"], "protocol"),
        ([text_chunk("up"), {"error": {"message": "no", "type": "server_error"}}], "server"),
        ([text_chunk("up"), {"object": "error", "message": "no", "code": 400}], "request"),
        ([text_chunk("up"), text_chunk("", "error")], "server"),
        ([text_chunk("up"), b"data: {cut\n\n"], "protocol"),
        ([text_chunk("up", index=0), text_chunk("", index=7)], "protocol"),
    ],
)
def test_a_stream_that_breaks_is_a_fault_and_never_an_end(events, kind):
    relay = TextRelay(text_call(stream=True))
    raw = play(relay, [sse(*events)])
    assert relay.fault is not None
    assert (relay.fault.kind, relay.done) == (kind, False)
    assert b'finish_reason":"stop' not in raw


def test_nothing_is_handed_out_before_the_first_text():
    relay = TextRelay(text_call(stream=True))
    assert relay.feed(sse(text_chunk(""), text_chunk(choices=[], prompt_filter_results=[]))) == b""
    assert not relay.started
    assert len(documents(relay.feed(sse(text_chunk("up"))))) == 3


TEXTS = st.lists(st.text(min_size=1), min_size=1, max_size=5)


@given(TEXTS, st.lists(st.integers(min_value=0), max_size=8))
def test_any_cuts_give_the_same_stream(texts, cuts):
    events = [*map(text_chunk, texts), CLOSE, COUNTED, "DONE"]
    relay, told = relayed(*events, pieces=cuts)
    assert "".join(event["choices"][0]["text"] for event in told[:-1]) == "".join(texts)
    assert told == relayed(*events)[1]
    assert relay.usage == Usage(3, 5)


# ---------------------------------------------------------------- the mock provider


def mocked(call: Call, model: str = "echo") -> tuple[str, bytes]:
    request = adapter_for("mock").build_request(call, target("mock"))
    reply = mock_reply(json.loads(request.body), model, 1)
    return request.url, b"".join(piece for _, piece in reply.pieces)


def test_the_mock_goes_on_with_a_prompt_whole_and_in_pieces():
    url, body = mocked(text_call(prompt=["Once upon"]))
    assert url == f"{MOCK_SCHEME}completions"
    assert json.loads(body)["choices"][0]["text"] == " Echo: Once upon"
    call = text_call(stream=True, max_tokens=2)
    relay = TextRelay(call)
    events = documents(play(relay, [mocked(call)[1]]) + relay.end(facts()))
    assert "".join(event["choices"][0]["text"] for event in events[:-1]) == " Echo: O"
    assert (relay.finish_reason, relay.usage) == ("length", Usage(1, 2))


def test_the_mock_embeds_the_same_words_alike():
    _, body = mocked(vector_call(input=["red fish", "Fish red", "blue sky"]))
    first, second, third = (entry["embedding"] for entry in json.loads(body)["data"])
    assert first == second != third
    assert math.isclose(sum(value * value for value in first), 1)
    assert passed(vector_call(), body).usage == Usage(input_tokens=6)
    _, packed = mocked(vector_call(input=[1, 2], dimensions=3, encoding_format="base64"))
    assert len(json.loads(packed)["data"][0]["embedding"]) == 16
