// The USAGE tab: the account's balance, what it was spent on, recent activity and purchases.

import { activity as recentActivity } from "/assets/activity.js";
import { longTable } from "/assets/table.js";
import { group, toUnits } from "/assets/decimal.js";
import { h, s } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { purchases } from "/assets/purchases.js";
import { tiles } from "/assets/tiles.js";
import { trend } from "/assets/trend.js";

/** How many endpoints are shown at first. */
const FIRST_ENDPOINTS = 5;

const DEFAULT_VIEW = { days: 30, measure: "credits", route: "" };
/** What the user chose to see. It outlives a refresh, but not signing out. */
export const view = { ...DEFAULT_VIEW };
export const resetView = () => Object.assign(view, DEFAULT_VIEW);

/** Fills the tab. `now` is the service's time; its days are UTC days. `reload` fetches the data again. */
export function showUsage(panel, { key, balance, summary, recent, activity, receipts, now }, reload) {
  panel.replaceChildren(
    tiles(balance, recent, now),
    trend({ key, summary, now, view, reload }),
    byEndpoint(summary),
    recentActivity(activity),
    purchases({ key, receipts }),
  );
}

function byEndpoint(summary) {
  if (summary.by_endpoint.length === 0) return h("span", { hidden: true });
  const most = summary.by_endpoint.reduce((top, { credits_used: used }) => (toUnits(used) > top ? toUnits(used) : top), 1n);
  const share = (used) => {
    const percent = Number((toUnits(used) * 1_000n) / most) / 10;
    const bar = s("svg", { viewBox: "0 0 100 4", preserveAspectRatio: "none", "aria-hidden": "true" }, s("rect", { width: Math.max(percent, 0.5), height: 4 }));
    return h("span", { class: "share" }, bar);
  };
  const columns = [{ name: "Route", head: true, route: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const rows = summary.by_endpoint.map((entry) => [
    [h("span", { class: "method" }, entry.http_method), ` ${entry.route_template}`, toUnits(entry.credits_used) > 0n ? share(entry.credits_used) : ""],
    group(entry.call_count),
    figure(entry.credits_used),
  ]);
  const period = `last ${summary.window_days} days`;
  return h(
    "section",
    { "aria-labelledby": "endpoints-title" },
    h("div", { class: "section-head" }, h("h2", { id: "endpoints-title" }, "Top endpoints"), h("p", { class: "soft" }, `L${period.slice(1)}`)),
    longTable(`Top endpoints, ${period}`, columns, rows, FIRST_ENDPOINTS, { stacks: false }),
  );
}
