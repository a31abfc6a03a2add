// The order in which keys are listed: each after its parent key, and those of the same parent as the user chose.

import { toUnits } from "/assets/decimal.js";

const byText = (value) => (one, other) => value(one).localeCompare(value(other), "en");
const byUnits = (value) => (one, other) => (toUnits(value(one)) < toUnits(value(other)) ? 1 : toUnits(value(one)) > toUnits(value(other)) ? -1 : 0);
const newest = (value) => (one, other) => (value(other) ?? "").localeCompare(value(one) ?? "");

/** The orders, with their labels. */
export const ORDERS = [["created", "Oldest first"], ["newest", "Newest first"], ["name", "Name"], ["usage", "Most used"], ["last", "Last used"]];
const COMPARE = {
  created: () => 0,
  newest: newest((key) => key.created_at),
  name: byText((key) => key.name),
  usage: byUnits((key) => key.usage),
  last: newest((key) => key.last_used_at),
};

/**
 * The keys whose name, id or end of the secret has the text, in order, each with its `depth` and its `parents`, the nearest first. The parents
 * of a match are listed with it. `keys` are in the service's order: a key after its parent.
 */
export function treeOf(keys, { order = "created", search = "" } = {}) {
  const known = new Map(keys.map((key) => [key.id, key]));
  const children = grouped(keys, parentIn(known));
  const text = search.trim().toLowerCase();
  const isWanted = (key) => !text || key.name.toLowerCase().includes(text) || key.id.includes(text) || key.hint?.toLowerCase().includes(text);
  const below = (id, parents) =>
    [...(children.get(id) ?? [])].sort(COMPARE[order]).flatMap((key) => {
      const found = below(key.id, [key, ...parents]);
      return isWanted(key) || found.length > 0 ? [{ key, depth: parents.length, parents }, ...found] : [];
    });
  return below(null, []);
}

const parentIn = (known) => ({ parent_id: parent }) => (known.has(parent) ? parent : null);

function grouped(keys, parentOf) {
  const groups = new Map();
  for (const key of keys) groups.set(parentOf(key), [...(groups.get(parentOf(key)) ?? []), key]);
  return groups;
}
