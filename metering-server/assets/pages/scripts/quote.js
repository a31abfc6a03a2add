// A top-up quote as text.

import { fromUnits, toUnits } from "/assets/decimal.js";

/** The credits of a quote with its bonus. */
export const sumOf = ({ credits, bonus_credits: bonus }) => fromUnits(toUnits(credits) + toUnits(bonus));

/** The quote with words for its token, which may be in no current plan. `coin` is the chain's own. */
export function named(quote, coin) {
  const symbol = quote.token_symbol ?? (quote.payment_kind === "native_value" ? coin : "tokens");
  if (quote.amount_human !== null) return { ...quote, token_symbol: symbol };
  return { ...quote, amount_human: quote.amount_atomic, token_symbol: "of the token's smallest unit" };
}

/** The symbol of the chain's own coin. */
export const coinOf = (plans) => plans.find(({ payment_kind: kind }) => kind === "native_value")?.token_symbol ?? "ETH";
