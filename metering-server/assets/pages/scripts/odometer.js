// The odometer: a meter rolls up to its new amount when credits have arrived.

import { drums, fromUnits, group, toUnits } from "/assets/decimal.js";

const ROLL_MS = 1_200;
const STEPS = 1_000;

/**
 * Shows `to` on a meter, and rolls up to it from `from`, if that is known and less, once the meter is on the screen.
 * Screen readers and copies get `to` immediately. Returns the word for the meter's unit.
 */
export function rollTo(element, from, to, places) {
  const unit = drums(element, to, places);
  const isStill = from === null || toUnits(from) >= toUnits(to) || matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (isStill) return unit;
  element.dataset.rolling = "";
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    roll(element, toUnits(from), to, places);
  });
  seen.observe(element);
  return unit;
}

function roll(element, start, to, places) {
  const [end, begun] = [toUnits(to), performance.now()];
  const frame = (now) => {
    const part = Math.min(Math.max(now - begun, 0) / ROLL_MS, 1);
    // Slower towards the end. Only the share is a float: the amounts stay exact.
    const share = BigInt(Math.round((1 - (1 - part) ** 3) * STEPS));
    drums(element, fromUnits(start + ((end - start) * share) / BigInt(STEPS)), places);
    element.setAttribute("aria-label", group(to));
    element.dataset.exact = to;
    if (part < 1 && element.isConnected) requestAnimationFrame(frame);
    else delete element.dataset.rolling;
  };
  requestAnimationFrame(frame);
}
