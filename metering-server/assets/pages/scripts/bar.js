// Bars that compare amounts within a list.

import { toUnits } from "/assets/decimal.js";
import { h, s } from "/assets/dom.js";

/** The largest of some amounts, in units; at least one, since it is a divisor. */
export const largest = (amounts) => amounts.map((text) => toUnits(text)).reduce((most, units) => (units > most ? units : most), 1n);

/** A bar for an amount, as a share of `most` units. It is decoration: the amount is beside it. */
export function bar(amount, most) {
  const units = toUnits(amount);
  if (units <= 0n) return "";
  // Tenths of a percent are precise enough for a bar, and fit a plain number.
  const percent = Number((units * 1_000n) / most) / 10;
  const drawn = s("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { width: Math.max(percent, 0.5), height: 4 }));
  return h("span", { class: "share" }, drawn);
}
