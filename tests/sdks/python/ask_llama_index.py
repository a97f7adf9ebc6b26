"""llama-index OpenAILike: a chat, a stream and a tool call. Prints what it saw as one line of JSON."""

import json
import os
import sys
from importlib.metadata import version

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike


def get_weather(city: str) -> str:
    """The weather in a city."""
    return "5 C"


TOOL = FunctionTool.from_defaults(get_weather)
ASK = [ChatMessage(role="user", content="How is the weather in Oslo?")]

model = OpenAILike(
    api_base=os.environ["GATEWAY_URL"] + "/v1",
    api_key=os.environ["GATEWAY_KEY"],
    model=os.environ["MODEL"],
    is_chat_model=True,
    is_function_calling_model=True,
)

chat = model.chat(ASK)
pieces = [chunk.delta for chunk in model.stream_chat(ASK)]
*_, called = model.stream_chat_with_tools([TOOL], chat_history=ASK)
call = model.get_tool_calls_from_response(called)[0]
output = TOOL(**call.tool_kwargs)
result = ChatMessage(role="tool", content=output.content, additional_kwargs={"tool_call_id": call.tool_id})
answer = model.chat_with_tools([TOOL], chat_history=[*ASK, called.message, result])

saw = {
    "version": version("llama-index-llms-openai-like"),
    "chat": chat.message.content,
    "usage": [chat.raw.usage.prompt_tokens, chat.raw.usage.completion_tokens],
    "stream": [piece for piece in pieces if piece],
    "call": {"name": call.tool_name, "arguments": call.tool_kwargs},
    "answer": answer.message.content,
}
sys.stdout.write(json.dumps(saw) + "\n")
