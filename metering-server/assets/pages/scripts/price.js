// The price of an operation, from the extension `x-price` of the OpenAPI document, whose amounts are exact texts.

import { fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { guideLink } from "/assets/guidelink.js";

/** How many digits of a price are shown on a row. */
const DIGITS = 4;
const BASE_CALLS_PER_CREDIT = 7200n;

/** Decimal places of a unit's price. */
const UNIT_PLACES = 18;
const isTokens = (unit) => /(^|_)tokens?$/.test(unit);

/** Rounds a decimal to its first significant digits: 0.0006944444 becomes 0.0006944. */
export function brief(text, digits = DIGITS) {
  const match = /^(\d+)\.(0*)(\d+)$/.exec(text);
  if (!match) return group(text);
  const [, whole, zeros, fraction] = match;
  const used = whole === "0" ? 0 : whole.length;
  const kept = Math.max(digits - used, 0);
  // Zeros after a whole part count as digits too.
  const places = whole === "0" ? zeros.length + kept : kept;
  const all = zeros + fraction;
  if (all.length <= places) return group(text);
  const scaled = BigInt(whole + all.slice(0, places)) + (all[places] >= "5" ? 1n : 0n);
  const padded = String(scaled).padStart(places + 1, "0");
  const rounded = places === 0 ? padded : `${padded.slice(0, -places)}.${padded.slice(-places)}`;
  return group(places === 0 ? rounded : rounded.replace(/\.?0+$/, ""));
}

const credits = (text) => (text === "1" ? "credit" : "credits");

/**
 * Whether all requests are free. A price that depends on a parameter or the volume may start at 0 without being free.
 */
export const isFree = (price) => !price || [price, ...(price.tiers ?? []), ...(price.volume ?? []), price.beyond ?? price].every(({ credits }) => credits === "0");

/** The price on an operation's row. */
export function priceTag(operation) {
  const price = operation["x-price"];
  if (isFree(price)) return h("span", { class: "price free" }, "Free");
  const from = price.tiers || price.volume ? "from " : price.units ? "up to " : "";
  const per = price.per === "connection" ? " per connection" : "";
  return h("span", { class: "price", title: `${from}${price.credits} credits per ${price.per}` }, from, h("span", { class: "figure" }, brief(price.credits)), ` ${credits(price.credits)}${per}`);
}

/**
 * The price of a request with these parameters, in credits; for volume tiers, `null`, because it depends on the
 * account; for a price that depends on one, `null` while it has no value. For a price by usage, it is the amount that
 * is held.
 */
export function priceFor(price, values) {
  if (price.volume) return null;
  if (!price.tiers) return price.credits;
  const value = values.get(price.param) ?? "";
  if (!/^\d+$/.test(value)) return null;
  return (price.tiers.find((tier) => BigInt(value) <= BigInt(tier.max_seconds)) ?? price.beyond).credits;
}

/** The price in full: exact, and how many requests a credit buys. */
export function priceInFull(operation) {
  const price = operation["x-price"];
  if (isFree(price)) return null;
  if (price.tiers) return h("div", { class: "price-facts" }, h("p", {}, "The price depends on ", h("code", {}, price.param), ":"), tiers(price));
  if (price.volume) return h("div", { class: "price-facts" }, h("p", {}, "The price of a request depends on its number in the calendar month (UTC):"), byVolume(price.volume), h("p", {}, guideLink("tokens#free-allowances-and-volume-prices", "How volume prices work")));
  if (price.units) return h("div", { class: "price-facts" }, ...byUsage(price));
  const unit = /^\d+$/.test(price.base_calls) && BASE_CALLS_PER_CREDIT % BigInt(price.base_calls) === 0n ? String(BASE_CALLS_PER_CREDIT / BigInt(price.base_calls)) : null;
  const often = unit && unit !== "1" ? ` A credit buys ${group(unit)} ${price.per}s.` : "";
  return h("p", { class: "price-facts" }, h("strong", {}, `${group(price.credits)} ${credits(price.credits)}`), ` per ${price.per}.${often}`);
}

/** A price that depends on what the response uses. */
function byUsage({ credits: max, min, units, over, models }) {
  const least = min.credits === "0" ? "" : ` and at least ${group(min.credits)}`;
  const more = over === "debt" ? " A higher cost is charged in full." : "";
  const held = h("p", {}, "You pay for what a request uses: up to ", h("strong", {}, `${group(max)} ${credits(max)}`), `${least}.${more} `, guideLink("tokens", "How usage is priced"), ".");
  if (models) return [held, byModel(Object.keys(units), models)];
  const rows = Object.entries(units).map(([unit, amount]) => h("tr", {}, h("th", { scope: "row" }, unit), h("td", { class: "number" }, perUnit(unit, amount))));
  return rows.length === 0 ? [held] : [held, figures(["Unit", "Credits"], rows)];
}

/** The price of a unit; for tokens, the price per million, which is how they are compared. */
const perUnit = (unit, amount) => (isTokens(unit) ? `${group(fromUnits(toUnits(amount, UNIT_PLACES) * 1_000_000n, UNIT_PLACES))} per million` : `${group(amount)} each`);

/** The units' prices of each model. */
function byModel(units, models) {
  const row = ([model, price]) => h("tr", {}, h("th", { scope: "row" }, model), ...units.map((unit) => h("td", { class: "number" }, perUnit(unit, price.units[unit] ?? "0"))));
  const heads = units.map((unit) => h("th", { scope: "col", class: "number" }, unit));
  return table([h("th", { scope: "col" }, "Model"), ...heads], Object.entries(models).map(row));
}

function byVolume(tiers) {
  const row = (tier) => {
    const requests = tier.up_to === undefined ? "after that" : `up to ${group(String(tier.up_to))}`;
    return h("tr", {}, h("th", { scope: "row" }, requests), h("td", { class: "number" }, group(tier.credits)));
  };
  return figures(["Requests", "Credits each"], tiers.map(row));
}

function tiers({ tiers, beyond }) {
  const row = (seconds, { credits: amount }) => h("tr", {}, h("th", { scope: "row" }, seconds), h("td", { class: "number" }, group(amount)));
  const last = tiers.at(-1).max_seconds;
  return figures(["Seconds", "Credits"], [...tiers.map((tier) => row(`up to ${group(String(tier.max_seconds))}`, tier)), row(`above ${group(String(last))}`, beyond)]);
}

/** A table with a column of amounts. */
function figures([first, second], rows) {
  return table([h("th", { scope: "col" }, first), h("th", { scope: "col", class: "number" }, second)], rows);
}

const table = (heads, rows) => h("div", { class: "table-frame price-table" }, h("table", { class: "data" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)));
