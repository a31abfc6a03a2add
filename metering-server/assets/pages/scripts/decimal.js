// Exact decimals. Credits have up to ten decimal places, and a binary float cannot hold them all. So numbers are read
// as text, compared as BigInt, and shown digit by digit.

import { h } from "/assets/dom.js";

/** Decimal places of credits on the wire. */
export const PLACES = 10;

/** Parses JSON with every number as text: 1.0000000001 becomes "1.0000000001". */
export function readExactly(json) {
  // Strings are matched so that they stay unchanged; outside of strings, only numbers have digits.
  const quoted = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token[0] === '"' ? token : `"${token}"`));
  return JSON.parse(quoted);
}

/** Converts a number to units of 10^-places: "1.5" with 2 places is 150n. Further digits are cut off. */
export function toUnits(text, places = PLACES) {
  const match = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(text);
  if (!match) throw new RangeError(`not a plain decimal: ${text}`);
  const [, sign, whole, fraction = ""] = match;
  const units = BigInt(whole + fraction.slice(0, places).padEnd(places, "0"));
  return sign === "-" ? -units : units;
}

/** Converts units back to a number, without trailing zeros. */
export function fromUnits(units, places = PLACES) {
  const sign = units < 0n ? "-" : "";
  const digits = String(units < 0n ? -units : units).padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places);
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "");
  return sign + whole + (fraction ? `.${fraction}` : "");
}

/** Adds thousands separators. */
export function group(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** The singular or plural of a noun. */
export const plural = (count, noun) => (count === "1" ? noun : `${noun}s`);

/** An exact amount, with its fraction in a lighter style. */
export function amount(text, { sign = false } = {}) {
  const plus = sign && !text.startsWith("-") && text !== "0" ? "+" : "";
  const [whole, fraction] = group(text).split(".");
  return h("span", { class: "amount" }, plus + whole, fraction && h("span", { class: "fraction" }, `.${fraction}`));
}

/** How many digits a meter has. */
const DRUMS = 6;
/** The units of a meter whose number has more whole digits than it has drums. */
const SCALES = [["", 0], ["million", 6], ["billion", 9]];

/** How many decimals a meter has room for beside these whole digits: at most `places`. */
const room = (whole, places) => Math.max(0, Math.min(places, DRUMS - whole.length));

/** A number with the decimals that a meter has room for. They are cut off, so that credits are never shown that are not there. */
export function cutOff(text, places) {
  const decimals = room(text.replace("-", "").split(".")[0], places);
  return fromUnits(toUnits(text, decimals), decimals);
}

/**
 * Shows a number as meter drums, one digit each: at most six, whole digits first, then up to `places` decimals, cut off.
 * Returns the word for its unit: none, million or billion.
 */
export function drums(element, text, places = 0) {
  const [signed, decimals = ""] = text.split(".");
  const sign = signed.startsWith("-") ? "-" : "";
  const digits = signed.slice(sign.length);
  const [unit, shift] = SCALES.findLast(([, size]) => size === 0 || digits.length > Math.max(size, DRUMS)) ?? SCALES[0];
  const whole = digits.slice(0, digits.length - shift);
  const [, fraction = ""] = cutOff(`${whole}.${digits.slice(digits.length - shift)}${decimals}`, places).split(".");
  const part = fraction.padEnd(room(whole, places), "0");
  const cells = (signs, kind) => [...signs].map((cell) => h("span", { class: /[.,-]/.test(cell) ? "sign" : kind }, cell));
  const front = cells(sign + group(whole) + (part ? "." : ""), "digit");
  const back = cells(part, "digit part");
  element.replaceChildren(h("span", { class: "drum-group" }, ...front), h("span", { class: "drum-group" }, ...back));
  // The style sheet sizes the drums by their number, so that they fit.
  element.style.setProperty("--cells", String(front.length + back.length));
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", group(text));
  element.dataset.exact = text;
  return unit;
}
