"""Where Gemini is asked, and with what configuration, tools and schemas."""

import pytest

from proxy.canonical import ChatRequest, Foreign, Message, ResponseFormat, Text, Tool, ToolChoice
from proxy.errors import BadRequest
from proxy.providers.base import adapter_for
from proxy.providers.gemini import GeminiAdapter
from tests.proxy.gemini_wire import FLASH_3, FLASH_25, asked, call_of, config_of, sent, target

HI = ChatRequest(messages=[Message("user", [Text("hi")])])
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def request_to(model: str = FLASH_25, base_url: str = "https://x", stream: bool = False, **members):
    return GeminiAdapter().build_request(call_of(HI, stream=stream), target(model, base_url, **members))


def test_the_kind_is_known_by_its_file():
    assert isinstance(adapter_for("gemini"), GeminiAdapter)


def test_the_simplest_request():
    assert sent(HI) == {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("base_url", "address"),
    [
        ("https://generativelanguage.googleapis.com", "https://generativelanguage.googleapis.com/v1beta/models/"),
        ("https://x/", "https://x/v1beta/models/"),
        ("https://x/v1", "https://x/v1beta/models/"),
        ("https://x/v1beta/", "https://x/v1beta/models/"),
        ("https://x/proxy/v1beta", "https://x/proxy/v1beta/models/"),
        ("https://v.example/v1/publishers/google", "https://v.example/v1/publishers/google/models/"),
        ("https://v.example/v1beta1/projects/p/publishers/google", None),
    ],
)
def test_the_address_is_below_the_version_whatever_the_configuration_ends_with(base_url, address):
    address = address or f"{base_url}/models/"
    assert request_to(base_url=base_url).url == f"{address}{FLASH_25}:generateContent"


@pytest.mark.parametrize(
    ("model", "place"),
    [
        ("models/gemini-x", "models/gemini-x"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
        ("a/b?c#d:e", "models/a%2Fb%3Fc%23d%3Ae"),
        ("../../admin", "models/..%2F..%2Fadmin"),
    ],
)
def test_a_model_never_leaves_its_place_in_the_address(model, place):
    assert request_to(model).url == f"https://x/v1beta/{place}:generateContent"


def test_streams_are_asked_for_as_server_sent_events():
    request = request_to(stream=True)
    assert request.url.endswith(f"/{FLASH_25}:streamGenerateContent?alt=sse")
    assert request.headers["accept"] == "text/event-stream"


def test_the_key_is_in_a_header_and_configured_headers_win():
    request = request_to(secret="key-1", headers={"X-Goog-User-Project": "p", "Accept": "*/*"})
    assert request.headers == {
        "content-type": "application/json",
        "accept": "*/*",
        "x-goog-api-key": "key-1",
        "x-goog-user-project": "p",
    }
    assert "key-1" not in request.url
    assert "x-goog-api-key" not in request_to().headers


def test_sampling_has_googles_names():
    assert config_of(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        stop=["."],
        seed=7,
        frequency_penalty=0.1,
        presence_penalty=-1,
    ) == {
        "maxOutputTokens": 9,
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 4,
        "stopSequences": ["."],
        "seed": 7,
        "frequencyPenalty": 0.1,
        "presencePenalty": -1,
    }


def test_what_changes_nothing_is_left_out():
    assert config_of(frequency_penalty=0, presence_penalty=0.0, top_k=0, user="u", logprobs=True, top_logprobs=2) == {}
    assert config_of(temperature=0, seed=0, top_p=0) == {"temperature": 0, "seed": 0, "topP": 0}


def test_a_seed_of_64_bits_is_folded_into_32_and_stays_the_same():
    seeds = [config_of(seed=seed)["seed"] for seed in (1 << 40 | 5, 1 << 40 | 5, 1 << 40 | 6, -(1 << 63))]
    assert seeds == [5, 5, 6, 0]


def test_the_gateways_own_limit_holds_where_the_caller_names_none():
    assert sent(HI, output_cap=50)["generationConfig"] == {"maxOutputTokens": 50}
    mine = ChatRequest(messages=HI.messages, max_tokens=9)
    assert sent(mine, output_cap=50)["generationConfig"] == {"maxOutputTokens": 9}


def test_the_system_prompt_stands_beside_the_turns():
    body = asked(system=[Text("Be brief."), Text(""), Text("Be kind.", {"type": "ephemeral"})])
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}
    assert "systemInstruction" not in asked(system=[Text("")])


