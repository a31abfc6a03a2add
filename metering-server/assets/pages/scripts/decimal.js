// Exact decimals. Credits have up to ten places, and a binary float cannot hold them all: so numbers are read as the
// text that they are, counted as BigInt where they must be compared, and shown digit by digit.

import { h } from "/assets/dom.js";

/** Places of a credit on the wire. */
export const PLACES = 10;

/** Reads JSON with every number as its text: 1.0000000001 becomes "1.0000000001". */
export function readExactly(json) {
  // Strings are matched to be left alone; outside of them, only numbers have digits.
  const quoted = json.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token[0] === '"' ? token : `"${token}"`));
  return JSON.parse(quoted);
}

/** The number as a whole count of 10^-places: "1.5" with 2 places is 150n. Digits beyond the places are cut off. */
export function toUnits(text, places = PLACES) {
  const match = /^([+-]?)(\d+)(?:\.(\d*))?$/.exec(text);
  if (!match) throw new RangeError(`not a plain decimal: ${text}`);
  const [, sign, whole, fraction = ""] = match;
  const units = BigInt(whole + fraction.slice(0, places).padEnd(places, "0"));
  return sign === "-" ? -units : units;
}

/** The other way around, without trailing zeros. */
export function fromUnits(units, places = PLACES) {
  const sign = units < 0n ? "-" : "";
  const digits = String(units < 0n ? -units : units).padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places);
  const fraction = digits.slice(digits.length - places).replace(/0+$/, "");
  return sign + whole + (fraction ? `.${fraction}` : "");
}

/** The number with commas between groups of three digits before the point. */
export function group(text) {
  const [whole, fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** The noun for a number of things. */
export const plural = (count, noun) => (count === "1" ? noun : `${noun}s`);

/** An amount to read: exact, its fraction quieter than what stands before the point. */
export function amount(text, { sign = false } = {}) {
  const plus = sign && !text.startsWith("-") && text !== "0" ? "+" : "";
  const [whole, fraction] = group(text).split(".");
  return h("span", { class: "amount" }, plus + whole, fraction && h("span", { class: "fraction" }, `.${fraction}`));
}

/** Draws a number on drums, one digit each, with at least so many places after the point. */
export function drums(element, text, places = 0) {
  const [whole, fraction = ""] = text.split(".");
  const part = fraction.padEnd(places, "0");
  const cells = (signs, kind) => [...signs].map((sign) => h("span", { class: /[.,-]/.test(sign) ? "sign" : kind }, sign));
  const front = cells(group(whole) + (part ? "." : ""), "digit");
  const back = cells(part, "digit part");
  element.replaceChildren(h("span", { class: "drum-group" }, ...front), h("span", { class: "drum-group" }, ...back));
  // The style sheet sizes the drums by how many there are, so that they fit.
  element.classList.toggle("long", front.length + back.length > 14);
  element.style.setProperty("--cells", String(front.length + back.length));
  element.style.setProperty("--widest", String(Math.max(front.length, back.length)));
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", group(text));
}
