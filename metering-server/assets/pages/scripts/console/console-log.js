// Entries of the audit log.

import { admin, query } from "/assets/console-api.js";
import { asked, changes } from "/assets/console-changes.js";
import { parts } from "/assets/console-rows.js";
import { actionLabel } from "/assets/console-session.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";

const CSV = {
  columns: ["id", "at", "actor", "action", "subject", "reason", "request", "result", "detail"],
  cells: ({ id, at, actor, action, subject, reason, request, outcome }) => [id, at, actor, action, subject, reason, JSON.stringify(request ?? {}), outcome?.result, outcome?.detail],
};
const RESULTS = {
  done: ["tag tag-good", "done"],
  refused: ["tag tag-bad", "refused"],
  unknown: ["tag tag-warn", "unknown"],
};

/** The entries that match a filter, or all, newest first. `file` names a file of the visible entries. */
export function log({ filter = {}, empty, file }) {
  return parts({
    load: async (before) => {
      const { entries: items, next } = await admin(`/audit${query({ ...filter, before, limit: 100 })}`);
      return { items, next };
    },
    empty,
    more: "Show older entries",
    csv: file && { ...CSV, name: file },
    draw: (entries) => h("ol", { class: "log" }, ...entries.map(item)),
  });
}

function item({ id, at, actor, action, subject, reason, request, before, outcome }) {
  const [kind, result] = outcome ? (RESULTS[outcome.result] ?? ["tag", outcome.result]) : ["tag tag-warn", "no outcome"];
  const after = outcome?.after ?? null;
  const detail = outcome?.detail || (outcome ? "" : "An earlier version stopped before it could write one: the action may have been taken or not.");
  return h(
    "li",
    { "data-action": action, "data-entry": id },
    h("p", { class: "log-head" }, h("strong", {}, actionLabel(action)), about(subject), h("span", { class: kind }, result)),
    h("p", { class: "log-facts soft" }, time(at), " UTC, by ", who(actor)),
    h("p", { class: "log-reason break" }, reason || h("span", { class: "soft" }, "No reason given")),
    asked(request, id),
    detail && h("p", { class: "log-detail bad break" }, detail),
    (before || after) && h("details", { class: "table-details" }, h("summary", {}, "What changed", h("span", { class: "quietly-there" }, ` in entry ${id}`)), changes(before, after)),
  );
}

function about(subject) {
  if (subject.startsWith("org_")) return h("a", { class: "mono break", href: `#/accounts/${subject}` }, subject);
  if (subject === "catalogue") return h("a", { class: "mono break", href: "#/prices" }, subject);
  return h("span", { class: "mono break" }, subject);
}

/** Who took an action. */
export const who = (actor) => h("span", { class: "break" }, actor.replace(/^(operator|oidc):/, "").replace(/^command_line:(.*)$/, "$1 on the command line").replace(/^processor:/, "processor "));
