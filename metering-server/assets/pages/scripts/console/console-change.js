// A sum compared with the period before, as text.

import { toUnits } from "/assets/decimal.js";

/** "+12% on the 30 days before". Amounts are texts. */
export function change(now, before, days) {
  const [units, base] = [toUnits(now), toUnits(before)];
  const period = `the ${days} days before`;
  if (units === base) return `Same as ${period}`;
  if (base <= 0n) return `None in ${period}`;
  const difference = units - base;
  const size = difference < 0n ? -difference : difference;
  // Half of the base rounds to the nearest.
  const percent = (size * 100n + base / 2n) / base;
  if (percent === 0n) return `Same as ${period}`;
  if (percent > 900n) return `More than ten times ${period}`;
  return `${difference < 0n ? "−" : "+"}${percent}% on ${period}`;
}
