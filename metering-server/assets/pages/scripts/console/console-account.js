// One account: its figures, and what happened to it.

import { sentence } from "/assets/api.js";
import { accountActions } from "/assets/console-account-actions.js";
import { status } from "/assets/console-accounts.js";
import { admin } from "/assets/console-api.js";
import { log } from "/assets/console-log.js";
import { ledger } from "/assets/console-ledger.js";
import { records } from "/assets/console-records.js";
import { day } from "/assets/console-time.js";
import { usage } from "/assets/console-usage.js";
import { group } from "/assets/decimal.js";
import { byId, h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { isHolding } from "/assets/held.js";
import { startTabs } from "/assets/tabs.js";

/** The tabs: name, and the function that loads the content for an account. */
const TABS = {
  ledger: ["Ledger", (account) => ledger(account)],
  usage: ["Usage", (account) => usage(account)],
  payments: ["Payments", (account) => records(`/accounts/${account.org_id}/payments`, { empty: "No payment was credited to this account." })],
  history: ["Audit", (account) => log({ subject: account.org_id, empty: "No operator has changed this account." })],
};

/** The tab that was open, so that it is open again after an action. */
let last = { id: null, tab: null };

/** The view. */
export async function account(id) {
  const data = await admin(`/accounts/${encodeURIComponent(id)}`);
  const tabs = Object.entries(TABS);
  const list = h(
    "div",
    { class: "tabs", role: "tablist", "aria-label": "Account" },
    ...tabs.map(([name, [label]], place) => h("button", { role: "tab", type: "button", id: `tab-${name}`, "aria-controls": `panel-${name}`, "aria-selected": String(place === 0), tabindex: place === 0 ? "0" : "-1" }, label)),
  );
  const panels = tabs.map(([name], place) => h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabindex: "-1", hidden: place !== 0 }));
  if (last.id !== id) last = { id, tab: null };
  return {
    title: data.agent_name,
    back: h("p", { class: "back" }, h("a", { href: "#/accounts" }, "Accounts")),
    lead: [h("span", { class: "mono" }, data.org_id), " ", status(data)],
    actions: accountActions(data),
    body: [figures(data), list, ...panels],
    shown: () => {
      const opened = (tab) => {
        last.tab = tab;
        fill(tab.replace("tab-", ""), data);
      };
      const control = startTabs(list, { inUrl: false, opened });
      control.open(last.tab ?? "tab-ledger");
    },
  };
}

/** Loads a tab's content, once. */
async function fill(name, data) {
  const panel = byId(`panel-${name}`);
  if (panel.childElementCount > 0) return;
  const [, load] = TABS[name];
  panel.replaceChildren(h("p", { class: "soft", role: "status" }, "Loading …"));
  try {
    panel.replaceChildren(await load(data));
  } catch (error) {
    const again = h("button", { class: "button button-quiet button-small", type: "button" }, "Try again");
    again.addEventListener("click", () => {
      panel.replaceChildren();
      fill(name, data);
    });
    panel.replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again)));
  }
}

function figures(data) {
  const { requests_per_minute: minute, requests_per_day: daily } = data.rate_limits;
  const limit = (count) => (count === "0" ? "No limit" : group(count));
  const facts = [
    ["Balance", figure(data.credit_balance), "balance"],
    ...(isHolding(data) ? [["Held", figure(data.credits_held)]] : []),
    ["Bought", figure(data.total_credits_purchased)],
    ["Granted", figure(data.total_credits_granted)],
    ["Used", figure(data.total_credits_used)],
    ["Requests a minute", limit(minute), "per-minute"],
    ["Requests a day", limit(daily), "per-day"],
    ["Email", data.email ? [data.email, " ", h("span", { class: "tag" }, data.email_status)] : "None"],
    ["Wallet", data.payer_address ? h("span", { class: "mono break" }, data.payer_address) : "None"],
    ["Created", day(data.created_at)],
    data.revoked_at && ["Revoked", day(data.revoked_at)],
  ];
  return h("dl", { class: "figures", id: "figures" }, ...facts.filter(Boolean).map(([name, value, id]) => h("div", {}, h("dt", {}, name), h("dd", { id: id ?? null }, value))));
}
