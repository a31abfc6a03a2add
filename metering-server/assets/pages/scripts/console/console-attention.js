// Items that need attention, each with a link to the page that solves it.

import { sentence } from "/assets/api.js";
import { admin, query } from "/assets/console-api.js";
import { chainName } from "/assets/console-chains.js";
import { paid } from "/assets/console-credited.js";
import { readMetrics } from "/assets/console-metrics.js";
import { day, time } from "/assets/console-time.js";
import { group, plural } from "/assets/decimal.js";
import { busy, h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";

/** How many items the overview shows of each kind before the rest is only counted. */
const MOST = 5;

/**
 * The section, which fills itself. `counts` are the requests without a report, `health` is a promise of `{value}`. Shows a
 * few items of each kind and how many more there are, or, if it `isWhole`, all of them, page by page.
 */
export function attention({ counts, health, isWhole = false }) {
  const most = isWhole ? Infinity : MOST;
  const [trouble, place, rest] = [h("div", {}), h("ul", { class: "attention", hidden: "" }), h("div", {})];
  const [known, waits] = [{}, new Set(["attention", "metrics", "health"])];
  const parts = { services: [], found: [], unreported: first(unreported(counts), most, "unreported", "No report") };
  place.append(...parts.unreported);
  // Replaces the items of one part. Those of the others stay in the page, so that none loses the focus.
  const put = (name, items) => {
    for (const old of parts[name]) old.remove();
    parts[name] = items;
    const names = Object.keys(parts);
    const [next] = names.slice(names.indexOf(name) + 1).flatMap((later) => parts[later]);
    for (const one of items) place.insertBefore(one, next ?? null);
  };
  const draw = () => {
    place.hidden = place.children.length === 0;
    trouble.replaceChildren(...(known.problem ? [h("p", { class: "notice notice-bad", role: "alert" }, known.problem)] : []));
    const isNone = place.hidden && !known.problem;
    const none = waits.size > 0 ? h("p", { class: "soft", role: "status" }, "Looking …") : isNone && h("p", { class: "soft", id: "no-attention" }, "Nothing needs attention.");
    rest.replaceChildren(...(none ? [none] : []));
  };
  const drawServices = () => put("services", services(known.health, known.metrics));
  const drawFound = () =>
    known.attention &&
    put("found", [
      ...KINDS.flatMap((kind) => listed(kind, known.attention)),
      ...first(unpaid(known.attention.unpaid), most, "unpaid", "Not paid"),
      ...first(refunds(known.attention.to_refund), most, "refund", "Refund"),
      ...first(sinks(known.attention.usage_sinks), most, "sink", "Sink"),
    ]);
  // The items of a kind, and what leads to the rest of them.
  const listed = ({ list, kind, words, items }, found) => {
    const shown = items(found);
    const isMore = found.next[list] !== null;
    if (!isWhole) return first(shown, most, kind, words, { count: list === "unclaimed" ? found.unclaimed_count : null, isMore });
    if (!isMore) return shown;
    const button = h("button", { class: "button button-quiet button-small", type: "button", "data-more": list }, "Show more", h("span", { class: "quietly-there" }, `: ${words}`));
    button.addEventListener("click", () => busy(button, () => further(list, kind, found, shown.length)));
    return [...shown, item(kind, words, button)];
  };
  const further = async (list, kind, found, shown) => {
    try {
      const page = await admin(`/attention${query({ kind: list, after: found.next[list] })}`);
      known.attention = { ...found, [list]: [...found[list], ...page[list]], next: { ...found.next, [list]: page.next[list] } };
      known.problem = null;
    } catch (error) {
      known.problem = sentence(error);
    }
    drawFound();
    draw();
    // The pressed button disappeared with the list.
    const rows = place.querySelectorAll(`[data-attention="${kind}"]`);
    const grown = rows[Math.min(shown, rows.length - 1)];
    if (grown) grown.tabIndex = -1;
    grown?.focus({ preventScroll: true });
  };
  // A chain that is down makes the health slow: the rest does not wait for it.
  const take = (name, promise, drawPart) =>
    promise.then((value) => (known[name] = value), (error) => (known.problem = sentence(error))).finally(() => {
      waits.delete(name);
      drawPart();
      draw();
    });
  take("attention", admin(isWhole ? "/attention?limit=100" : "/attention"), drawFound);
  take("metrics", readMetrics().catch(() => null), drawServices);
  take("health", health.then(({ value }) => value), drawServices);
  draw();
  return h("section", { "aria-labelledby": "attention-title", id: "attention" }, h("h2", { id: "attention-title" }, "Needs attention"), trouble, place, rest);
}

const item = (kind, words, ...content) => h("li", { "data-attention": kind }, h("span", { class: `tag ${TAGS[kind] ?? "tag-warn"}` }, words), h("span", {}, ...content));
const TAGS = { service: "tag-bad", chain: "tag-bad", webhook: "tag-bad", payment: "tag-accent", unpaid: "tag-bad", refund: "tag-bad" };

/** The first of some items, and how many more there are, with a link to all. `isMore` if the items are not all, and only `count` knows how many. */
function first(items, most, kind, words, { count = null, isMore = false } = {}) {
  const shown = items.slice(0, most);
  const rest = BigInt(count ?? items.length) - BigInt(shown.length);
  if (rest <= 0n && !isMore) return shown;
  const least = rest > 0n ? `${group(String(rest))} more. ` : "There may be more. ";
  return [...shown, item(kind, words, isMore && count === null && rest > 0n ? `At least ${least}` : least, h("a", { href: "#/attention" }, "Show all", h("span", { class: "quietly-there" }, `: ${words}`)))];
}

function services(health, metrics) {
  const items = [];
  if (health?.problem) items.push(item("service", "Service", health.problem));
  for (const { name, problem } of health?.chains ?? []) {
    if (problem) items.push(item("chain", "Chain", h("strong", {}, name), `: ${problem}. Payments on it are credited once it can be read. Check its `, h("code", {}, "rpc_urls"), "."));
  }
  for (const { chain, source } of metrics?.sources ?? []) {
    items.push(item("source", "Source", `RPC source ${source} of ${chainName(health?.chains ?? [], chain)} does not respond. Check the entry in its `, h("code", {}, "rpc_urls"), "."));
  }
  for (const wallet of health?.gas_wallets ?? []) {
    if (!wallet.is_low && !wallet.problem && !wallet.paused_until) continue;
    const left = wallet.transactions === null ? "" : ` It pays the gas of about ${group(wallet.transactions)} more payments.`;
    const words = wallet.problem ?? (wallet.paused_until ? `It executes no payments until ${wallet.paused_until}.` : "It runs low: refill it.");
    items.push(item("gas", "Gas", "Wallet ", h("span", { class: "mono break" }, wallet.wallet), ` on ${wallet.name}: ${words}${left}`));
  }
  if (metrics?.certificate) items.push(item("certificate", "Certificate", "It expires on ", day(metrics.certificate), ". Renew its files; the server loads the new ones by itself."));
  return items;
}

function unclaimed({ unclaimed: payments }) {
  return payments.map(({ payment, nearest_plan: plan, paid_before: before }) => {
    const block = payment.block_number;
    const link = h("a", { href: `#/payments${query({ chain: payment.chain, from_block: block, to_block: block })}` }, "Assign it", h("span", { class: "quietly-there" }, ` ${payment.tx_hash}`));
    return item("payment", "Payment", h("strong", {}, paid(payment)), ` on ${payment.chain}, `, time(payment.mined_at), ` UTC${fit(payment, plan)}. `, history(payment, before), link);
  });
}

/** How a payment compares to the plan with the nearest price. */
function fit({ token_symbol: symbol }, plan) {
  if (!plan) return ", for which no plan is on sale";
  if (plan.difference === "0") return `, the price of ${plan.label}`;
  return `, ${plan.difference} ${symbol ?? ""} ${plan.is_short ? "short of" : "more than"} ${plan.label}`;
}

function history({ payer_address: payer }, [last]) {
  if (!last) return payer ? ["Wallet ", h("span", { class: "mono break" }, payer), " has not paid before. "] : "";
  return ["This wallet paid ", last.paid, ` for ${last.plan_label ?? last.plan_id ?? "credits"} before, on `, day(last.at), ", for ", h("a", { href: `#/accounts/${last.org_id}`, class: "mono break" }, last.org_id), ". "];
}

function unpaid(payments) {
  return payments.map(({ org_id: id, payer_address: payer, credits_used: used, reason, since }) =>
    item("unpaid", "Not paid", "Wallet ", h("span", { class: "mono break" }, payer), " was served for ", figure(used), " credits and its payment failed (", reason, ") on ", time(since), " UTC. It gets no further requests on credit. ", h("a", { href: `#/accounts/${id}` }, "Its account", h("span", { class: "quietly-there" }, ` ${id}`))),
  );
}

function refunds(payments = []) {
  return payments.map(({ org_id: id, processor, processor_id: payment, paid: amount, at }) =>
    item("refund", "Refund", h("strong", {}, amount), ", payment ", h("span", { class: "mono break" }, payment), ` at ${processor}, was taken on `, time(at), " UTC for an account that is revoked. Refund it there. ", h("a", { href: `#/accounts/${id}` }, "Its account", h("span", { class: "quietly-there" }, ` ${id}`))),
  );
}

function webhooks({ webhooks: failing }) {
  return failing.map(({ org_id: account, webhook, since, attempts, last_status: status, last_error: error }) => {
    const why = error ?? (status ? `status ${status}` : "no response");
    const words = [h("span", { class: "break" }, webhook.url), " fails since ", time(since), ` UTC: ${why}, ${group(attempts)} ${plural(attempts, "attempt")}. `];
    const link = account ? h("a", { href: `#/accounts/${account}?tab=webhooks` }, "Its deliveries", h("span", { class: "quietly-there" }, ` of ${account}`)) : ["It is your own: check ", h("code", {}, "webhooks.url"), "."];
    return item("webhook", "Webhook", ...words, link);
  });
}

function sinks(failing = []) {
  return failing.map(({ name, since, last_status: status, last_error: error }) => {
    const why = error ?? (status ? `status ${status}` : "no response");
    return item("sink", "Sink", h("strong", {}, name), " takes no usage since ", time(since), ` UTC: ${why}. Check `, h("code", {}, "usage.sinks"), ".");
  });
}

function runways({ running_out: accounts }) {
  return accounts.map(({ org_id: id, agent_name: name, credit_balance: balance, credits_used: used, days_left: days }) => {
    const lasts = days === "0" ? "less than a day" : `about ${days} ${plural(days, "day")}`;
    return item("runway", "Runs out", h("a", { href: `#/accounts/${id}?tab=usage` }, name), ` in ${lasts}: `, figure(balance), " credits left, ", figure(used), " used in 7 days.");
  });
}

function unreported(counts) {
  return (counts?.routes ?? []).map(({ route_template: route, requests, in_full: full }) =>
    item("unreported", "No report", h("span", { class: "mono break" }, route), `: ${group(requests)} ${plural(requests, "response")} did not report their cost, and ${group(full)} were charged the whole hold. Check what the upstream sends. `, h("a", { href: "#/catalogue" }, "Its price", h("span", { class: "quietly-there" }, ` of ${route}`))),
  );
}

/** The service's lists: their names there, the names of their items here, and the items. */
const KINDS = [
  { list: "unclaimed", kind: "payment", words: "Payments", items: unclaimed },
  { list: "webhooks", kind: "webhook", words: "Webhooks", items: webhooks },
  { list: "running_out", kind: "runway", words: "Runs out", items: runways },
];
