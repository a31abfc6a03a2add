// Credits that are held for requests in progress, whose cost is not known yet.

import { sentence } from "/assets/api.js";
import { toSecond } from "/assets/days.js";
import { plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { longTable } from "/assets/table.js";

/** How many requests are shown at first. */
const FIRST = 5;
/** The maximum that the service lists. */
const MOST = 100;

/** Whether an account has credits that are held. Services without holds omit the field. */
export const isHolding = ({ credits_held: held = "0" }) => toUnits(held) > 0n;

/** The line of the balance, linked to the list. */
export function heldLine(balance) {
  const { credits_held: held } = balance;
  return h("p", { class: "soft", id: "held" }, figure(held), ` more ${plural(held, "credit")} held for `, h("a", { href: "#held-requests" }, "requests in progress"));
}

/** The section; empty while nothing is held. `requests` is the list, or the error of loading it. */
export function heldRequests(balance, requests) {
  if (!isHolding(balance)) return h("span", { hidden: true });
  return h(
    "section",
    { "aria-labelledby": "held-title", id: "held-requests", tabindex: "-1" },
    h("div", { class: "section-head" }, h("h2", { id: "held-title" }, "Requests in progress"), h("p", { class: "soft" }, "Times are UTC")),
    h("p", { class: "soft" }, "Each holds what it may cost. When its cost is known, that is charged, and the rest returns to the balance."),
    requests.error ? h("p", { class: "bad", role: "alert" }, sentence(requests.error)) : listOf(requests.data),
  );
}

function listOf(requests) {
  if (requests.length === 0) return h("p", { class: "soft" }, "They have just been charged. Refresh to see what they cost.");
  const columns = [{ name: "Time", head: true }, { name: "Route", route: true }, { name: "Request" }, { name: "Held", number: true }];
  const rows = requests.map((request) => [
    h("time", { datetime: request.created_at, title: request.created_at }, toSecond(request.created_at)),
    `${request.http_method} ${request.request_path}`,
    h("code", { class: "request-id" }, request.id),
    figure(request.held),
  ]);
  const list = longTable("Requests in progress", columns, rows, FIRST);
  return requests.length < MOST ? list : h("div", {}, list, h("p", { class: "soft" }, `These are the newest ${MOST}; there may be more.`));
}
