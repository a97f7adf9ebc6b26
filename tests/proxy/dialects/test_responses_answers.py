"""Answers of other providers in OpenAI's Responses API, whole and streamed, read back by the official types."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.responses import Response

from proxy.canonical import (
    ChatResponse,
    Finished,
    Foreign,
    ForeignDelta,
    RedactedThinking,
    RefusalDelta,
    SignatureDelta,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    Usage,
    UsageSeen,
)
from proxy.context import ANTHROPIC, Call
from proxy.dialects.responses import ResponsesDialect
from tests.proxy.responses_wire import read_events
from tests.proxy.wire import facts

DIALECT = ResponsesDialect()
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def call_of(**members) -> Call:
    return DIALECT.parse_call({"model": "smart", "input": "hi"} | members)


def whole(*parts, call: Call | None = None, **members) -> Any:
    response = ChatResponse(parts=list(parts), **members)
    told = facts(Usage(input_tokens=20, output_tokens=9, cache_read_tokens=8, reasoning_tokens=4))
    raw = DIALECT.render_response(call or call_of(), response, told)
    return Response.model_validate_json(raw)


def streamed(*events, pieces: int = 1) -> list[dict]:
    """The events a client gets; `pieces`: so many canonical events at once."""
    renderer = DIALECT.stream_renderer(call_of(), "req_1", "gpt-x")
    out = b""
    for start in range(0, len(events), pieces):
        out += renderer.render(list(events[start : start + pieces]))
    return read_events(out + renderer.end(facts()))


def sent_back(output: list) -> list:
    """The canonical parts of an answer that the client sends back as it got it."""
    items = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in output]
    request = DIALECT.canonical(call_of(input=[{"role": "user", "content": "hi"}, *items]))
    return request.messages[1].parts if len(request.messages) > 1 else []


# ---------------------------------------------------------------- whole answers


def test_an_answer_has_every_item_and_the_usage():
    call = ToolCall("c1", "f", '{"a":1}')
    answer = whole(Thinking(text="hm"), Text("Hello "), Text("you"), call, finish_reason="tool_calls")
    assert [item.type for item in answer.output] == ["reasoning", "message", "function_call"]
    assert answer.output_text == "Hello you"
    assert (answer.status, answer.model, answer.incomplete_details, answer.error) == ("completed", "gpt-x", None, None)
    assert answer.id.startswith("resp_")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens, answer.usage.total_tokens) == (20, 9, 29)
    assert answer.usage.input_tokens_details.cached_tokens == 8
    assert answer.usage.output_tokens_details.reasoning_tokens == 4


def test_the_answer_repeats_what_was_asked():
    call = call_of(
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
        top_p=0.5,
        max_output_tokens=9,
        instructions="Be brief.",
        metadata={"a": "b"},
        text={"format": {"type": "json_object"}},
        reasoning={"effort": "low"},
        user="u",
    )
    answer = whole(Text("a"), call=call).model_dump()
    expected = {
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "temperature": 0,
        "top_p": 0.5,
        "max_output_tokens": 9,
        "instructions": "Be brief.",
        "metadata": {"a": "b"},
        "user": "u",
        "store": False,
    }
    assert {name: answer[name] for name in expected} == expected
    assert answer["text"]["format"]["type"] == "json_object"
    assert answer["reasoning"]["effort"] == "low"
    assert [(tool["name"], tool["parameters"]) for tool in answer["tools"]] == [("f", {"type": "object"})]


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
    ],
)
def test_why_it_stopped_is_told_by_the_status(finish, status, reason):
    answer = whole(Thinking(text="hm"), Text("a"), finish_reason=finish)
    assert answer.status == status == answer.output[1].status
    assert (answer.incomplete_details.reason if answer.incomplete_details else None) == reason
    last = streamed(TextDelta("a"), Finished(finish))[-1]
    assert last["type"] == f"response.{status}"
    assert last["response"]["output"][0]["status"] == status


def test_a_refusal_is_a_part_of_the_message():
    answer = whole(Text("well"), refusal="no")
    assert [part.type for part in answer.output[0].content] == ["output_text", "refusal"]
    assert whole(refusal="no").output[0].content[0].refusal == "no"


def test_an_answer_of_nothing_and_blocks_of_others_are_no_items():
    assert whole(Text(""), Foreign(ANTHROPIC, "server_tool_use", {})).output == []


def test_signatures_survive_the_way_through_openais_types():
    parts = [
        Thinking(text="hm", signature="sig=="),
        Thinking(redacted="blob"),
        Text("I call."),
        ToolCall("c1", "f", '{"a":1}', signature="for the call"),
        ToolCall("c2", "f", "{}"),
    ]
    assert sent_back(whole(*parts, finish_reason="tool_calls").output) == parts


# ---------------------------------------------------------------- streams


def test_the_events_of_a_text():
    found = streamed(TextDelta("Hello "), TextDelta("you"), Finished("stop"), UsageSeen(Usage()))
    assert [event["type"] for event in found] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert found[-1]["response"]["usage"]["total_tokens"] == 7
    assert found[-1]["response"]["id"] == found[0]["response"]["id"]


def test_the_events_of_thinking_and_a_call():
    found = streamed(
        ThinkingDelta("hm"),
        SignatureDelta("sig"),
        ToolCallStart(0, "c1", "f", "for the call"),
        ToolCallDelta(0, '{"a"'),
        ToolCallDelta(0, ":1}"),
        Finished("tool_calls"),
    )
    assert [event["type"].removeprefix("response.") for event in found[2:-1]] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert sent_back(found[-1]["response"]["output"]) == [
        Thinking(text="hm", signature="sig"),
        ToolCall("c1", "f", '{"a":1}', signature="for the call"),
    ]


def test_a_call_is_done_when_the_next_item_begins_and_fragments_may_interleave():
    found = streamed(
        ToolCallStart(0, "c1", "f"),
        ToolCallDelta(0, '{"a":'),
        ToolCallStart(1, "c2", "g"),
        ToolCallDelta(1, "{}"),
        ToolCallDelta(0, "1}"),
        TextDelta("so"),
        Finished("tool_calls"),
    )
    done = [event["output_index"] for event in found if event["type"] == "response.output_item.done"]
    said = next(number for number, event in enumerate(found) if event["type"] == "response.output_text.delta")
    assert done == [0, 1, 2]
    assert [e["type"] for e in found[:said]].count("response.output_item.done") == 2
    calls = found[-1]["response"]["output"][:2]
    assert [call["arguments"] for call in calls] == ['{"a":1}', "{}"]


def test_a_stream_without_content_is_still_whole():
    assert [event["type"] for event in streamed()] == ["response.created", "response.in_progress", "response.completed"]


def test_a_stream_that_breaks_ends_with_an_error_event_and_nothing_else():
    renderer = DIALECT.stream_renderer(call_of(), "req_1", "gpt-x")
    out = renderer.render([TextDelta("a")])
    out += renderer.fail("went wrong", "upstream_error", "api_error", "req_1")
    assert renderer.render([TextDelta("b")]) == renderer.end(facts()) == renderer.fail("", "", "", "") == b""
    found = read_events(out)
    assert [event["sequence_number"] for event in found] == list(range(6))
    assert (found[-1]["type"], found[-1]["code"], found[-1]["message"]) == ("error", "upstream_error", "went wrong")


TEXTS = st.text(max_size=4)
EVENTS = st.lists(
    st.one_of(
        st.builds(TextDelta, TEXTS),
        st.builds(ThinkingDelta, TEXTS),
        st.builds(SignatureDelta, TEXTS),
        st.builds(RedactedThinking, TEXTS),
        st.builds(RefusalDelta, TEXTS),
        st.builds(
            ToolCallStart,
            st.integers(0, 2),
            st.sampled_from(["c1", "c2"]),
            st.sampled_from(["f", "g"]),
            st.sampled_from([None, "s"]),
        ),
        st.builds(ToolCallDelta, st.integers(0, 2), st.sampled_from(["", "{", "}", '"a":1', "{}", " "])),
        st.builds(ForeignDelta, st.just(ANTHROPIC), st.just({})),
        st.builds(UsageSeen, st.just(Usage(input_tokens=1))),
        st.builds(Finished, st.sampled_from(["stop", "length", "tool_calls", "content_filter"])),
    ),
    max_size=12,
)


class Client:
    """Builds the output from events and checks every rule of their order on the way."""

    def __init__(self) -> None:
        self.output: list[dict] = []
        self.open: set[int] = set()
        self.parts: dict[int, str | None] = {}

    def take(self, event: dict) -> None:
        kind = event["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert event["output_index"] == len(self.output)
            self.open.add(event["output_index"])
            self.output.append(event["item"])
            return
        index = event["output_index"]
        assert index in self.open
        item = self.output[index]
        if kind == "output_item.done":
            self.open.remove(index)
            assert self.parts.get(index) is None
            assert {**event["item"], "status": "", "encrypted_content": ""} == {
                **item,
                "status": "",
                "encrypted_content": "",
            }
            self.output[index] = event["item"]
            return
        assert event["item_id"] == item["id"]
        if kind.startswith("function_call_arguments"):
            self.take_arguments(kind, item, event)
        else:
            self.take_part(kind, item, event)

    def take_arguments(self, kind: str, item: dict, event: dict) -> None:
        if kind.endswith("delta"):
            item["arguments"] += event["delta"]
        else:
            assert (item["arguments"], item["name"]) == (event["arguments"], event["name"])

    def take_part(self, kind: str, item: dict, event: dict) -> None:
        index = event["output_index"]
        reasoning = item["type"] == "reasoning"
        parts = item["summary" if reasoning else "content"]
        place = event["summary_index" if reasoning else "content_index"]
        if kind.endswith("part.added"):
            assert (self.parts.get(index), place) == (None, len(parts))
            parts.append(event["part"])
            self.parts[index] = "open"
            return
        assert place == len(parts) - 1
        member = "refusal" if kind.startswith("refusal") else "text"
        if kind.endswith("part.done"):
            assert self.parts[index] == "said"
            assert event["part"] == parts[place]
            self.parts[index] = None
        elif kind.endswith("delta"):
            assert event["delta"]
            assert self.parts[index] == "open"
            parts[place][member] += event["delta"]
        else:
            assert event[member] == parts[place][member]
            self.parts[index] = "said"


@given(EVENTS, st.integers(1, 12))
def test_any_order_of_events_is_a_well_formed_stream(events, pieces):
    found = streamed(*events, pieces=pieces)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert [event["type"] for event in found[:2]] == ["response.created", "response.in_progress"]
    client = Client()
    for event in found[2:-1]:
        client.take(event)
    last = found[-1]["response"]
    assert not client.open
    assert found[-1]["type"] == f"response.{last['status']}"
    assert last["output"] == client.output
    Response.model_validate(last)
    assert json.dumps(last)
