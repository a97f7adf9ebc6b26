// openai: a chat, a stream and a tool call. Prints what it saw as one line of JSON.

import OpenAI from "openai";
import { VERSION } from "openai/version";

const TOOL = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};
const ASK = [{ role: "user", content: "How is the weather in Oslo?" }];

const { GATEWAY_URL, GATEWAY_KEY, MODEL: model } = process.env;
const client = new OpenAI({ baseURL: `${GATEWAY_URL}/v1`, apiKey: GATEWAY_KEY });

const chat = await client.chat.completions.create({ model, messages: ASK });
const pieces = [];
const options = { include_usage: true };
for await (const chunk of await client.chat.completions.create({
  model, messages: ASK, stream: true, stream_options: options,
})) {
  const text = chunk.choices[0]?.delta?.content;
  if (text) pieces.push(text);
}
const streamed = await client.chat.completions.stream({ model, messages: ASK, tools: [TOOL] }).finalChatCompletion();
const message = streamed.choices[0].message;
const call = message.tool_calls[0];
const result = { role: "tool", tool_call_id: call.id, content: "5 C" };
const answer = await client.chat.completions.create({ model, messages: [...ASK, message, result], tools: [TOOL] });

console.log(JSON.stringify({
  version: VERSION,
  chat: chat.choices[0].message.content,
  usage: [chat.usage.prompt_tokens, chat.usage.completion_tokens],
  stream: pieces,
  call: { name: call.function.name, arguments: JSON.parse(call.function.arguments) },
  answer: answer.choices[0].message.content,
}));
