"""What may be asked in a chat, and what may be answered: the rows of the table about messages, tools and files."""

from __future__ import annotations

from typing import Any

from proxy.canonical import ChatResponse, Text, Thinking, ToolCall
from tests.matrix.feature import MORNING, USAGE, Feature, both, everywhere, said

JSON = dict[str, Any]

IMAGE, PDF = "iVBORw0KGgoAAAANSUhE", "JVBERi0xLjcKJeLjz9MK"
URL, PDF_URL = "https://pictures.example/cat.png", "https://papers.example/paper.pdf"
SIGNATURE, REDACTED = "U0lHTkFUVVJFMDE=", "UkVEQUNURUQwMDE="
SCHEMA = {"type": "object", "properties": {"harbour": {"type": "string"}}, "required": ["harbour"]}

# ---------------------------------------------------------------- tools in each format


def tools(*names: str) -> dict[str, JSON]:
    openai = [
        {"type": "function", "function": {"name": name, "description": "Tides", "parameters": SCHEMA}} for name in names
    ]
    anthropic = [{"name": name, "description": "Tides", "input_schema": SCHEMA} for name in names]
    responses = [
        {"type": "function", "name": name, "description": "Tides", "parameters": SCHEMA, "strict": False}
        for name in names
    ]
    return both({"tools": openai}) | {"anthropic": {"tools": anthropic}, "responses": {"tools": responses}}


def with_tools(*names: str, **more: JSON) -> dict[str, JSON]:
    """With members by dialect."""
    return {dialect: members | more.get(dialect, {}) for dialect, members in tools(*names).items() if dialect in more}


def _results(content: str) -> dict[str, JSON]:
    """Two calls and their results."""
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": "tides", "arguments": '{"harbour":"Husum"}'}}
        for n in (1, 2)
    ]
    told = [{"role": "tool", "tool_call_id": f"call_{n}", "content": f"{content} {n}"} for n in (1, 2)]
    messages = [MORNING, {"role": "assistant", "content": None, "tool_calls": calls}, *told]
    uses = [{"type": "tool_use", "id": f"call_{n}", "name": "tides", "input": {"harbour": "Husum"}} for n in (1, 2)]
    blocks = [{"type": "tool_result", "tool_use_id": f"call_{n}", "content": f"{content} {n}"} for n in (1, 2)]
    turns = [MORNING, {"role": "assistant", "content": uses}, {"role": "user", "content": blocks}]
    items = [
        {"type": "function_call", "call_id": f"call_{n}", "name": "tides", "arguments": '{"harbour":"Husum"}'}
        for n in (1, 2)
    ]
    outputs = [{"type": "function_call_output", "call_id": f"call_{n}", "output": f"{content} {n}"} for n in (1, 2)]
    more = both({"messages": messages}) | {"anthropic": {"messages": turns}}
    return with_tools("tides", **more, responses={"input": [MORNING, *items, *outputs]})


