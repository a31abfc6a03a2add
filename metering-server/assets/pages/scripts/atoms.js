// Atoms, the unit of receipts and statements: 7,200,000,000 make a credit.

import { fromUnits } from "/assets/decimal.js";

/** Credits with ten decimal places, rounded half to even, as by the service. */
export function credits(atoms) {
  const scaled = BigInt(atoms) * 25n;
  const rest = ((scaled % 18n) + 18n) % 18n;
  const units = (scaled - rest) / 18n;
  return fromUnits(rest > 9n || (rest === 9n && units % 2n !== 0n) ? units + 1n : units);
}
