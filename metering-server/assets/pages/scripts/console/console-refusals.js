// Charges that were refused, by kind.

import { bar, largest } from "/assets/bar.js";
import { time } from "/assets/console-time.js";
import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const KINDS = [
  ["insufficient_credits", "Out of credits", "402"],
  ["rate_limited", "Rate limit reached", "429"],
  ["unknown_key", "Key not valid", "401"],
  ["repeated", "Idempotency key used before", "409"],
  ["overloaded", "Too many requests at once", "503"],
];

/** The section. */
export function refusals(counts) {
  const head = h("h2", { id: "refusals-title" }, "Refusals");
  const section = h("section", { "aria-labelledby": "refusals-title", id: "refusals" }, head);
  if (!counts) {
    section.append(h("p", { class: "soft" }, "This server does not count them."));
    return section;
  }
  const most = largest(KINDS.map(([name]) => counts[name]));
  const rows = KINDS.map(([name, words, status]) => [[words, h("span", { class: "soft" }, ` ${status}`), bar(counts[name], most)], group(counts[name])]);
  const since = h("p", { class: "soft" }, "Of this server, since ", time(counts.since), " UTC");
  section.append(since, table("Refusals by kind", [{ name: "Kind", head: true }, { name: "Requests", number: true }], rows, { stacks: false }));
  return section;
}
