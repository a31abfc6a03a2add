// The axis of a chart.

const TEN = 10n;
/** The maximum number of steps of an axis. */
const STEPS = 4n;

/** An axis for amounts up to `most`: its top, so that the highest bar uses the height, and up to four round steps. */
export function scale(most, unit = 1n) {
  const top = most > 0n ? most : unit;
  let step = 0n;
  for (let size = 1n; step === 0n; size *= TEN) step = [1n, 2n, 5n].map((factor) => factor * size).find((candidate) => top / candidate <= STEPS) ?? 0n;
  return { top, ticks: Array.from({ length: Number(top / step) + 1 }, (_, index) => BigInt(index) * step) };
}

/** The height of an amount, given that of the top. Ten-thousandths are precise enough for a bar, and fit a plain number. */
export const heightOf = (amount, top, height) => (amount <= 0n ? 0 : (Number((amount * 10_000n) / top) / 10_000) * height);
