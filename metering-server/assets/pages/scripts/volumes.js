// The month's requests to routes with volume tiers: what the next one costs, and when that changes.

import { sentence } from "/assets/api.js";
import { toMinute } from "/assets/days.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

/** How many routes are shown at first. */
const FIRST = 5;
const COLUMNS = [
  { name: "Route", head: true, route: true },
  { name: "Requests", number: true },
  { name: "Price of the next", number: true },
  { name: "Left at this price", number: true },
  { name: "Price after that", number: true },
];

/** The section; nothing if no route has volume tiers. `volumes` is the service's response, or the error. */
export function volumeTiers(volumes) {
  const { month, resets_at: reset, routes, error } = volumes;
  if (routes?.length === 0) return h("span", { hidden: true });
  const title = h("h2", { id: "volumes-title" }, "Volume tiers");
  const section = (head, ...content) => h("section", { "aria-labelledby": "volumes-title", id: "volumes" }, h("div", { class: "section-head" }, title, head), ...content);
  if (error) return section(null, h("p", { class: "bad", role: "alert" }, sentence(error)));
  return section(
    h("p", { class: "soft" }, `${month}, UTC`),
    h("p", { class: "soft" }, "Here, the price of a request depends on how many came before it in the month. Prices are in credits. All routes start again at ", h("time", { datetime: reset }, toMinute(reset)), " UTC."),
    longTable("Requests this month to routes with volume tiers", COLUMNS, routes.map(row), FIRST),
  );
}

function row(route) {
  return [
    [h("span", { class: "method" }, route.http_method), ` ${route.route_template}`],
    group(route.call_count),
    price(route.next_price),
    route.tier_calls_left === null ? "No limit" : group(route.tier_calls_left),
    route.price_after_tier === null ? "–" : price(route.price_after_tier),
  ];
}

const price = (credits) => (credits === "0" ? "Free" : figure(credits));