# ---------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    ("model", "effort", "budget", "config"),
    [
        (FLASH_25, "minimal", None, {"includeThoughts": True, "thinkingBudget": 1024}),
        (FLASH_25, "medium", None, {"includeThoughts": True, "thinkingBudget": 8192}),
        (FLASH_25, "xhigh", None, {"includeThoughts": True, "thinkingBudget": 24_576}),
        (FLASH_25, "none", None, {"thinkingBudget": 0}),
        (FLASH_25, None, 100_000, {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("gemini-2.5-pro", "none", None, {"thinkingBudget": 128}),
        ("gemini-2.5-pro", None, 100_000, {"includeThoughts": True, "thinkingBudget": 32_768}),
        ("gemini-2.5-flash-lite", None, 100, {"includeThoughts": True, "thinkingBudget": 512}),
        ("gemini-2.5-flash-lite", "none", None, {"thinkingBudget": 0}),
        ("gemini-flash-latest", "low", None, {"includeThoughts": True, "thinkingBudget": 1024}),
        (FLASH_3, "none", None, {"thinkingLevel": "minimal"}),
        (FLASH_3, "medium", None, {"includeThoughts": True, "thinkingLevel": "medium"}),
        (FLASH_3, None, 2000, {"includeThoughts": True, "thinkingLevel": "low"}),
        (FLASH_3, None, 10_000, {"includeThoughts": True, "thinkingLevel": "medium"}),
        (FLASH_3, None, 30_000, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3-pro-preview", "minimal", None, {"includeThoughts": True, "thinkingLevel": "low"}),
        ("gemini-3-pro-preview", "medium", None, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-3.1-pro-preview", "medium", None, {"includeThoughts": True, "thinkingLevel": "medium"}),
        ("gemini-10-flash", "max", None, {"includeThoughts": True, "thinkingLevel": "high"}),
        ("gemini-2.0-flash", "high", None, None),
        ("gemma-3-27b", "high", None, None),
        (FLASH_25, "unheard-of", None, None),
        (FLASH_25, None, None, None),
    ],
)
def test_thinking_is_asked_for_in_the_words_of_the_models_version(model, effort, budget, config):
    assert config_of(model, reasoning_effort=effort, thinking_budget=budget).get("thinkingConfig") == config


# ---------------------------------------------------------------- tools


def test_tools_are_declared_with_their_json_schema():
    tools = [Tool("weather", "Tells it", SCHEMA, strict=True), Tool("now"), Tool("noop", "", {})]
    assert asked(tools=tools)["tools"] == [
        {
            "functionDeclarations": [
                {"name": "weather", "description": "Tells it", "parametersJsonSchema": SCHEMA},
                {"name": "now"},
                {"name": "noop"},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        (ToolChoice("auto"), {"mode": "AUTO"}),
        (ToolChoice("none"), {"mode": "NONE"}),
        (ToolChoice("required"), {"mode": "ANY"}),
        (ToolChoice("tool", "now"), {"mode": "ANY", "allowedFunctionNames": ["now"]}),
    ],
)
def test_the_choice_of_a_tool(choice, config):
    body = asked(tools=[Tool("now")], tool_choice=choice)
    assert body["toolConfig"] == {"functionCallingConfig": config}


def test_a_chosen_tool_that_had_to_be_renamed_is_chosen_by_its_new_name():
    body = asked(tools=[Tool("7 up")], tool_choice=ToolChoice("tool", "7 up"))
    declared = body["tools"][0]["functionDeclarations"][0]["name"]
    assert body["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == [declared]


def test_a_choice_without_tools_is_left_out():
    assert "toolConfig" not in asked(tool_choice=ToolChoice("auto"))
    assert "toolConfig" not in asked(tools=[Tool("now")])


def test_names_google_does_not_take_become_others_that_stay_distinct():
    names = ["7up", "a b", "a-b.c:d", "é", "x" * 64, "x" * 65, "x" * 66, "a_b"]
    declared = [
        tool["name"] for tool in asked(tools=[Tool(name) for name in names])["tools"][0]["functionDeclarations"]
    ]
    assert declared[2] == "a-b.c:d"
    assert declared[4] == "x" * 64
    assert declared[7] == "a_b"
    assert len(set(declared)) == len(names)
    assert all(len(name) <= 64 and (name[0].isalpha() or name[0] == "_") and name.isascii() for name in declared)


def test_another_providers_tool_is_refused_by_name():
    with pytest.raises(BadRequest, match="web_search_20250305") as caught:
        asked(foreign_tools=[Foreign("anthropic", "web_search_20250305", {})])
    assert caught.value.param == "tools"


# ---------------------------------------------------------------- schemas


def schema_of(parameters: dict) -> dict:
    return asked(tools=[Tool("f", parameters=parameters)])["tools"][0]["functionDeclarations"][0][
        "parametersJsonSchema"
    ]


def test_schemas_keep_references_unions_and_closed_objects():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"type": ["string", "null"]}, "c": {"anyOf": [SCHEMA]}},
        "$defs": {"a": {"type": "array", "prefixItems": [{"type": "string", "format": "date"}], "minItems": 1}},
        "additionalProperties": False,
    }
    assert schema_of(schema) == schema


def test_a_schema_loses_notes_but_no_property_of_their_name():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"examples": {"type": "string", "examples": ["x"], "default": {"const": 1}}},
        "required": ["examples"],
    }
    assert schema_of(schema) == {
        "type": "object",
        "properties": {"examples": {"type": "string", "default": {"const": 1}}},
        "required": ["examples"],
    }


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"const": None}, {"type": "null", "enum": [None]}),
        ({"const": 2, "type": "number"}, {"type": "number", "enum": [2]}),
        ({"const": {"a": 1}}, {"enum": [{"a": 1}]}),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
        ({"type": "integer", "exclusiveMaximum": 9, "maximum": 5}, {"type": "integer", "maximum": 5}),
        ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "exclusiveMinimum": 0}),
    ],
)
def test_what_google_does_not_know_is_said_by_its_equal(given, written):
    assert schema_of({"type": "object", "properties": {"x": given}})["properties"] == {"x": written}


