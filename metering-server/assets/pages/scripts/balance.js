// The balance of a key's account, from the latest response that contained it. Every page shows it in its header, so no
// page needs an extra request for it.

const AMOUNT = /^-?\d+(\.\d+)?$/;
const listeners = new Set();
let known = { key: null, amount: null };

/** Takes the balance from a response to a request with `key`, if it names one. */
export function noteBalance(key, amount) {
  if (!key || !AMOUNT.test(amount ?? "")) return;
  known = { key, amount };
  for (const listener of listeners) listener();
}

/** The last known balance of the account of `key`, as text; null while it is not known. */
export const balanceOf = (key) => (known.key === key ? known.amount : null);

/** Calls `listener` whenever a balance becomes known. */
export const onBalance = (listener) => listeners.add(listener);
