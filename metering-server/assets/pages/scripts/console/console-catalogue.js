// The served catalogue: its routes and their prices.

import { admin } from "/assets/console-api.js";
import { checkFile } from "/assets/console-check.js";
import { fromUnits, group, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { brief } from "/assets/price.js";
import { table } from "/assets/table.js";

const COLUMNS = [{ name: "Route", head: true, route: true }, { name: "Group" }, { name: "Price" }];

/** The view. */
export async function catalogue() {
  const file = await admin("/catalogue");
  const place = h("div", {});
  const count = h("p", { class: "status", id: "routes-found", role: "status" });
  const input = h("input", { id: "route-filter", type: "search", autocomplete: "off", spellcheck: "false" });
  const show = (words) => {
    const wanted = words.toLowerCase();
    const routes = file.endpoints.filter((route) => `${route.method} ${route.path} ${route.group ?? ""} ${route.description ?? ""}`.toLowerCase().includes(wanted));
    place.replaceChildren(routes.length > 0 ? table("Routes", COLUMNS, routes.map(row)) : h("p", { class: "soft empty" }, "No route matches."));
    return routes.length;
  };
  input.addEventListener("input", () => {
    const found = show(input.value.trim());
    count.textContent = found === 1 ? "1 route" : `${found} routes`;
  });
  show("");
  const list = h("section", { "aria-labelledby": "routes-title", id: "routes" }, h("h2", { id: "routes-title" }, `${file.endpoints.length} routes`), h("div", { class: "field" }, h("label", { for: "route-filter" }, "Filter routes"), input), count, place);
  return {
    title: "Catalogue",
    lead: [`${file.market}, version ${file.version}. Others, past and scheduled, are `, h("a", { href: "#/prices" }, "price versions"), "."],
    body: [h("div", { class: "sections" }, checkFile(), list)],
  };
}

function row(route) {
  return [
    [h("span", { class: "method" }, route.method), ` ${route.path}`, route.description && h("span", { class: "under route-words" }, route.description)].filter(Boolean),
    route.group ?? "",
    price(route),
  ];
}

/** Decimal places of a weight. */
const WEIGHT_PLACES = 6;
/** A price shows fewer. */
const PRICE_PLACES = 20;

/** The credits of a weight. A weight is in base calls, and a credit buys 7,200 of them. Rounded to four digits. */
function ofWeight(weight) {
  const units = toUnits(weight, WEIGHT_PLACES) * 10n ** BigInt(PRICE_PLACES - WEIGHT_PLACES);
  return brief(fromUnits(units / 7200n, PRICE_PLACES));
}

/** The text of a price in the file. */
function price(route) {
  if (!route.metered) return "Not metered";
  const modifier = route.billing_modifier ?? {};
  if (modifier.type === "stream_session") return [`${group(modifier.credits_per_connection)} credits`, h("span", { class: "under" }, "per connection")];
  if (Array.isArray(route.price)) return byVolume(route.price);
  if (route.price !== null && typeof route.price === "object") return byUsage(route.price);
  const weight = route.credit_weight ?? "1";
  const base = route.price === undefined ? [`${ofWeight(weight)} credits`, h("span", { class: "under" }, `weight ${group(weight)}`)] : [`${group(route.price)} credits`];
  if (modifier.type !== "lookback_multiplier") return base;
  const tiers = modifier.tiers.map((tier) => `× ${tier.multiplier} up to ${group(tier.max_seconds)}`);
  return [...base, h("span", { class: "under" }, `by ${modifier.param}: ${tiers.join(", ")}, × ${modifier.overflow_multiplier} above`)];
}

/** A price by the number of the request in the month. */
function byVolume([first, ...others]) {
  const each = ({ credits, up_to: last }) => `${group(credits)}${last === undefined ? " after that" : ` up to ${group(last)}`}`;
  return [`${group(first.credits)} credits`, h("span", { class: "under" }, `up to request ${group(first.up_to)} of a month, ${others.map(each).join(", ")}`)];
}

/** A price by what the response uses. */
function byUsage({ max, units }) {
  const each = Object.entries(units ?? {}).filter(([unit]) => !/^(x-|\$)/.test(unit)).map(([unit, amount]) => `${unit} ${amount} each`);
  return [`up to ${group(max)} credits`, h("span", { class: "under" }, each.join(", ") || "as each response reports")];
}