# ---------------------------------------------------------------- formats


def test_json_is_asked_for_by_its_media_type():
    assert config_of(response_format=ResponseFormat("json_object")) == {"responseMimeType": "application/json"}
    assert config_of(response_format=ResponseFormat("text")) == {}


def test_an_answers_schema_goes_as_json_schema():
    schema = {"$schema": "s", **SCHEMA}
    assert config_of(response_format=ResponseFormat("json_schema", "a", schema, strict=True)) == {
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
    }


def test_beside_tools_older_models_are_asked_for_json_in_words():
    wanted = ResponseFormat("json_schema", schema=SCHEMA, description="A place")
    body = asked(tools=[Tool("now")], response_format=wanted, system=[Text("Be brief.")])
    assert "generationConfig" not in body
    first, second = (part["text"] for part in body["systemInstruction"]["parts"])
    assert first == "Be brief."
    assert '"required":["city"]' in second
    assert "A place" in second
    plain = asked(tools=[Tool("now")], response_format=ResponseFormat("json_object"))
    assert "JSON" in plain["systemInstruction"]["parts"][0]["text"]


def test_beside_tools_newer_models_are_bound_to_json():
    body = asked(model=FLASH_3, tools=[Tool("now")], response_format=ResponseFormat("json_schema", schema=SCHEMA))
    assert body["generationConfig"]["responseJsonSchema"] == SCHEMA
    assert "systemInstruction" not in body
