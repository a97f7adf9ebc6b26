"""openai: a chat, a stream and a tool call. Prints what it saw as one line of JSON."""

import json
import os
import sys

import openai

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASK = [{"role": "user", "content": "How is the weather in Oslo?"}]

model = os.environ["MODEL"]
client = openai.OpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["GATEWAY_KEY"])

chat = client.chat.completions.create(model=model, messages=ASK)
options = {"include_usage": True}
chunks = list(client.chat.completions.create(model=model, messages=ASK, stream=True, stream_options=options))
with client.chat.completions.stream(model=model, messages=ASK, tools=[TOOL]) as stream:
    message = stream.get_final_completion().choices[0].message
call = message.tool_calls[0]
result = {"role": "tool", "tool_call_id": call.id, "content": "5 C"}
history = [*ASK, message.model_dump(exclude_none=True), result]
answer = client.chat.completions.create(model=model, messages=history, tools=[TOOL])

saw = {
    "version": openai.__version__,
    "chat": chat.choices[0].message.content,
    "usage": [chat.usage.prompt_tokens, chat.usage.completion_tokens],
    "stream": [text for chunk in chunks for choice in chunk.choices if (text := choice.delta.content)],
    "call": {"name": call.function.name, "arguments": json.loads(call.function.arguments)},
    "answer": answer.choices[0].message.content,
}
sys.stdout.write(json.dumps(saw) + "\n")
