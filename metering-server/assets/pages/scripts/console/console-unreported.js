// Requests whose responses did not report their cost, by route.

import { time } from "/assets/console-time.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { longTable } from "/assets/table.js";

/** How many rows are shown at first. */
const FIRST = 5;
const COLUMNS = [{ name: "Route", head: true, route: true }, { name: "Requests", number: true }, { name: "Paid the whole hold", number: true }, { name: "Last (UTC)" }];

/** The section; nothing where no route is priced by usage. */
export function unreported(counts) {
  if (!counts) return null;
  const row = (route) => [route.route_template, group(route.requests), group(route.in_full), time(route.last_at)];
  const list = counts.routes.length > 0 ? longTable("Settled without a report, by route", COLUMNS, counts.routes.map(row), FIRST) : h("p", { class: "soft" }, "Every response reported its cost.");
  return h(
    "section",
    { "aria-labelledby": "unreported-title", id: "unreported" },
    h("h2", { id: "unreported-title" }, "Settled without a report"),
    h("p", { class: "soft" }, "Responses of this server since ", time(counts.since), " UTC that did not report their cost. The price's ", h("code", {}, "missing"), " sets the charge in that case; check the upstream's responses."),
    list,
  );
}
