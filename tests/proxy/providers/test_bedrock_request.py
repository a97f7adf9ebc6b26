"""What of a request stands beside its messages: limits, tools, formats, thinking, and where it is sent."""

import json
from urllib.parse import unquote

import pytest

from proxy.canonical import (
    ChatRequest,
    Foreign,
    Message,
    ResponseFormat,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.context import CHAT, EMBED
from proxy.errors import BadRequest, UpstreamFault
from proxy.providers.base import adapter_for
from proxy.providers.bedrock import BedrockAdapter
from tests.proxy.bedrock_wire import CLAUDE, NOVA, OLD_CLAUDE, asked, call_of, target, tool, written

HI = ChatRequest(messages=[Message("user", [Text("hi")])])
NEW_CLAUDE = "us.anthropic.claude-opus-4-7"
CLAUDE_4 = "eu.anthropic.claude-sonnet-4-20250514-v1:0"
GPT = "openai.gpt-oss-120b-1:0"
NOVA_2 = "us.amazon.nova-2-lite-v1:0"
PROFILE = "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/a1b2c3d4e5f6"
SCHEMA = {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}}


def sent(model: str = CLAUDE, *, stream: bool = False, **members):
    return BedrockAdapter().build_request(call_of(HI, stream=stream), target(model, **members))


# ------------------------------------------------------------------ where and as whom


def test_the_kind_is_found_by_its_name():
    adapter = adapter_for("bedrock")
    assert isinstance(adapter, BedrockAdapter)
    assert (adapter.dialects, adapter.operations) == (frozenset(), frozenset((CHAT, EMBED)))


def test_the_endpoint_is_the_regions_and_the_request_is_to_be_signed():
    request = sent()
    assert request.url == (
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    )
    assert request.aws_region == "eu-west-1"
    assert request.headers == {"content-type": "application/json", "accept": "application/json"}


def test_a_stream_is_another_operation():
    request = sent(stream=True)
    assert request.url.endswith("/converse-stream")
    assert request.headers["accept"] == "application/vnd.amazon.eventstream"
    assert json.loads(request.body) == {"messages": [{"role": "user", "content": [{"text": "hi"}]}]}


def test_an_arn_is_one_segment_of_the_path():
    path = sent(PROFILE).url.removeprefix("https://bedrock-runtime.eu-west-1.amazonaws.com")
    assert path.count("/") == 3
    assert unquote(path) == f"/model/{PROFILE}/converse"


def test_a_key_of_the_provider_is_a_bearer_token_and_nothing_is_signed():
    request = sent(secret="bedrock-api-key-x")
    assert (request.headers["authorization"], request.aws_region) == ("Bearer bedrock-api-key-x", None)


@pytest.mark.parametrize(
    ("base_url", "region"),
    [
        ("https://bedrock-runtime.us-west-2.amazonaws.com", "us-west-2"),
        ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com/", "us-gov-west-1"),
        ("https://vpce-1-2.bedrock-runtime.eu-central-1.vpce.amazonaws.com", "eu-central-1"),
    ],
)
def test_the_region_may_stand_in_the_address(base_url, region):
    request = sent(base_url=base_url, region=None)
    assert request.aws_region == region
    assert request.url.startswith(f"{base_url.rstrip('/')}/model/")


def test_a_given_region_counts_more_than_the_address():
    assert sent(base_url="http://127.0.0.1:9/p", region="ap-south-1").aws_region == "ap-south-1"


def test_china_has_a_domain_of_its_own():
    assert sent(region="cn-north-1").url.startswith("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/")


@pytest.mark.parametrize("members", [{}, {"base_url": "http://127.0.0.1:9"}])
def test_no_region_anywhere_is_the_operators_fault(members):
    with pytest.raises(UpstreamFault) as fault:
        sent(region=None, **members)
    assert fault.value.kind == "credential"


def test_a_token_at_an_address_needs_no_region():
    assert sent(region=None, secret="k", base_url="http://127.0.0.1:9").aws_region is None


def test_further_headers_of_the_operator_are_sent():
    assert sent(headers={"X-Team": "search"}).headers["x-team"] == "search"


# ------------------------------------------------------------------ inferenceConfig


def test_limits_and_sampling():
    body = asked(max_tokens=100, temperature=0.5, stop=["END"], model=OLD_CLAUDE, top_p=0.9)
    assert body["inferenceConfig"] == {"maxTokens": 100, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}
    assert body["additionalModelResponseFieldPaths"] == ["/stop_sequence"]


def test_nothing_asked_for_is_nothing_sent():
    assert set(asked()) == {"messages"}


def test_the_cap_of_admission_is_the_limit_when_the_caller_names_none():
    assert written(HI, output_cap=77)["inferenceConfig"] == {"maxTokens": 77}
    assert written(ChatRequest(messages=HI.messages, max_tokens=5), output_cap=77)["inferenceConfig"] == {
        "maxTokens": 5
    }


def test_temperature_ends_at_1():
    assert asked(temperature=1.7)["inferenceConfig"] == {"temperature": 1}


def test_only_claude_refuses_both_sampling_parameters_at_once():
    assert asked(temperature=0.5, top_p=0.9)["inferenceConfig"] == {"temperature": 0.5}
    assert asked(top_p=0.9)["inferenceConfig"] == {"topP": 0.9}
    assert asked(temperature=0.5, top_p=0.9, model=NOVA)["inferenceConfig"] == {"temperature": 0.5, "topP": 0.9}
    assert "inferenceConfig" not in asked(temperature=0.5, top_p=0.9, model=NEW_CLAUDE)


