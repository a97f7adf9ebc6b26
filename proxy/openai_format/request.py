"""Writing an OpenAI-style chat completion request from the canonical form.

Only members that OpenAI's own request type has are written. Thinking is left out: these providers take none back.
"""

from __future__ import annotations

from typing import Any

from proxy.canonical import (
    Audio,
    ChatRequest,
    File,
    Foreign,
    Image,
    Message,
    ResponseFormat,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from proxy.errors import BadRequest
from proxy.openai_format.shapes import google_signature

JSON = dict[str, Any]

#: Members that have the same name and meaning in both forms.
_SAME = (
    "temperature",
    "top_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "user",
)


def chat_body(request: ChatRequest, model: str, *, signed: bool = False) -> JSON:
    """The body but for `stream` and the limit of output tokens. Raises BadRequest for what cannot be said.

    `signed`: with the signatures of tool calls as Google wants them back, which OpenAI itself would refuse.
    """
    body: JSON = {"model": model, "messages": _messages(request, signed=signed)}
    for name in _SAME:
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.stop:
        body["stop"] = request.stop
    if request.foreign_tools:
        raise _inexpressible(f"a tool of type '{request.foreign_tools[0].type}'", "tools")
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.tool_choice is not None:
            body["tool_choice"] = _tool_choice(request.tool_choice)
        if request.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = request.parallel_tool_calls
    if request.response_format is not None:
        body["response_format"] = _response_format(request.response_format)
    return body


def _messages(request: ChatRequest, *, signed: bool) -> list[JSON]:
    messages: list[JSON] = []
    if request.system:
        messages.append({"role": "system", "content": "\n\n".join(text.text for text in request.system)})
    for message in request.messages:
        messages += _assistant(message, signed=signed) if message.role == "assistant" else _user(message)
    return messages


def _assistant(message: Message, *, signed: bool) -> list[JSON]:
    text, calls = [], []
    for part in message.parts:
        if isinstance(part, Text):
            text.append(part.text)
        elif isinstance(part, ToolCall):
            calls.append(_call(part, signed=signed))
        elif not isinstance(part, Thinking):
            raise _refused_part(part)
    written: JSON = {"role": "assistant", "content": "".join(text)}
    if calls:
        written["content"] = written["content"] or None
        written["tool_calls"] = calls
    return [written]


def _call(call: ToolCall, *, signed: bool) -> JSON:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    written: JSON = {"id": call.id, "type": "function", "function": function}
    if signed and call.signature:
        written["extra_content"] = google_signature(call.signature)
    return written


def _user(message: Message) -> list[JSON]:
    """Results of tools become messages of their own, before what the user says; their images follow them."""
    written: list[JSON] = []
    content: list[JSON] = []
    for part in message.parts:
        if isinstance(part, ToolResult):
            texts, others = _result(part)
            written.append({"role": "tool", "tool_call_id": part.call_id, "content": texts})
            content += others
        elif not isinstance(part, Thinking):
            content.append(_content_part(part))
    if len(content) == 1 and content[0]["type"] == "text":
        written.append({"role": "user", "content": content[0]["text"]})
    elif content or not written:
        written.append({"role": "user", "content": content or ""})
    return written


def _result(result: ToolResult) -> tuple[str, list[JSON]]:
    """A tool message holds text only."""
    texts, others = [], []
    for part in result.content:
        written = _content_part(part)
        if written["type"] == "text":
            texts.append(written["text"])
        else:
            others.append(written)
    return "\n".join(texts), others


def _content_part(part: Any) -> JSON:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": _image(part)}
    if isinstance(part, Audio):
        return {"type": "input_audio", "input_audio": {"data": part.data, "format": part.format}}
    if isinstance(part, File):
        return _file(part)
    raise _refused_part(part)


def _image(image: Image) -> JSON:
    if image.data is not None:
        written: JSON = {"url": f"data:{image.media_type or 'image/png'};base64,{image.data}"}
    elif image.url is not None:
        written = {"url": image.url}
    else:
        raise _inexpressible("an image by a provider's file id", "messages")
    if image.detail is not None:
        written["detail"] = image.detail
    return written


def _file(file: File) -> JSON:
    if file.text is not None:
        return {"type": "text", "text": f"{file.name}\n\n{file.text}" if file.name else file.text}
    if file.file_id is not None:
        return {"type": "file", "file": {"file_id": file.file_id}}
    if file.data is None:
        raise _inexpressible("a file by URL", "messages")
    media_type = file.media_type or "application/pdf"
    name = file.name or f"file.{media_type.rpartition('/')[2]}"
    return {"type": "file", "file": {"filename": name, "file_data": f"data:{media_type};base64,{file.data}"}}


def _tool(tool: Tool) -> JSON:
    function: JSON = {"name": tool.name}
    if tool.description is not None:
        function["description"] = tool.description
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> str | JSON:
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "tool" else choice.mode


def _response_format(wanted: ResponseFormat) -> JSON:
    if wanted.type != "json_schema":
        return {"type": wanted.type}
    schema: JSON = {"name": wanted.name or "answer"}
    for name, value in (("schema", wanted.schema), ("strict", wanted.strict), ("description", wanted.description)):
        if value is not None:
            schema[name] = value
    return {"type": "json_schema", "json_schema": schema}


def _refused_part(part: Any) -> BadRequest:
    kind = part.type if isinstance(part, Foreign) else type(part).__name__.lower()
    return _inexpressible(f"a block of type '{kind}'", "messages")


def _inexpressible(what: str, param: str) -> BadRequest:
    return BadRequest(f"The provider of this model does not accept {what}.", param=param)
