// The dialog for a new key, which also changes a key; and its fields, for the page that gives a key to a program.

import { toMinute } from "/assets/days.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { boxes, checks, field, optional } from "/assets/field.js";
import { routePicker } from "/assets/routepicker.js";

const SCOPES = [
  ["call", "Call", "Call metered routes. This spends credits."],
  ["read", "Read", "Read the account's balance, usage, ledger and receipts."],
  ["manage", "Manage", "Make child keys, and change, rotate and delete them."],
  ["topup", "Top up", "Buy credits for the account, and link wallets to it."],
];
const PERIODS = [["", "In all"], ["daily", "Each day"], ["weekly", "Each week"], ["monthly", "Each month"]];
const HOUR = 3_600_000;
const AFTER = { hour: ["In 1 hour", HOUR], day: ["In 1 day", 24 * HOUR], month: ["In 30 days", 30 * 24 * HOUR] };
/** The limits whose fields are empty for no limit; on the wire, 0 means none. */
const COUNTS = [
  ["requests_per_minute", "Requests a minute"],
  ["requests_per_day", "Requests a day (UTC)"],
  ["tokens_per_minute", "Tokens a minute"],
  ["max_in_flight", "Requests at the same time"],
];

/**
 * Opens the dialog. `key` is the key to change, if any; `own` is the key of this visit, which cannot give more than it
 * has. `now` is the service's time. `send` takes the body of the request, and `done` the result.
 */
export function keyForm({ key = null, own, now, title, confirm, send, done, problemOf }) {
  const isFirst = key !== null && key.parent_id === null;
  // The first key keeps all scopes and does not expire.
  const main = [...budgetOf(key), ...(isFirst ? [] : [...expiryOf(key, own), scopesOf(key, own)])];
  const more = moreOf(key);
  const fields = [...main, ...more];
  const isOpen = more.some((one) => one.value() !== "");
  const words = isFirst ? [h("p", { class: "soft" }, "This is the account's first key. It has all scopes and does not expire.")] : [];
  const before = key && valuesOf(fields);
  formDialog({
    title,
    about: words,
    fields,
    layout: layoutOf(main, more, isOpen),
    confirm,
    problemOf,
    explain,
    send: (values) => send(key ? changed(before, values, now) : wire(values, now)),
    done,
  });
}

/**
 * The fields for the terms of a new key, filled in with those of `preset`, and the functions of their form. `own` is
 * its parent key.
 */
export function keyFields(preset, own) {
  const [main, more] = [[...budgetOf(preset), ...expiryOf(preset, own), scopesOf(preset, own)], moreOf(preset)];
  return { fields: [...main, ...more], layout: layoutOf(main, more, false), explain, body: wire };
}

const explain = (one, text) => `${one.label} ${text}.`;

const layoutOf = (main, more, isOpen) => [
  ...main.map(({ element }) => element),
  h("details", { class: "more field", open: isOpen }, h("summary", {}, "More limits"), ...more.map(({ element }) => element)),
];

const valuesOf = (fields) => Object.fromEntries(fields.map((one) => [one.name, one.value()]));

function budgetOf(key) {
  return [
    field({ name: "name", label: "Name", value: key?.name, maxlength: "100", hint: "What or whom it is for.", check: (text) => (text ? "" : "Give the key a name.") }),
    field({ name: "limit", label: "Budget in credits", value: key?.limit ?? "", inputmode: "decimal", hint: "Counts calls with it and with its child keys. Empty for no limit.", check: optional(checks.credit) }),
    field({ name: "limit_reset", label: "Budget period", value: key?.limit_reset ?? "", options: PERIODS, hint: "Days begin at 00:00 UTC, weeks on Monday.", when: hasBudget }),
    field({ name: "alert_below", label: "Alert when less is left", value: key?.alert_below ?? "", inputmode: "decimal", hint: "In credits. Webhooks get the event balance.low. Empty for no alert.", check: optional(checks.credits), when: hasBudget }),
  ];
}

const hasBudget = (other) => other("limit").trim() !== "";

function expiryOf(key, own) {
  return [
    field({ name: "expires_at", label: "Expires", value: key?.expires_at ? "keep" : "", options: expiries(key, own) }),
    field({ name: "expires_on", label: "Date and time (UTC)", type: "datetime-local", check: (text) => (text ? "" : "Choose a date and a time."), when: (other) => other("expires_at") === "at" }),
  ];
}

/** The checkboxes of scopes. A key cannot give a scope that it does not have. */
function scopesOf(key, own) {
  const isOwn = ([scope]) => own.scopes.includes(scope);
  return boxes({
    name: "scopes",
    label: "Scopes",
    options: SCOPES,
    value: key?.scopes ?? ["call", "read"].filter((scope) => isOwn([scope])),
    closed: SCOPES.filter((scope) => !isOwn(scope)).map(([scope]) => scope),
    check: (list) => (list.length > 0 ? "" : "Choose at least one."),
  });
}

function moreOf(key) {
  const lines = (list) => list?.join("\n") ?? "";
  return [
    routePicker({ name: "routes", label: "Routes", value: key?.routes }),
    field({ name: "networks", label: "Networks", value: lines(key?.networks), lines: 2, class: "mono", hint: "One in each line, such as 203.0.113.0/24. Empty for all." }),
    ...COUNTS.map(([name, label]) => field({ name, label, value: key && key[name] !== "0" ? key[name] : "", inputmode: "numeric", hint: "Empty for no limit of its own.", check: optional(checks.whole) })),
  ];
}

function expiries(key, own) {
  const parents = own.expires_at && key?.id !== own.id ? `With your key (${toMinute(own.expires_at)} UTC)` : "Never";
  const presets = Object.entries(AFTER).map(([value, [label]]) => [value, label]);
  const keep = key?.expires_at ? [["keep", `${toMinute(key.expires_at)} UTC`]] : [];
  return [...keep, ["", parents], ...presets, ["at", "At a date and time …"]];
}

/** The body for a new key. Empty values are left out, so the parent's apply. */
function wire(values, now) {
  return Object.fromEntries(Object.entries(parts(values, now)).filter(([, value]) => value !== null && value !== 0 && value.length !== 0));
}

/** The body for a change: only what differs from `before`. */
function changed(before, values, now) {
  const [old, fresh] = [parts(before, now), parts(values, now)];
  const differs = ([name, value]) => (name === "expires_at" ? values[name] !== before[name] : JSON.stringify(value) !== JSON.stringify(old[name]));
  return Object.fromEntries(Object.entries(fresh).filter(differs));
}

/** Values of fields as they are on the wire. */
function parts(values, now) {
  const lines = (text) => {
    const all = text.split("\n").map((line) => line.trim()).filter(Boolean);
    return all.length ? all : null; // an empty list is refused
  };
  const { name, limit, scopes, routes, networks } = values;
  return {
    name,
    limit: limit || null,
    limit_reset: (limit && values.limit_reset) || null,
    alert_below: (limit && values.alert_below) || null,
    ...("expires_at" in values && { expires_at: expiry(values, now) }),
    ...(scopes && { scopes }),
    routes: lines(routes),
    networks: lines(networks),
    ...Object.fromEntries(COUNTS.map(([count]) => [count, Number(values[count] || 0)])),
  };
}

function expiry({ expires_at: choice, expires_on: on }, now) {
  if (choice === "at") return on ? `${on.length === 16 ? `${on}:00` : on}Z` : null;
  return choice in AFTER ? new Date(now().getTime() + AFTER[choice][1]).toISOString() : null;
}
