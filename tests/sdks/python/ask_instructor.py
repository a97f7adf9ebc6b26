"""instructor: a chat, a stream of partial answers, and structured answers by tool call and by schema.

Prints what it saw as one line of JSON.
"""

import json
import os
import sys
from importlib.metadata import version

import instructor
import openai
from pydantic import BaseModel


class Place(BaseModel):
    city: str


ASK = [{"role": "user", "content": "How is the weather in Oslo?"}]

gateway = openai.OpenAI(base_url=os.environ["GATEWAY_URL"] + "/v1", api_key=os.environ["GATEWAY_KEY"])
by_tool = instructor.from_openai(gateway, mode=instructor.Mode.TOOLS)
by_schema = instructor.from_openai(gateway, mode=instructor.Mode.JSON_SCHEMA)
given = {"model": os.environ["MODEL"], "messages": ASK}

chat = by_tool.chat.completions.create(response_model=None, **given)
partial = list(by_tool.create_partial(response_model=Place, **given))
place, raw = by_tool.create_with_completion(response_model=Place, **given)
call = raw.choices[0].message.tool_calls[0]
answer = by_schema.create(response_model=Place, **given)

saw = {
    "version": version("instructor"),
    "chat": chat.choices[0].message.content,
    "usage": [chat.usage.prompt_tokens, chat.usage.completion_tokens],
    "stream": [piece.model_dump() for piece in partial],
    "call": {"name": call.function.name, "arguments": place.model_dump()},
    "answer": answer.model_dump(),
}
sys.stdout.write(json.dumps(saw) + "\n")
