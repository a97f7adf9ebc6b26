"""anthropic: a message, a stream and a tool call. Prints what it saw as one line of JSON."""

import json
import os
import sys

import anthropic

TOOL = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
ASK = [{"role": "user", "content": "How is the weather in Oslo?"}]

client = anthropic.Anthropic(base_url=os.environ["GATEWAY_URL"], api_key=os.environ["GATEWAY_KEY"])
given = {"model": os.environ["MODEL"], "max_tokens": 100}

chat = client.messages.create(messages=ASK, **given)
with client.messages.stream(messages=ASK, **given) as stream:
    pieces = list(stream.text_stream)
with client.messages.stream(messages=ASK, tools=[TOOL], **given) as stream:
    message = stream.get_final_message()
call = message.content[0]
result = {"type": "tool_result", "tool_use_id": call.id, "content": "5 C"}
history = [*ASK, {"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
answer = client.messages.create(messages=history, tools=[TOOL], **given)

saw = {
    "version": anthropic.__version__,
    "chat": chat.content[0].text,
    "usage": [chat.usage.input_tokens, chat.usage.output_tokens],
    "stream": pieces,
    "call": {"name": call.name, "arguments": call.input},
    "answer": answer.content[0].text,
}
sys.stdout.write(json.dumps(saw) + "\n")
