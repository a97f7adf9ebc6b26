"""langchain-openai, on the API that SPEAKS names: a chat, a stream and a tool call.

Prints what it saw as one line of JSON.
"""

import json
import os
import sys
from importlib.metadata import version

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return "5 C"


ASK = [HumanMessage("How is the weather in Oslo?")]

model = ChatOpenAI(
    base_url=os.environ["GATEWAY_URL"] + "/v1",
    api_key=os.environ["GATEWAY_KEY"],
    model=os.environ["MODEL"],
    use_responses_api=os.environ["SPEAKS"] == "responses",
)

chat = model.invoke(ASK)
pieces = [chunk.text for chunk in model.stream(ASK)]
with_tool = model.bind_tools([get_weather])
message = None
for chunk in with_tool.stream(ASK):
    message = chunk if message is None else message + chunk
call = message.tool_calls[0]
result = ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])
answer = with_tool.invoke([*ASK, message, result])

saw = {
    "version": version("langchain-openai"),
    "chat": chat.text,
    "usage": [chat.usage_metadata["input_tokens"], chat.usage_metadata["output_tokens"]],
    "stream": [piece for piece in pieces if piece],
    "call": {"name": call["name"], "arguments": call["args"]},
    "answer": answer.text,
}
sys.stdout.write(json.dumps(saw) + "\n")
