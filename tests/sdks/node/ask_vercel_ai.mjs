// ai (Vercel AI SDK) with @ai-sdk/openai or @ai-sdk/anthropic, as SPEAKS says: a chat, a stream and a tool call, whose
// result the SDK sends back by itself. Prints what it saw as one line of JSON.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const { GATEWAY_URL, GATEWAY_KEY, MODEL, SPEAKS } = process.env;
const given = { baseURL: `${GATEWAY_URL}/v1`, apiKey: GATEWAY_KEY };
const MODELS = {
  "openai-chat": () => createOpenAI(given).chat(MODEL),
  "openai-responses": () => createOpenAI(given)(MODEL),
  anthropic: () => createAnthropic(given)(MODEL),
};
const model = MODELS[SPEAKS]();
const prompt = "How is the weather in Oslo?";
const tools = {
  get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async () => "5 C" }),
};

function fail({ error }) {
  throw error;
}

const chat = await generateText({ model, prompt });
const pieces = [];
for await (const text of streamText({ model, prompt, onError: fail }).textStream) pieces.push(text);
const round = streamText({ model, prompt, tools, stopWhen: stepCountIs(3), onError: fail });
const steps = await round.steps;
const call = steps[0].toolCalls[0];

console.log(JSON.stringify({
  chat: chat.text,
  usage: [chat.usage.inputTokens, chat.usage.outputTokens],
  stream: pieces,
  call: { name: call.toolName, arguments: call.input },
  answer: await round.text,
}));
