// The audit log: every action, with its actor and reason.

import { query } from "/assets/console-api.js";
import { DAYS, filtered, fragmentQuery } from "/assets/console-filter.js";
import { log } from "/assets/console-log.js";
import { actionLabels } from "/assets/console-session.js";
import { h } from "/assets/dom.js";
import { downloadButton } from "/assets/download.js";

/** The filters by action and date. */
function filters() {
  const actions = Object.entries(actionLabels()).sort(([, one], [, other]) => one.localeCompare(other, "en"));
  return [{ name: "action", label: "Action", options: [["", "All"], ...actions] }, ...DAYS];
}

const isFiltered = (values) => Object.values(values).some(Boolean);

/** The entries about an account. */
export async function auditOf({ org_id: id }) {
  const list = (values) => log({ filter: { ...values, subject: id }, empty: isFiltered(values) ? "No entry matches." : "No operator has changed this account.", file: `audit-${id}` });
  return h("div", {}, ...(await filtered({ label: "Audit log", fields: filters(), list, prefix: "history" })));
}

/** The view. */
export async function audit() {
  let shown = fragmentQuery();
  const fields = [{ name: "subject", label: "Subject", id: "subject", "aria-describedby": "subject-hint" }, ...filters()];
  const hint = h("p", { class: "hint", id: "subject-hint" }, "An account's id, plan:ID@CHAIN_ID, payment:CHAIN_ID:HASH or operator:NAME. Empty shows everything.");
  const list = async (values, found) => {
    const entries = await log({ filter: values, empty: isFiltered(values) ? "No entry matches." : "No action was taken yet." });
    shown = values;
    found(values.subject ? `Entries about ${values.subject}` : isFiltered(values) ? "Entries that match" : "All entries");
    return h("div", { id: "log" }, entries);
  };
  const content = await filtered({ label: "Audit log", fields, path: "/audit", hint, statusId: "log-status", list });
  const file = downloadButton("Download (CSV)", "audit.csv", { credentials: "same-origin" }, () => `/admin/audit.csv${query(shown)}`);
  return { title: "Audit log", lead: "Every action of an operator and of the command line. Entries are never changed.", actions: [file], body: content };
}
