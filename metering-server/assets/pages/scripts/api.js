// Same-origin requests to the service. They are never cached, and the key is sent only in a header. For the account's
// own calls, a session works instead of a key, at paths below a prefix; its cookie is sent only there.

import { noteBalance } from "/assets/balance.js";
import { readExactly } from "/assets/decimal.js";
import { SESSION } from "/assets/session.js";

const IN_SESSION = "/metering/session";

/** An error response, or a failure to get a response. */
export class ApiError extends Error {
  constructor(code, message, { status = 0, body = {} } = {}) {
    super(message);
    this.code = code;
    this.status = status;
    this.body = body;
  }

  /** The problem with each field. */
  get fields() {
    return this.body.fields ?? {};
  }

  /** The seconds to wait before a retry, if a retry may succeed. */
  get retryAfter() {
    return this.body.retry_after_sec === undefined ? undefined : Number(this.body.retry_after_sec);
  }
}

/** Sends a request. Returns the body of a successful response, numbers as text; `date` is the service's time. */
export async function callApi(path, options = {}) {
  const { text, headers } = await fetchText(path, options);
  const document = readExactly(text);
  noteBalance(options.key, headers.get("x-bds-credit-balance") ?? document.credit_balance);
  return { ...document, date: new Date(headers.get("date") ?? Date.now()) };
}

/**
 * Sends a request. Returns the text and the headers of a successful response; with `binary`, a `blob` instead of the
 * text. A `body` that is a string is sent unchanged. Cookies are sent only with `SESSION` instead of a key, or with
 * `credentials: "same-origin"`. With `keepalive`, the request is sent even if the user leaves the page.
 */
export async function fetchText(path, { method = "GET", key, body, headers: more = {}, timeout = 30_000, credentials = "omit", keepalive = false, binary = false } = {}) {
  const headers = { Accept: "application/json", ...more };
  const inSession = key === SESSION;
  if (key && !inSession) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    response = await fetch(inSession ? IN_SESSION + path : path, {
      method,
      headers,
      body: typeof body === "string" ? body : body && JSON.stringify(body),
      cache: "no-store",
      credentials: inSession ? "same-origin" : credentials,
      keepalive,
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeout),
    });
    if (binary && response.ok) return { blob: await response.blob(), headers: response.headers };
    text = await response.text();
  } catch (error) {
    const slow = error.name === "TimeoutError";
    throw new ApiError(
      slow ? "timeout" : "network",
      slow ? "The service took too long to respond." : "Could not reach the service. Check your connection and try again.",
    );
  }
  const { status } = response;
  const isJson = /^application\/json\b/.test(response.headers.get("content-type") ?? "");
  let document = {};
  try {
    if (isJson || !response.ok) document = readExactly(text);
  } catch {
    throw new ApiError("unreadable", `The service sent an unreadable response (${status}).`, { status });
  }
  if (!response.ok) {
    // In errors of JSON-RPC, ours is the data.
    const { error = "unknown", message = `The service responded with ${status}.` } = document.error?.data ?? document;
    throw new ApiError(error, message, { status, body: document });
  }
  return { text, headers: response.headers };
}

/** The message to show for an error. */
export function sentence(error) {
  if (!(error instanceof ApiError)) return error?.message ? String(error.message) : "Something went wrong.";
  if (error.code === "rate_limited" && error.retryAfter) {
    return `Too many attempts. Try again ${inSeconds(error.retryAfter)}.`;
  }
  return error.message;
}

/** A duration in words. */
export function inSeconds(seconds) {
  if (seconds < 90) return `in ${seconds} second${seconds === 1 ? "" : "s"}`;
  return `in ${Math.ceil(seconds / 60)} minutes`;
}