def _picture_of_a_result() -> dict[str, JSON]:
    """Only two formats have it."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [image]}
    use = {"type": "tool_use", "id": "call_1", "name": "tides", "input": {}}
    turns = [MORNING, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": [picture]}
    items = [MORNING, {"type": "function_call", "call_id": "call_1", "name": "tides", "arguments": "{}"}, output]
    return with_tools("tides", anthropic={"messages": turns}, responses={"input": items})


def _marked() -> dict[str, JSON]:
    part = {"type": "text", "text": "Good morning", "cache_control": {"type": "ephemeral"}}
    return said(openai=part, anthropic=part)


CALL = ToolCall("call_7", "tides", '{"harbour": "Husum"}')
CALLS = ChatResponse(
    parts=[CALL, ToolCall("call_8", "moon", '{"harbour": "Emden"}')], finish_reason="tool_calls", usage=USAGE
)
ONE_CALL = ChatResponse(parts=[CALL], finish_reason="tool_calls", usage=USAGE)
THOUGHT = ChatResponse(parts=[Thinking(text="Pondering"), Text("Guten Tag")], usage=USAGE)
SIGNED = ChatResponse(parts=[Thinking(text="Pondering", signature=SIGNATURE), CALL], finish_reason="tool_calls")
SIGNED.usage = USAGE
SEALED = ChatResponse(parts=[Thinking(redacted=REDACTED), CALL], finish_reason="tool_calls", usage=USAGE)
SIGNED_CALL = ChatResponse(
    parts=[ToolCall("call_7", "tides", "{}", SIGNATURE)], finish_reason="tool_calls", usage=USAGE
)
THINKING_ASKED: dict[str, JSON] = {
    "openai": {"reasoning_effort": "high"},
    "anthropic": {"max_tokens": 9000, "thinking": {"type": "enabled", "budget_tokens": 4000}},
    "responses": {"reasoning": {"effort": "high"}},
}
JSON_ANSWER = ChatResponse(parts=[Text('{"harbour":"Husum"}')], usage=USAGE)
FORMAT = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}}

FEATURES = [
    Feature(name="text", asks=everywhere(), sent=("Good morning",), told=("Guten Tag",)),
    Feature(name="text, streamed", asks=everywhere(), sent=("Good morning",), told=("Guten Tag",), stream=True),
    Feature(
        name="system prompt",
        asks={
            **both({"messages": [{"role": "system", "content": "Be brief"}, MORNING]}),
            "anthropic": {"system": "Be brief"},
            "responses": {"instructions": "Be brief"},
        },
        sent=("Be brief", "Good morning"),
    ),
    Feature(
        name="conversation",
        asks={
            **{
                name: {"messages": [MORNING, {"role": "assistant", "content": "Moin"}, MORNING]}
                for name in ("chat", "openai", "anthropic")
            },
            "responses": {"input": [MORNING, {"role": "assistant", "content": "Moin"}, MORNING]},
        },
        sent=("Good morning", "Moin"),
    ),
    Feature(
        name="tools", asks=tools("tides"), sent=("tides", "Tides", "harbour"), answer=ONE_CALL, told=("call_7", "Husum")
    ),
    Feature(
        name="tool calls, streamed",
        asks=tools("tides"),
        answer=ONE_CALL,
        told=("call_7", "tides", "Husum"),
        stream=True,
    ),
    Feature(
        name="parallel tool calls",
        asks=tools("tides", "moon"),
        sent=("tides", "moon"),
        answer=CALLS,
        told=("call_7", "Husum", "call_8", "Emden"),
    ),
    Feature(
        name="parallel tool calls, streamed",
        asks=tools("tides", "moon"),
        answer=CALLS,
        told=("call_7", "Husum", "call_8", "Emden"),
        stream=True,
    ),
    Feature(
        name="a certain tool is to be called",
        asks=with_tools(
            "tides",
            "moon",
            **both({"tool_choice": {"type": "function", "function": {"name": "moon"}}}),
            anthropic={"tool_choice": {"type": "tool", "name": "moon"}},
            responses={"tool_choice": {"type": "function", "name": "moon"}},
        ),
        sent=("moon",),
        differs=True,
    ),
    Feature(
        name="one tool call at a time",
        asks=with_tools(
            "tides",
            openai={"parallel_tool_calls": False},
            anthropic={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            responses={"parallel_tool_calls": False},
        ),
        differs=True,
        without={"anthropic": {"tool_choice": {"type": "auto"}}},
    ),
    Feature(
        name="results of tools", asks=_results("High water"), sent=("High water 1", "High water 2", "Husum", "tides")
    ),
    Feature(name="images in results of tools", asks=_picture_of_a_result(), sent=(IMAGE,)),
    Feature(
        name="images, inline",
        asks=said(
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}},
            {"type": "input_image", "image_url": f"data:image/png;base64,{IMAGE}"},
        ),
        sent=(IMAGE,),
    ),
    Feature(
        name="images by URL",
        asks=said(
            {"type": "image_url", "image_url": {"url": URL}},
            {"type": "image", "source": {"type": "url", "url": URL}},
            {"type": "input_image", "image_url": URL},
        ),
        sent=(URL,),
    ),
    Feature(
        name="PDF files, inline",
        asks=said(
            {"type": "file", "file": {"filename": "paper.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            {"type": "input_file", "filename": "paper.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
        ),
        sent=(PDF,),
    ),
    Feature(
        name="PDF files by URL",
        asks=said(
            anthropic={"type": "document", "source": {"type": "url", "url": PDF_URL}},
            responses={"type": "input_file", "file_url": PDF_URL},
        ),
        sent=(PDF_URL,),
    ),
    Feature(
        name="plain text files",
        asks=said(
            anthropic={
                "type": "document",
                "title": "Log",
                "source": {"type": "text", "media_type": "text/plain", "data": "Wind from the west"},
            }
        ),
        sent=("Wind from the west", "Log"),
    ),
    Feature(
        name="sound",
        asks=said(
            openai={"type": "input_audio", "input_audio": {"data": PDF, "format": "wav"}},
            responses={"type": "input_audio", "input_audio": {"data": PDF, "format": "wav"}},
        ),
        sent=(PDF,),
    ),
    Feature(
        name="structured output by a JSON schema",
        asks={
            **both({"response_format": FORMAT}),
            "anthropic": {
                "output_config": {"format": {"type": "json_schema", "schema": SCHEMA | {"additionalProperties": False}}}
            },
            "responses": {
                "text": {"format": {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}}
            },
        },
        sent=("harbour",),
        answer=JSON_ANSWER,
        told=("harbour", "Husum"),
    ),
    Feature(
        name="any JSON object",
        asks=both({"response_format": {"type": "json_object"}})
        | {"responses": {"text": {"format": {"type": "json_object"}}}},
        differs=True,
        answer=JSON_ANSWER,
        told=("Husum",),
    ),
    Feature(name="thinking is asked for", asks=THINKING_ASKED, differs=True),
    Feature(
        name="thinking is told",
        asks=THINKING_ASKED,
        answer=THOUGHT,
        needs=frozenset(("thinking",)),
        told=("Pondering", "Guten Tag"),
    ),
    Feature(
        name="thinking, streamed",
        asks=THINKING_ASKED,
        answer=THOUGHT,
        needs=frozenset(("thinking",)),
        told=("Pondering", "Guten Tag"),
        stream=True,
    ),
    Feature(
        name="signatures of thinking come back unchanged",
        asks=THINKING_ASKED,
        answer=SIGNED,
        needs=frozenset(("signature",)),
        round_trip=(SIGNATURE,),
    ),
    Feature(
        name="signatures of streamed thinking come back unchanged",
        asks=THINKING_ASKED,
        answer=SIGNED,
        needs=frozenset(("signature",)),
        round_trip=(SIGNATURE,),
        stream=True,
    ),
    Feature(
        name="redacted thinking comes back unchanged",
        asks=THINKING_ASKED,
        answer=SEALED,
        needs=frozenset(("redacted",)),
        round_trip=(REDACTED,),
    ),
    Feature(
        name="signatures of tool calls come back unchanged",
        asks=everywhere(),
        answer=SIGNED_CALL,
        needs=frozenset(("call_signature",)),
        round_trip=(SIGNATURE,),
    ),
    Feature(
        name="signatures of streamed tool calls come back unchanged",
        asks=everywhere(),
        answer=SIGNED_CALL,
        needs=frozenset(("call_signature",)),
        round_trip=(SIGNATURE,),
        stream=True,
    ),
    Feature(name="marks for the prompt cache", asks=_marked(), sent=("Good morning",), differs=True),
    Feature(
        name="tools that the provider runs (web search)",
        asks={
            "anthropic": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
            "responses": {"tools": [{"type": "web_search"}]},
        },
        sent=("web_search",),
    ),
]
