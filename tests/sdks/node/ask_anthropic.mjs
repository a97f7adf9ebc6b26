// @anthropic-ai/sdk: a message, a stream and a tool call. Prints what it saw as one line of JSON.

import Anthropic from "@anthropic-ai/sdk";

const TOOL = {
  name: "get_weather",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};
const ASK = [{ role: "user", content: "How is the weather in Oslo?" }];

const { GATEWAY_URL, GATEWAY_KEY, MODEL: model } = process.env;
const client = new Anthropic({ baseURL: GATEWAY_URL, apiKey: GATEWAY_KEY });
const given = { model, max_tokens: 100 };

const chat = await client.messages.create({ ...given, messages: ASK });
const pieces = [];
await client.messages
  .stream({ ...given, messages: ASK })
  .on("text", (text) => pieces.push(text))
  .finalMessage();
const message = await client.messages.stream({ ...given, messages: ASK, tools: [TOOL] }).finalMessage();
const call = message.content[0];
const result = { type: "tool_result", tool_use_id: call.id, content: "5 C" };
const history = [...ASK, { role: "assistant", content: message.content }, { role: "user", content: [result] }];
const answer = await client.messages.create({ ...given, messages: history, tools: [TOOL] });

console.log(JSON.stringify({
  chat: chat.content[0].text,
  usage: [chat.usage.input_tokens, chat.usage.output_tokens],
  stream: pieces,
  call: { name: call.name, arguments: call.input },
  answer: answer.content[0].text,
}));
