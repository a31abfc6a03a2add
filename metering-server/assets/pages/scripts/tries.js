// Requests that may have to be sent again because their response was lost.

import { sentence } from "/assets/api.js";
import { secretText } from "/assets/rotation.js";

/** After these errors, the service may have executed the request. */
const UNKNOWN = ["network", "timeout", "unreadable", "outcome_unknown"];

/** What went wrong; `unknown` is added if the service may have executed it anyway. */
export const problem = (error, unknown) => (UNKNOWN.includes(error.code) ? `${sentence(error)} ${unknown}` : sentence(error));

/** The idempotency keys of an action's retries: one for each body. */
export class Tries {
  #keys = new Map();

  keyOf(body) {
    const text = JSON.stringify(body);
    if (!this.#keys.has(text)) this.#keys.set(text, secretText());
    return this.#keys.get(text);
  }
}
