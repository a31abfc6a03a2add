// A countdown until something takes effect.

import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";

/** From this many days on, hours are omitted. */
const MANY_DAYS = 30;
const STEPS = [["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];

/** A span of seconds as text: its two largest parts. */
export function spanInWords(seconds) {
  const parts = [];
  let rest = seconds;
  for (const [name, size] of STEPS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${group(String(count))} ${name}${count === 1 ? "" : "s"}`);
    else if (parts.length > 0) break;
    if (parts.length === 2 || (name === "day" && count >= MANY_DAYS)) break;
  }
  return parts.join(" ") || "a moment";
}

/** The words, which count down while they are shown. `at` is a time. */
export function countdown(at) {
  const words = h("span", { class: "countdown", role: "timer" });
  const tick = () => {
    const seconds = Math.ceil((Date.parse(at) - Date.now()) / 1_000);
    words.textContent = seconds > 0 ? `in ${spanInWords(seconds)}` : "now";
    return seconds > 0;
  };
  tick();
  // It is not in the page yet when it is created.
  let wasShown = false;
  const timer = setInterval(() => {
    wasShown ||= words.isConnected;
    if (!tick() || (wasShown && !words.isConnected)) clearInterval(timer);
  }, 1_000);
  return words;
}
