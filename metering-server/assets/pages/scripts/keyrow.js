// A key as a row of the KEYS tab, and what is said about its state.

import { bar } from "/assets/bar.js";
import { plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { table } from "/assets/table.js";

const STATES = {
  active: ["Active", "tag-good"],
  disabled: ["Disabled", ""],
  expired: ["Expired", "tag-warn"],
  leaked: ["Leaked", "tag-bad"],
  parent_inactive: ["Parent key is off", "tag-warn"],
};
const PERIODS = { daily: "a day", weekly: "a week", monthly: "a month" };
const COLUMNS = [{ name: "Key", head: true }, { name: "State" }, { name: "Used", number: true }, { name: "Budget" }, { name: "Last used" }, { name: "Expires" }, { name: "Scopes" }];

/** A time to the minute, in UTC. */
export const minute = (text) => text.slice(0, 16).replace("T", " ");

/** The table. `own` is the key of this visit, and `actions` makes the buttons of a key; without it there are none. */
export function keyTable(keys, { own, actions }) {
  const names = new Map(keys.map(({ id, name }) => [id, name]));
  const rows = keys.map((key) => [
    nameOf(key, own, names),
    stateOf(key),
    used(key),
    budget(key),
    key.last_used_at ? moment(key.last_used_at) : never(),
    key.expires_at ? moment(key.expires_at) : never(),
    key.scopes.join(", "),
    ...(actions ? [actions(key)] : []),
  ]);
  return table("Keys", actions ? [...COLUMNS, { name: "Actions" }] : COLUMNS, rows);
}

const never = () => h("span", { class: "soft" }, "Never");

/** A day or a time, in UTC, which breaks only between the two. */
function moment(text) {
  const parts = minute(text).split(" ").map((part) => h("span", { class: "whole" }, part));
  return h("time", { datetime: text, title: text }, parts[0], parts[1] && " ", parts[1]);
}

function nameOf(key, own, names) {
  const maker = key.id !== own.id && names.get(key.parent_id);
  return [
    h("strong", { "data-key": key.id }, key.name),
    key.id === own.id ? [" ", h("span", { class: "tag tag-accent" }, "this tab")] : "",
    h("code", { class: "under" }, key.id),
    maker ? h("span", { class: "under" }, `made by ${maker}`) : "",
  ].flat();
}

function stateOf({ state }) {
  const [words, kind] = STATES[state] ?? [state, ""];
  return h("span", { class: `tag ${kind}`.trim(), "data-state": state }, words);
}

function used(key) {
  const line = (words, amount) => h("span", { class: "key-used" }, h("span", { class: "soft" }, words), " ", figure(amount));
  return h("span", { class: "key-uses" }, line("today", key.usage_daily), line("this month", key.usage_monthly), line("in all", key.usage));
}

function budget(key) {
  if (key.limit === null) return h("span", { class: "soft" }, "No limit");
  const limit = toUnits(key.limit);
  const isLeft = toUnits(key.limit_remaining) > 0n;
  const period = PERIODS[key.limit_reset] ?? "in all";
  return h(
    "span",
    { class: "key-budget" },
    isLeft ? [figure(key.limit_remaining), " left of "] : [h("strong", { class: "bad" }, "Used up"), ": "],
    figure(key.limit),
    ` ${plural(key.limit, "credit")} ${period}`,
    limit > 0n ? bar(key.limit_remaining, limit) : "",
    key.limit_resets_at && h("span", { class: "under" }, "Resets ", moment(key.limit_resets_at)),
    key.alert_below && h("span", { class: "under" }, "Alert below ", figure(key.alert_below)),
  );
}
