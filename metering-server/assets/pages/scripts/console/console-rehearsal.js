// The rehearsal of a catalogue: what the usage of the last days would have cost, and which accounts would have run out.

import { sentence } from "/assets/api.js";
import { admin } from "/assets/console-api.js";
import { fromUnits, group, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

const DAYS = 30;
/** It reads the usage of all accounts. */
const TIMEOUT = 120_000;
/** How many rows are shown at first. */
const FIRST = 5;
const USAGE = [{ name: "Calls", number: true }, { name: "Was", number: true }, { name: "Would be", number: true }, { name: "Difference", number: true }];
const RUN_OUT = [{ name: "Account", head: true }, { name: "Would have run out" }, { name: "Did" }, { name: "Balance then", number: true }];

/** The section, which fills itself. `text` is the catalogue. */
export function rehearsal(text) {
  const place = h("div", { class: "sections-small" }, h("p", { class: "soft", role: "status" }, `Rehearsing on the last ${DAYS} days …`));
  admin(`/catalogue/rehearse?days=${DAYS}`, { method: "POST", body: text, timeout: TIMEOUT }).then(
    (found) => place.replaceChildren(...results(found)),
    (error) => place.replaceChildren(h("p", { class: "notice notice-bad", role: "alert" }, `The rehearsal failed. ${sentence(error)}`)),
  );
  return h("section", { "aria-labelledby": "rehearsal-title", id: "rehearsal" }, h("h2", { id: "rehearsal-title" }, "Rehearsal"), place);
}

/** "+12%", rounded; nothing without a base. */
export function percent(before, after) {
  const [base, units] = [toUnits(before), toUnits(after)];
  if (base <= 0n) return null;
  const difference = units - base;
  const size = difference < 0n ? -difference : difference;
  const tenths = (size * 1_000n + base / 2n) / base;
  return `${difference < 0n ? "−" : "+"}${group(fromUnits(tenths, 1))}%`;
}

function results({ totals, accounts, by_route: routes, by_account: users, run_outs: count, run_out: ranOut }) {
  if (totals.calls === "0") return [h("p", { class: "soft" }, `No calls were made in the last ${DAYS} days, so there is nothing to rehearse.`)];
  const { credits_before: before, credits_after: after } = totals;
  const share = percent(before, after);
  const words = before === after ? "The same as" : `${share ?? "A change"} on`;
  const headline = h("p", {}, h("strong", { id: "rehearsed" }, `${words} the last ${DAYS} days`), ": ", figure(after), " credits instead of ", figure(before), ".");
  const some = count === "0" ? "No account would have run out sooner." : `${group(count)} ${plural(count, "account")} would have run out that did not, or that ran out later.`;
  const used = `${group(accounts)} ${plural(accounts, "account")} made ${group(totals.calls)} ${plural(totals.calls, "call")}.`;
  const parts = [h("div", { class: `notice ${count === "0" ? "notice-good" : "notice-warn"}` }, headline, h("p", {}, some, " ", used), ...doubts(totals))];
  if (ranOut.length > 0) parts.push(longTable("Accounts that would have run out", RUN_OUT, ranOut.map(runOut), FIRST));
  parts.push(longTable("Rehearsal by route", [{ name: "Route", head: true, route: true }, ...USAGE], routes.map((route) => [[h("span", { class: "method" }, route.http_method), ` ${route.route_template}`], ...usage(route)]), FIRST));
  parts.push(longTable("Rehearsal by account", [{ name: "Account", head: true }, ...USAGE], users.map((user) => [h("a", { href: `#/accounts/${user.org_id}` }, user.agent_name), ...usage(user)]), FIRST));
  return parts;
}

/** The limits of the estimate. */
function doubts({ estimated_calls: estimated, unknown_calls: unknown, credits_unknown: credits, removed_calls: removed }) {
  const doubt = (count, words) => count !== "0" && h("p", { class: "soft" }, `${group(count)} ${plural(count, "call")} ${words}`);
  return [
    doubt(estimated, "are estimated: their new price depends on what is only known in total."),
    doubt(unknown, `cannot be priced, because their new price depends on what was not recorded. The ${group(credits)} credits that were charged for them are counted unchanged.`),
    doubt(removed, "are to routes that the catalogue no longer has: they would be refused, and cost nothing."),
  ].filter(Boolean);
}

const usage = (row) => [group(row.calls), figure(row.credits_before), figure(row.credits_after), figure(row.credits_difference, { sign: true })];

function runOut({ org_id: id, agent_name: name, day, day_before: before, balance_after: balance }) {
  return [h("a", { href: `#/accounts/${id}` }, name), day, before ?? "It did not", figure(balance)];
}
