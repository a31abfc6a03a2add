// The routes and the accounts with the most credits used.

import { bar, largest } from "/assets/bar.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

/** How many rows are shown at first. */
const FIRST = 5;

/** The routes. */
export function topRoutes(routes) {
  const most = largest(routes.map((route) => route.credits_used));
  const rows = routes.map((route) => [
    [h("span", { class: "method" }, route.http_method), ` ${route.route_template}${route.model ? ` · ${route.model}` : ""}`, bar(route.credits_used, most)],
    group(route.call_count),
    figure(route.credits_used),
  ]);
  const columns = [{ name: "Route", head: true, route: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  return section("routes", "Top routes", columns, rows);
}

/** The accounts, each with a link to its page. */
export function topAccounts(accounts) {
  const most = largest(accounts.map((account) => account.credits_used));
  const rows = accounts.map((account) => [
    [h("a", { href: `#/accounts/${account.org_id}` }, account.agent_name), bar(account.credits_used, most)],
    group(account.usage_events),
    figure(account.credits_used),
  ]);
  const columns = [{ name: "Account", head: true }, { name: "Calls", number: true }, { name: "Credits", number: true }];
  return section("top-accounts", "Top accounts", columns, rows);
}

function section(id, title, columns, rows) {
  const list = rows.length > 0 ? longTable(title, columns, rows, FIRST, { stacks: false }) : h("p", { class: "soft" }, "No usage in these days.");
  return h("section", { "aria-labelledby": `${id}-title`, id }, h("h2", { id: `${id}-title` }, title), list);
}
