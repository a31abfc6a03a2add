// A key as a row of the Keys tab.

import { bar } from "/assets/bar.js";
import { toMinute } from "/assets/days.js";
import { fromUnits, plural, toUnits } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { stateOf } from "/assets/keystate.js";
import { table } from "/assets/table.js";

export const PERIODS = { daily: "a day", weekly: "a week", monthly: "a month" };
const COLUMNS = [{ name: "Key", head: true }, { name: "State" }, { name: "Used" }, { name: "Last used" }, { name: "Actions" }];
/** The deepest level that is indented. */
const DEEPEST = 4;

/** A secret as the service shows it, for keys that are older than that feature. */
const hint = (secret) => `${secret.slice(0, 8)}…${secret.slice(-4)}`;

/**
 * The table of a tree of keys. `now` is the service's time, `own` the key of this visit, `secret` its secret, `open` shows
 * a key's details, and `actions` makes its menu: without these, the keys are only listed.
 */
export function keyTable(tree, { now, own = {}, secret, open, actions }) {
  const rows = tree.map(({ key, depth, parents }) => [
    nameOf(key, { depth, parents, own, secret, open }),
    stateTag(key, parents, now),
    used(key),
    key.last_used_at ? moment(key.last_used_at) : never(),
    ...(actions ? [actions(key)] : []),
  ]);
  return table("Keys", actions ? COLUMNS : COLUMNS.slice(0, -1), rows);
}

export const never = () => h("span", { class: "soft" }, "Never");

/** A day or a time, in UTC, which breaks only between the two. */
export function moment(text) {
  const parts = toMinute(text).split(" ").map((part) => h("span", { class: "whole" }, part));
  return h("time", { datetime: text, title: text }, parts[0], parts[1] && " ", parts[1]);
}

export function stateTag(key, parents, now) {
  const [words, kind] = stateOf(key, parents, now);
  return h("span", { class: `tag key-state ${kind}`.trim(), "data-state": key.state }, words);
}

function nameOf(key, { depth, parents, own, secret, open }) {
  const isOwn = key.id === own.id;
  return h(
    "span",
    { class: `key-name depth-${Math.min(depth, DEEPEST)}` },
    open
      ? h("button", { class: "link-button", type: "button", "data-key": key.id, "aria-haspopup": "dialog", on: { click: () => open(key, parents) } }, key.name)
      : h("span", { "data-key": key.id }, key.name),
    depth > 0 && h("span", { class: "quietly-there" }, `, child of ${parents[0].name}`),
    isOwn && [" ", h("span", { class: "tag tag-accent" }, "this tab")],
    h("code", { class: "under" }, key.hint ?? (isOwn && secret?.startsWith("sk_live_") ? hint(secret) : key.id)),
    // Operators have no panel for it.
    !open && key.hint && h("code", { class: "under" }, key.id),
  );
}

/** The spent part of a budget. */
const spentOf = ({ limit, limit_remaining: left }) => fromUnits(toUnits(limit) - toUnits(left));

/** Usage: of the budget in its period, or in total. */
function used(key) {
  if (key.limit === null) return h("span", { class: "key-budget" }, figure(key.usage), ` ${plural(key.usage, "credit")}`, h("span", { class: "under" }, "No limit"));
  const limit = toUnits(key.limit);
  return h(
    "span",
    { class: "key-budget" },
    figure(spentOf(key)),
    " of ",
    figure(key.limit),
    ` ${plural(key.limit, "credit")} ${PERIODS[key.limit_reset] ?? "in total"}`,
    limit > 0n ? bar(spentOf(key), limit) : "",
  );
}
