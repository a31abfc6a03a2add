// Calls an LLM route with OpenAI's client. Each line is BASE, KEY, MODEL, SCENARIO and perhaps N.
//
// Scenarios: `plain`, `stream`, `abort` (closes a stream after its first chunk), and `race` (N calls at once).

import OpenAI from "openai";
import { serve } from "./lines.js";

type Usage = { prompt: number; completion: number };
type Request = { model: string; messages: { role: "user"; content: string }[] };
type Result = { status: number; usage?: Usage; [field: string]: unknown };

function metering(headers: Headers): Record<string, string | null> {
  const names = ["credit-charged", "credit-balance", "credit-held", "request-id"];
  return Object.fromEntries(names.map((name) => [name.replace("-", "_"), headers.get(`x-bds-${name}`)]));
}

function tokens(usage: OpenAI.CompletionUsage | null | undefined): Usage | undefined {
  return usage ? { prompt: usage.prompt_tokens, completion: usage.completion_tokens } : undefined;
}

async function plain(client: OpenAI, request: Request): Promise<Result> {
  const { data, response } = await client.chat.completions.create(request).withResponse();
  const text = data.choices[0]?.message.content;
  return { status: response.status, text, usage: tokens(data.usage), ...metering(response.headers) };
}

async function stream(client: OpenAI, request: Request, aborted: boolean): Promise<Result> {
  const { data, response } = await client.chat.completions.create({ ...request, stream: true }).withResponse();
  let text = "", usage: Usage | undefined, error: string | undefined;
  try {
    for await (const chunk of data) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = tokens(chunk.usage) ?? usage;
      // Leaving the loop closes the connection.
      if (aborted) break;
    }
  } catch (failure) {
    if (!(failure instanceof OpenAI.APIError)) throw failure;
    error = failure.message;
  }
  return { status: response.status, text, usage, error, ...metering(response.headers) };
}

async function attempt(run: () => Promise<Result>): Promise<Result> {
  try {
    return await run();
  } catch (failure) {
    if (!(failure instanceof OpenAI.APIError) || failure.status === undefined) throw failure;
    // The gateway's `error` is a code, that of LLM services a document.
    const code = typeof failure.error === "string" ? failure.error : failure.code;
    return { status: failure.status, code, ...metering(failure.headers ?? new Headers()) };
  }
}

async function race(count: number, call: () => Promise<Result>): Promise<object> {
  const results = await Promise.all(Array.from({ length: count }, () => attempt(call)));
  const statuses: Record<string, number> = {};
  let prompt = 0, completion = 0;
  for (const { status, usage } of results) {
    statuses[status] = (statuses[status] ?? 0) + 1;
    prompt += usage?.prompt ?? 0;
    completion += usage?.completion ?? 0;
  }
  return { statuses, prompt, completion };
}

await serve(async ([base, apiKey, model = "", scenario = "", count]) => {
  const client = new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 });
  const request: Request = { model, messages: [{ role: "user", content: "Tell me a story." }] };
  const runs: Record<string, () => Promise<object>> = {
    plain: () => attempt(() => plain(client, request)),
    stream: () => attempt(() => stream(client, request, false)),
    abort: () => attempt(() => stream(client, request, true)),
    race: () => race(Number(count), () => plain(client, request)),
  };
  const run = runs[scenario];
  if (!run) throw new Error(`no scenario ${scenario}`);
  return run();
});
