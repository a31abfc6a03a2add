// Why a request was charged: its cost, its price, and the balance after it.

import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";

const STATES = { held: ["In progress", "tag-warn"], captured: ["Charged", "tag-good"], released: ["Not charged", ""] };
const REASONS = {
  report: "The response reported its cost.",
  no_report: "The response did not report its cost, so the price's rule for that case applied.",
  release: "It was not served, so it cost nothing.",
  expiry: "The server that served it did not report the outcome in time, so the price's rule for a missing report applied.",
};

/** The facts about a request. */
export function explained({ request: of, price_version: version, balance_after: balance }) {
  const { request } = of;
  const isHeld = !request.explanation;
  const [words, kind] = STATES[request.state] ?? [request.state, ""];
  const facts = [
    ["Charged", figure(request.charged), "charged"],
    isHeld && (request.state === "held" ? ["Held", figure(request.held)] : ["Returned to the balance", figure(request.released), "refund"]),
    ["State", h("span", { class: `tag ${kind}`.trim() }, words)],
    ["Balance after", balance === null ? "Not known" : figure(balance), "balance-after"],
    ["Price version", version === null ? "None recorded" : h("a", { href: `#/prices/${version}` }, `Version ${version}`), "price-version"],
    ["Route", h("span", { class: "mono" }, `${request.http_method} ${request.route_template}`), "route"],
    request.upstream && ["Upstream", h("span", { class: "mono" }, request.upstream), "upstream"],
    request.request_path !== request.route_template && ["Path", h("span", { class: "mono" }, request.request_path)],
    ["Key", [of.key_name, " ", h("a", { class: "mono", href: `#/accounts/${of.org_id}?tab=keys` }, of.key_id)], "key"],
    [isHeld ? "Accepted (UTC)" : "Charged at (UTC)", time(request.created_at), "accepted"],
    isHeld && (request.settled_at ? ["Settled (UTC)", time(request.settled_at)] : ["Lease ends (UTC)", time(request.expires_at)]),
  ];
  const list = facts.filter(Boolean).map(([name, value, id]) => h("div", {}, h("dt", {}, name), h("dd", { "data-fact": id ?? null }, value)));
  const charges = h("a", { href: `#/accounts/${of.org_id}?tab=charges` }, "All charges of the account");
  return h("div", { "data-request": request.id }, h("p", { class: "mono break soft" }, request.id), h("dl", { class: "figures" }, ...list), h("p", { class: "soft", "data-fact": "why" }, request.explanation ?? REASONS[request.settled_by] ?? "Its cost is not known yet.", " ", charges));
}
