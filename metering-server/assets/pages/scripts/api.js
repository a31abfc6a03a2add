// Requests to the service: of this origin, never kept, with the key in a header and nowhere else.

import { readExactly } from "/assets/decimal.js";

/** What went wrong, with what the service says about it. */
export class ApiError extends Error {
  constructor(code, message, { status = 0, body = {} } = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.body = body;
  }

  /** What is wrong with each field. */
  get fields() {
    return this.body.fields ?? {};
  }

  /** After how many seconds another try may help, if one may. */
  get retryAfter() {
    return this.body.retry_after_sec === undefined ? undefined : Number(this.body.retry_after_sec);
  }
}

/** The body of a good answer, its numbers as text. `date` is the service's clock. */
export async function ask(path, { method = "GET", key, body, timeout = 30_000 } = {}) {
  const headers = { Accept: "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body && JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeout),
    });
    text = await response.text();
  } catch (error) {
    const slow = error.name === "TimeoutError";
    throw new ApiError(
      slow ? "timeout" : "network",
      slow ? "The service took too long to answer." : "The service cannot be reached. Check your connection and try again.",
    );
  }
  let document;
  try {
    document = readExactly(text);
  } catch {
    throw new ApiError("unreadable", `The service gave an answer that cannot be read (${response.status}).`, {
      status: response.status,
    });
  }
  if (!response.ok) {
    const { error = "unknown", message = `The service answered ${response.status}.` } = document;
    throw new ApiError(error, message, { status: response.status, body: document });
  }
  return { ...document, date: new Date(response.headers.get("date") ?? Date.now()) };
}

/** The sentence to show for whatever was thrown. */
export function sentence(error) {
  if (!(error instanceof ApiError)) return error?.message ? String(error.message) : "Something went wrong.";
  if (error.code === "rate_limited" && error.retryAfter) {
    return `Too many tries. Try again ${inSeconds(error.retryAfter)}.`;
  }
  return error.message;
}

/** A length of time in words. */
export function inSeconds(seconds) {
  if (seconds < 90) return `in ${seconds} second${seconds === 1 ? "" : "s"}`;
  return `in ${Math.ceil(seconds / 60)} minutes`;
}