def test_top_k_is_told_in_the_words_of_the_model():
    assert asked(top_k=5)["additionalModelRequestFields"] == {"top_k": 5}
    assert asked(top_k=5, model=NOVA)["additionalModelRequestFields"] == {"inferenceConfig": {"topK": 5}}
    assert "additionalModelRequestFields" not in asked(top_k=5, model="meta.llama3-8b-instruct-v1:0")


def test_a_blank_stop_sequence_is_refused():
    with pytest.raises(BadRequest) as refusal:
        asked(stop=["\n"])
    assert refusal.value.param == "stop"


def test_system_texts_keep_their_marks():
    body = asked(system=[Text("a", {"type": "ephemeral"}), Text(" "), Text("b")])
    assert body["system"] == [{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}]


# ------------------------------------------------------------------ tools


def test_tools_and_their_marks():
    tools = [tool(cache_control={"type": "ephemeral"}), Tool("time", "")]
    specs = [
        {
            "toolSpec": {
                "name": "weather",
                "description": "Tells the weather",
                "inputSchema": {"json": {"type": "object", "properties": {"city": {"type": "string"}}}},
            }
        },
        {"cachePoint": {"type": "default"}},
        {"toolSpec": {"name": "time", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
    ]
    assert asked(tools=tools)["toolConfig"] == {"tools": specs}
    assert asked(tools=tools, model=NOVA)["toolConfig"] == {"tools": [specs[0], specs[2]]}


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (None, None),
        (ToolChoice("auto"), None),
        (ToolChoice("required"), {"any": {}}),
        (ToolChoice("tool", "weather"), {"tool": {"name": "weather"}}),
    ],
)
def test_which_tool_must_be_called(choice, said):
    assert asked(tools=[tool()], tool_choice=choice)["toolConfig"].get("toolChoice") == said


def test_none_offers_no_tools():
    assert "toolConfig" not in asked(tools=[tool()], tool_choice=ToolChoice("none"))


def test_strict_tools_are_strict_where_the_model_can():
    (entry,) = asked(tools=[tool(strict=True)])["toolConfig"]["tools"]
    assert entry["toolSpec"]["strict"] is True
    assert entry["toolSpec"]["inputSchema"]["json"]["additionalProperties"] is False
    (entry,) = asked(tools=[tool(strict=True)], model=NOVA)["toolConfig"]["tools"]
    assert "strict" not in entry["toolSpec"]


def test_tools_of_another_provider_are_refused_by_name():
    with pytest.raises(BadRequest, match="web_search") as refusal:
        asked(foreign_tools=[Foreign("anthropic", "web_search_20250305", {})])
    assert refusal.value.param == "tools"


# ------------------------------------------------------------------ response_format


@pytest.mark.parametrize("model", [CLAUDE, GPT, PROFILE])
def test_a_schema_is_kept_to_where_the_model_can(model):
    body = asked(response_format=ResponseFormat("json_schema", "answer", SCHEMA, description="d"), model=model)
    structure = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert (structure["name"], structure["description"]) == ("answer", "d")
    assert json.loads(structure["schema"]) == {
        "type": "object",
        "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": False}},
        "additionalProperties": False,
    }


@pytest.mark.parametrize("model", [OLD_CLAUDE, CLAUDE_4, NOVA, "meta.llama3-8b-instruct-v1:0"])
def test_a_schema_is_refused_where_the_model_cannot(model):
    with pytest.raises(BadRequest) as refusal:
        asked(response_format=ResponseFormat("json_schema", "answer", SCHEMA), model=model)
    assert refusal.value.param == "response_format"


def test_json_of_any_shape_is_asked_of_the_model():
    (text,) = asked(response_format=ResponseFormat("json_object"), model=NOVA)["system"]
    assert "JSON object" in text["text"]


# ------------------------------------------------------------------ thinking


def thinking_of(**members) -> dict | None:
    return asked(**members).get("additionalModelRequestFields")


def test_thinking_with_a_budget_excludes_sampling():
    body = asked(reasoning_effort="medium", max_tokens=10_000, temperature=0.5, top_k=3)
    assert body["additionalModelRequestFields"] == {"thinking": {"type": "enabled", "budget_tokens": 5000}}
    assert body["inferenceConfig"] == {"maxTokens": 10_000}


def test_a_budget_without_a_limit_is_the_one_asked_for():
    assert thinking_of(thinking_budget=4000) == {"thinking": {"type": "enabled", "budget_tokens": 4000}}


def test_the_newest_claude_is_told_how_hard_to_think():
    fields = thinking_of(reasoning_effort="low", model=NEW_CLAUDE)
    assert fields == {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}


def test_other_models_are_told_in_their_own_words():
    assert thinking_of(reasoning_effort="minimal", model=GPT) == {"reasoning_effort": "low"}
    assert thinking_of(reasoning_effort="high", model=NOVA_2) == {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}
    }
    assert thinking_of(reasoning_effort="high", max_tokens=10, model=NOVA_2) == {
        "reasoningConfig": {"type": "enabled", "maxReasoningEffort": "medium"}
    }
    assert thinking_of(reasoning_effort="high", model=NOVA) is None
    assert thinking_of(reasoning_effort="none", model=GPT) is None


def test_calls_that_were_not_thought_about_stop_the_thinking():
    def history(*before) -> ChatRequest:
        calls = Message("assistant", [*before, ToolCall("c", "weather", "{}")])
        results = Message("user", [ToolResult("c", [Text("5 C")])])
        return ChatRequest(messages=[*HI.messages, calls, results], tools=[tool()], thinking_budget=2000)

    assert "additionalModelRequestFields" not in written(history())
    assert "thinking" in written(history(Thinking("hm", signature="sig")))["additionalModelRequestFields"]
