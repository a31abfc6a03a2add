// The USAGE tab: the account's balance, what it was spent on, recent activity and purchases.

import { activity as recentActivity } from "/assets/activity.js";
import { bar, largest } from "/assets/bar.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { heldRequests } from "/assets/held.js";
import { purchases } from "/assets/purchases.js";
import { longTable } from "/assets/table.js";
import { tiles } from "/assets/tiles.js";
import { trend } from "/assets/trend.js";
import { volumeTiers } from "/assets/volumes.js";

/** How many endpoints or keys are shown at first. */
const FIRST = 5;

const DEFAULT_VIEW = { days: 30, measure: "credits", route: "" };
/** What the user chose to see. It outlives a refresh, but not signing out. */
export const view = { ...DEFAULT_VIEW };
export const resetView = () => Object.assign(view, DEFAULT_VIEW);

/** Fills the tab. `now` is the service's time; its days are UTC days. `reload` fetches the data again. */
export function showUsage(panel, { key, balance, summary, recent, activity, receipts, held, volumes, now }, reload) {
  const names = keyNames([recent, summary], activity);
  panel.replaceChildren(
    tiles(balance, recent, now, { key, reload }),
    trend({ key, summary, now, view, reload }),
    byEndpoint(summary),
    volumeTiers(volumes),
    names ? byKey(summary) : h("span", { hidden: true }),
    heldRequests(balance, held),
    recentActivity(activity, names),
    purchases({ key, receipts }),
  );
}

/** The names of the keys that were used, by id; null if there is only one. */
function keyNames(summaries, { transactions }) {
  const names = new Map(transactions.filter((entry) => entry.key_id).map((entry) => [entry.key_id, entry.key_id]));
  for (const { by_key: keys } of summaries) for (const { key_id: id, key_name: name } of keys) names.set(id, name);
  return names.size > 1 ? names : null;
}

function byEndpoint(summary) {
  if (summary.by_endpoint.length === 0) return h("span", { hidden: true });
  const most = largest(summary.by_endpoint.map((entry) => entry.credits_used));
  const columns = [{ name: "Route", head: true, route: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const rows = summary.by_endpoint.map((entry) => [
    [h("span", { class: "method" }, entry.http_method), ` ${entry.route_template}`, bar(entry.credits_used, most)],
    group(entry.call_count),
    figure(entry.credits_used),
  ]);
  return top("endpoints", "Top endpoints", summary, columns, rows);
}

function byKey(summary) {
  const most = largest(summary.by_key.map((entry) => entry.credits_used));
  const columns = [{ name: "Key", head: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  const rows = summary.by_key.map((entry) => [
    [h("span", { title: entry.key_id }, entry.key_name), bar(entry.credits_used, most)],
    group(entry.call_count),
    figure(entry.credits_used),
  ]);
  return top("spending-keys", "Spent by key", summary, columns, rows);
}

/** A table of what was used most in the window. */
function top(id, title, { window_days: days }, columns, rows) {
  const period = `last ${days} days`;
  return h(
    "section",
    { "aria-labelledby": `${id}-title`, id },
    h("div", { class: "section-head" }, h("h2", { id: `${id}-title` }, title), h("p", { class: "soft" }, `L${period.slice(1)}`)),
    longTable(`${title}, ${period}`, columns, rows, FIRST, { stacks: false }),
  );
}
