// Calls the routes of the shipped catalogue with the official clients. Each line is BASE, KEY, SDK, SCENARIO and PROMPT.
//
// The result is what the client got, or the error that it raised.

import Anthropic from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { serve } from "./lines.js";

const parameters = { type: "object" as const, properties: { a: { type: "string" } }, required: ["a"] };
const word = { type: "object", properties: { word: { type: "string" } }, required: ["word"], additionalProperties: false };
const model = "small";

type Result = { text?: string | null; [field: string]: unknown };
type Runs = Record<string, () => Promise<Result>>;
type Client = (base: string, apiKey: string, prompt: string) => Runs;

const messagesOf = (prompt: string) => [{ role: "user" as const, content: prompt }];

const openai: Client = (base, apiKey, prompt) => {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 });
  const messages = messagesOf(prompt);
  const chat = client.chat.completions;
  const stream = async (more: object): Promise<Result> => {
    let text = "", reported = false;
    for await (const chunk of await chat.create({ model, messages, stream: true, ...more })) {
      text += chunk.choices[0]?.delta.content ?? "";
      reported ||= Boolean(chunk.usage);
    }
    return { text, reported };
  };
  return {
    plain: async () => {
      const completion = await chat.create({ model, messages });
      return { text: completion.choices[0]?.message.content, id: completion._request_id };
    },
    limits: async () => {
      const { headers } = (await chat.create({ model, messages, max_tokens: 40 }).withResponse()).response;
      return { text: headers.get("x-ratelimit-remaining-tokens"), limit: headers.get("x-ratelimit-limit-tokens") };
    },
    unsold: async () => ({ text: (await chat.create({ model: "unsold", messages })).choices[0]?.message.content }),
    stream: () => stream({}),
    stream_with_usage: () => stream({ stream_options: { include_usage: true } }),
    tools: async () => {
      const tools = [{ type: "function" as const, function: { name: "f", parameters } }];
      const call = (await chat.create({ model, messages, tools })).choices[0]?.message.tool_calls?.[0];
      return { text: call?.type === "function" ? call.function.name : null };
    },
    structured: async () => {
      const json_schema = { name: "word", schema: word, strict: true };
      const completion = await chat.parse({ model, messages, response_format: { type: "json_schema", json_schema } });
      return { text: JSON.parse(completion.choices[0]?.message.content ?? "{}").word };
    },
    responses: async () => ({ text: (await client.responses.create({ model, input: prompt })).output_text }),
    responses_stream: async () => {
      let text = "";
      for await (const event of await client.responses.create({ model, input: prompt, stream: true })) {
        if (event.type === "response.output_text.delta") text += event.delta;
      }
      return { text };
    },
    models: async () => ({ text: (await client.models.list()).data[0]?.id }),
    embeddings: async () => {
      const { data } = await client.embeddings.create({ model, input: [prompt, "b"] });
      return { text: String(data.length) };
    },
  };
};

const anthropic: Client = (base, apiKey, prompt) => {
  const client = new Anthropic({ baseURL: base, apiKey, maxRetries: 0 });
  const messages = messagesOf(prompt);
  const request = { model, max_tokens: 1000, messages };
  const text = (message: Anthropic.Message) => (message.content[0]?.type === "text" ? message.content[0].text : null);
  return {
    plain: async () => {
      const message = await client.messages.create(request);
      return { text: text(message), id: message._request_id };
    },
    limits: async () => {
      const { headers } = (await client.messages.create({ ...request, max_tokens: 40 }).withResponse()).response;
      const [left, limit, reset] = ["remaining", "limit", "reset"].map((name) => headers.get(`anthropic-ratelimit-tokens-${name}`));
      return { text: left, limit, reset };
    },
    unsold: async () => ({ text: text(await client.messages.create({ ...request, model: "unsold" })) }),
    stream: async () => ({ text: await client.messages.stream(request).finalText() }),
    tools: async () => {
      const message = await client.messages.create({ ...request, tools: [{ name: "f", input_schema: parameters }] });
      return { text: message.content[0]?.type === "tool_use" ? message.content[0].name : null };
    },
    structured: async () => {
      const output_config = { format: { type: "json_schema" as const, schema: word } };
      const message = await client.messages.create({ ...request, output_config });
      return { text: JSON.parse(text(message) ?? "{}").word };
    },
    count: async () => ({ text: String((await client.messages.countTokens({ model, messages })).input_tokens) }),
  };
};

const google: Client = (base, apiKey, prompt) => {
  const { models } = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base } });
  const request = { model, contents: prompt };
  return {
    plain: async () => {
      const config = { thinkingConfig: { thinkingBudget: 100 } };
      return { text: (await models.generateContent({ ...request, config })).text };
    },
    unsold: async () => ({ text: (await models.generateContent({ ...request, model: "unsold" })).text }),
    stream: async () => {
      let text = "";
      for await (const chunk of await models.generateContentStream(request)) text += chunk.text ?? "";
      return { text };
    },
    tools: async () => {
      const tools = [{ functionDeclarations: [{ name: "f", parametersJsonSchema: parameters }] }];
      return { text: (await models.generateContent({ ...request, config: { tools } })).functionCalls?.[0]?.name };
    },
    structured: async () => {
      const config = { responseMimeType: "application/json", responseJsonSchema: word };
      return { text: JSON.parse((await models.generateContent({ ...request, config })).text ?? "{}").word };
    },
    count: async () => ({ text: String((await models.countTokens(request)).totalTokens) }),
  };
};

function error(failure: unknown): Result {
  if (failure instanceof OpenAI.APIError) {
    const { status, code, message, requestID } = failure;
    return { error: { status, code, message, id: requestID } };
  }
  if (failure instanceof Anthropic.APIError) {
    const { status, type, message, requestID } = failure;
    return { error: { status, code: type, message, id: requestID } };
  }
  if (failure instanceof ApiError) return { error: { status: failure.status, message: failure.message } };
  throw failure;
}

const clients: Record<string, Client> = { openai, anthropic, google };
await serve(async ([base = "", apiKey = "", sdk = "", scenario = "", prompt = ""]) => {
  const run = clients[sdk]?.(base, apiKey, prompt)[scenario];
  if (!run) throw new Error(`no scenario ${sdk} ${scenario}`);
  return run().catch(error);
});
