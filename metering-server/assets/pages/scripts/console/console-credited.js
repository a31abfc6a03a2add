// What a credited payment shows wherever it is: its amount, its value, its account and its state.

import { h } from "/assets/dom.js";

/** The uses of a payment. */
export const USES = { pay_signup: "Signup", topup: "Top-up", assigned: "Assigned", authorization: "With a request", imported: "Imported", processor: "Processor" };
/** Each state: its name, its colour, and an explanation if it needs one. */
export const STATES = {
  unsettled: { name: "Not final", tag: "tag", means: "Not final: the credits are there, but the chain could still replace the payment's block. They are taken back if the payment is then missing." },
  final: { name: "Final", tag: "tag tag-good" },
  reversed: { name: "Reversed", tag: "tag tag-bad", means: "Reversed: the payment was removed from its chain, refunded or disputed, and its credits were taken back." },
};

/** The amount in tokens; in the smallest unit when the token is not known. */
export function paid({ amount_human: amount, token_symbol: symbol, amount_atomic: atomic, token_contract: contract }) {
  if (atomic === null) return "unknown";
  return amount === null ? `${atomic} of ${contract}` : `${amount} ${symbol}`;
}

/** The value in the operator's currency. */
export const worth = ({ amount, currency }) => (amount === null ? `no value in ${currency}` : `${amount} ${currency}`);

/** The rate of the value, and its source. */
export const rate = ({ rate: one, rate_source: source, rate_as_of: at }) => (one === null ? "No exchange rate was known" : `Rate ${one}, ${source}, ${at}`);

/** A link to an account, by its name if that is known. */
export function accountLink(id, name) {
  const href = `#/accounts/${id}`;
  return name ? [h("a", { href, class: "break" }, name), h("span", { class: "under id" }, id)] : h("a", { href, class: "id" }, id);
}

/** The state as a tag. */
export const stateTag = (state) => {
  const { name, tag, means } = STATES[state] ?? { name: state, tag: "tag" };
  return h("span", { class: tag, title: means }, name);
};
