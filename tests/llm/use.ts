// Calls an LLM route with OpenAI's client: node use.js BASE KEY MODEL SCENARIO [N]. Prints one JSON document.
//
// Scenarios: `plain`, `stream`, `abort` (closes a stream after its first chunk), and `race` (N calls at once).

import OpenAI from "openai";

const [base, apiKey, model = "", scenario, count] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 });
const request = { model, messages: [{ role: "user" as const, content: "Tell me a story." }] };

type Usage = { prompt: number; completion: number };
type Result = { status: number; usage?: Usage; [field: string]: unknown };

function metering(headers: Headers): Record<string, string | null> {
  const names = ["credit-charged", "credit-balance", "credit-held", "request-id"];
  return Object.fromEntries(names.map((name) => [name.replace("-", "_"), headers.get(`x-bds-${name}`)]));
}

function tokens(usage: OpenAI.CompletionUsage | null | undefined): Usage | undefined {
  return usage ? { prompt: usage.prompt_tokens, completion: usage.completion_tokens } : undefined;
}

async function plain(): Promise<Result> {
  const { data, response } = await client.chat.completions.create(request).withResponse();
  const text = data.choices[0]?.message.content;
  return { status: response.status, text, usage: tokens(data.usage), ...metering(response.headers) };
}

async function stream(aborted: boolean): Promise<Result> {
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

async function race(): Promise<object> {
  const results = await Promise.all(Array.from({ length: Number(count) }, () => attempt(plain)));
  const statuses: Record<string, number> = {};
  let prompt = 0, completion = 0;
  for (const { status, usage } of results) {
    statuses[status] = (statuses[status] ?? 0) + 1;
    prompt += usage?.prompt ?? 0;
    completion += usage?.completion ?? 0;
  }
  return { statuses, prompt, completion };
}

const runs: Record<string, () => Promise<object>> = {
  plain: () => attempt(plain),
  stream: () => attempt(() => stream(false)),
  abort: () => attempt(() => stream(true)),
  race,
};
const run = runs[scenario ?? ""];
if (!run) throw new Error(`no scenario ${scenario}`);
console.log(JSON.stringify(await run()));
