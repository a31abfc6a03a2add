// The balance of the account that a key belongs to, from whichever response said it last. Every page shows it in its
// header, so no page has to ask for it only for that.

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
