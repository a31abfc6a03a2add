// Requests to /admin. The session is a cookie that scripts cannot read; every change has the session's CSRF token,
// which is only in memory.

import { ApiError, fetchText, sentence } from "/assets/api.js";
import { readExactly } from "/assets/decimal.js";

let csrf = null;
let ended = () => {};

/** Sends this token with every change. Null forgets it. */
export function useCsrfToken(token) {
  csrf = token;
}

/** Calls `listener` when a response says that the session is over. */
export function onSessionEnd(listener) {
  ended = listener;
}

/** A number that is sent with exactly these digits. */
class Exact {
  constructor(text) {
    this.text = text;
  }
}

/** A number for a request, from its text. Nothing for an empty text. */
export const exact = (text) => (text ? new Exact(text) : undefined);

/** JSON with the digits of exact numbers. Fields without a value are left out. */
export function write(value) {
  if (value instanceof Exact) return value.text;
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, content]) => content !== undefined);
  return `{${fields.map(([name, content]) => `${JSON.stringify(name)}:${write(content)}`).join(",")}}`;
}

/** Sends a request. Returns the document of the response, which `read` parses: numbers as text; null if there is none. */
export async function admin(path, { method = "GET", body, signsIn = false, timeout, read = readExactly } = {}) {
  const headers = method !== "GET" && csrf ? { "X-CSRF-Token": csrf } : {};
  const content = typeof body === "string" || body === undefined ? body : write(body);
  try {
    const { text } = await fetchText(`/admin${path}`, { method, headers, body: content, credentials: "same-origin", timeout });
    return text ? read(text) : null;
  } catch (error) {
    if (error.status === 401 && !signsIn) ended();
    throw error;
  }
}

/** Takes an action. */
export const act = (path, body, method = "POST") => admin(path, { method, body });

/** The message for an action that failed. Without a response, it is unknown whether the action was taken. */
export function actionProblem(error) {
  const unknown = error instanceof ApiError && (error.status === 0 || error.code === "unreadable");
  return unknown ? `${sentence(error)} The action may have been taken: look at the audit log before you try again.` : sentence(error);
}

/** A query string of the parameters that have a value. */
export function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}
