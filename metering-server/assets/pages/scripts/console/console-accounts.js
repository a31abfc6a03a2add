// The list of accounts, newest first: filters, and opening a new one.

import { act, admin, exact, query } from "/assets/console-api.js";
import { ask, issued } from "/assets/console-dialog.js";
import { DAYS, filtered } from "/assets/console-filter.js";
import { checks, optional } from "/assets/field.js";
import { parts } from "/assets/console-rows.js";
import { isManager } from "/assets/console-session.js";
import { STATE_OPTIONS, stateTag } from "/assets/console-state.js";
import { day } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const COLUMNS = [{ name: "Account", head: true }, { name: "Owner" }, { name: "Balance", number: true }, { name: "Used", number: true }, { name: "Created" }, { name: "Status" }];

const FIELDS = [
  { name: "search", label: "Search accounts", id: "search", placeholder: "Email, wallet, name or id" },
  { name: "state", label: "State", options: STATE_OPTIONS },
  ...DAYS,
];
const CSV = {
  name: "accounts",
  columns: ["org_id", "agent_name", "email", "wallet", "balance", "used", "purchased", "granted", "created_at", "status"],
  cells: (account) => [
    account.org_id,
    account.agent_name,
    account.email,
    account.payer_address,
    account.credit_balance,
    account.total_credits_used,
    account.total_credits_purchased,
    account.total_credits_granted,
    account.created_at,
    account.status,
  ],
};

/** The view. */
export async function accounts() {
  const create = isManager() && h("button", { class: "button", type: "button", id: "new-account", on: { click: askForAccount } }, "New account");
  const content = await filtered({ label: "Accounts", fields: FIELDS, path: "/accounts", submit: "Search", statusId: "found", list });
  return { title: "Accounts", actions: [create], body: content };
}

/** The accounts that match, newest first. `found` is called with a text about how many there are. */
function list(values, found) {
  const isFiltered = Object.values(values).some(Boolean);
  return parts({
    load: async (after) => {
      const { accounts: items, next } = await admin(`/accounts${query({ ...values, order: "newest", after, limit: 50 })}`);
      return { items, next };
    },
    empty: isFiltered ? "No account matches." : "There are no accounts yet.",
    more: "Show older accounts",
    csv: CSV,
    draw: (items) => {
      found(items.length === 1 ? "1 account" : `${items.length} accounts`);
      return accountTable(items);
    },
  });
}

/** A table of accounts. */
export const accountTable = (accounts) => table("Accounts", COLUMNS, accounts.map(row));

function row(account) {
  const name = h("a", { href: `#/accounts/${account.org_id}` }, account.agent_name);
  return [
    [name, h("span", { class: "under mono" }, account.org_id)],
    [account.email ?? "", account.payer_address && h("span", { class: "under mono break" }, account.payer_address)].filter(Boolean),
    figure(account.credit_balance),
    figure(account.total_credits_used),
    day(account.created_at),
    stateTag(account.status),
  ];
}

function askForAccount() {
  ask({
    title: "New account",
    fields: [
      { name: "agent_name", label: "Name", hint: "1 to 64 letters, digits, hyphens or underscores.", check: (text) => (/^[A-Za-z0-9_-]{1,64}$/.test(text) ? "" : "Use 1 to 64 letters, digits, hyphens or underscores.") },
      { name: "email", label: "Email (optional)", inputmode: "email" },
      { name: "credits", label: "Credits to start with (optional)", inputmode: "decimal", check: optional(checks.credit) },
      { name: "requests_per_minute", label: "Requests a minute (optional)", hint: "0 means no limit. Empty means the default.", inputmode: "numeric", check: optional(checks.whole) },
      { name: "requests_per_day", label: "Requests a day (optional)", inputmode: "numeric", check: optional(checks.whole) },
      { name: "tokens_per_minute", label: "Tokens a minute (optional)", inputmode: "numeric", check: optional(checks.whole) },
    ],
    confirm: "Create account",
    send: ({ agent_name, email, credits, requests_per_minute, requests_per_day, tokens_per_minute, reason }) =>
      act("/accounts", { agent_name, email: email || undefined, credits: exact(credits), requests_per_minute: exact(requests_per_minute), requests_per_day: exact(requests_per_day), tokens_per_minute: exact(tokens_per_minute), reason }),
    done: ({ api_key: key, account }) =>
      issued({
        title: "The account's key",
        words: `Give this key to the owner of ${account.agent_name}. It is shown once.`,
        text: key,
        done: () => {
          location.hash = `#/accounts/${account.org_id}`;
        },
      }),
  });
}
