// One account: its amounts and its history.

import { sentence } from "/assets/api.js";
import { accountActions } from "/assets/console-account-actions.js";
import { admin, query } from "/assets/console-api.js";
import { auditOf } from "/assets/console-audit.js";
import { charges } from "/assets/console-charges.js";
import { children } from "/assets/console-children.js";
import { fragmentQuery } from "/assets/console-filter.js";
import { holds } from "/assets/console-holds.js";
import { keys } from "/assets/console-keys.js";
import { ledger } from "/assets/console-ledger.js";
import { members } from "/assets/console-members.js";
import { notes } from "/assets/console-notes.js";
import { ownRecords } from "/assets/console-records.js";
import { stateTag } from "/assets/console-state.js";
import { day } from "/assets/console-time.js";
import { usage } from "/assets/console-usage.js";
import { webhooks } from "/assets/console-webhooks.js";
import { group } from "/assets/decimal.js";
import { byId, h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { isHolding } from "/assets/held.js";
import { startTabs } from "/assets/tabs.js";

/** The tabs: name, and the function that loads the content for an account. */
const TABS = {
  ledger: ["Ledger", ledger],
  charges: ["Charges", charges],
  usage: ["Usage", usage],
  keys: ["Keys", keys],
  members: ["Members", members],
  children: ["Children", children],
  holds: ["In progress", holds],
  webhooks: ["Webhooks", webhooks],
  payments: ["Payments", ownRecords],
  history: ["Audit", auditOf],
};

const FIRST = "ledger";
/** Whether the email address is known to be the owner's. */
const EMAIL_STATES = { verified: "Verified", pending: "Not verified yet", unchecked: "Not checked" };

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
  return {
    title: data.agent_name,
    back: h("p", { class: "back" }, h("a", { href: "#/accounts" }, "Accounts")),
    lead: [h("span", { class: "mono" }, data.org_id), " ", stateTag(data.status)],
    actions: accountActions(data),
    body: [figures(data), notes(data), list, ...panels],
    shown: () => {
      // The fragment has the open tab, so that it is open again after an action or a reload.
      const opened = (tab) => {
        const name = tab.replace("tab-", "");
        history.replaceState(null, "", `#/accounts/${id}${query({ tab: name === FIRST ? "" : name })}`);
        fill(name, data);
      };
      const { tab = FIRST } = fragmentQuery();
      startTabs(list, { inUrl: false, opened }).open(`tab-${Object.hasOwn(TABS, tab) ? tab : FIRST}`);
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
    ["Tokens a minute", limit(data.tokens_per_minute), "tokens-per-minute"],
    ["Email", data.email ? [data.email, " ", h("span", { class: "tag" }, EMAIL_STATES[data.email_status] ?? data.email_status)] : "None"],
    ["Wallet", data.payer_address ? h("span", { class: "mono break" }, data.payer_address) : "None"],
    ["Created", day(data.created_at)],
    data.revoked_at && ["Revoked", day(data.revoked_at)],
    data.erased_at && ["Owner erased", day(data.erased_at)],
  ];
  return h("dl", { class: "figures", id: "figures" }, ...facts.filter(Boolean).map(([name, value, id]) => h("div", {}, h("dt", {}, name), h("dd", { id: id ?? null }, value))));
}
