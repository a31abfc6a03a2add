// The operators who may sign in here.

import { act, admin } from "/assets/console-api.js";
import { ask, issued } from "/assets/console-dialog.js";
import { DAYS, filtered, isInDays } from "/assets/console-filter.js";
import { reload } from "/assets/console-router.js";
import { parts } from "/assets/console-rows.js";
import { isManager, ownName } from "/assets/console-session.js";
import { STATE_OPTIONS, stateTag } from "/assets/console-state.js";
import { day } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const NAME = /^[A-Za-z0-9._@-]{1,64}$/;
const FIELDS = [
  { name: "search", label: "Name" },
  { name: "role", label: "Role", options: [["", "All"], ["viewer", "Viewer"], ["manager", "Manager"]] },
  { name: "status", label: "Status", options: STATE_OPTIONS },
  ...DAYS,
];
const CSV = ["name", "role", "status", "created_at", "revoked_at"];

/** The view. */
export async function operators() {
  const { operators: all } = await admin("/operators");
  const create = isManager() && h("button", { class: "button", type: "button", id: "new-operator", on: { click: askForOperator } }, "New operator");
  const columns = [{ name: "Name", head: true }, { name: "Role" }, { name: "Created" }, { name: "Status" }, isManager() && { name: "Action" }];
  const row = (operator) => [named(operator), operator.role, day(operator.created_at), status(operator), isManager() && revocable(operator)].filter((cell) => cell !== false);
  const list = (values) =>
    parts({
      load: async () => ({ items: all.filter((operator) => isWanted(operator, values)), next: null }),
      empty: all.length > 0 ? "No operator matches." : "There are no operators.",
      draw: (items) => table("Operators", columns.filter(Boolean), items.map(row)),
      csv: { name: "operators", columns: CSV, cells: (operator) => CSV.map((column) => operator[column]) },
    });
  return {
    title: "Operators",
    lead: "A viewer reads everything. A manager takes every action too.",
    actions: [create],
    body: await filtered({ label: "Operators", fields: FIELDS, path: "/operators", list }),
  };
}

const isWanted = ({ name, role, status, created_at: at }, wanted) =>
  name.toLowerCase().includes(wanted.search.toLowerCase()) && (!wanted.role || role === wanted.role) && (!wanted.status || status === wanted.status) && isInDays(at, wanted);

const named = ({ name }) => [name, name === ownName() && h("span", { class: "soft" }, " (you)")].filter(Boolean);

function status({ status: text, revoked_at: at }) {
  const tag = stateTag(text);
  return at ? [tag, h("span", { class: "under" }, day(at))] : tag;
}

function revocable(operator) {
  if (operator.status === "revoked") return "";
  const label = h("span", { class: "quietly-there" }, ` ${operator.name}`);
  return h("button", { class: "button button-quiet button-small", type: "button", id: `revoke-${operator.name}`, on: { click: () => revoke(operator) } }, "Revoke", label);
}

function askForOperator() {
  ask({
    title: "New operator",
    fields: [
      { name: "name", label: "Name", hint: "1 to 64 letters, digits, dots, hyphens, underscores or at signs. It can never be used again.", autocapitalize: "none", check: (text) => (NAME.test(text) ? "" : "Use 1 to 64 letters, digits, dots, hyphens, underscores or at signs.") },
      { name: "role", label: "Role", options: [["viewer", "Viewer: reads everything"], ["manager", "Manager: takes every action"]] },
    ],
    confirm: "Create operator",
    send: ({ name, role, reason }) => act("/operators", { name, role, reason }),
    done: ({ token, operator }) => issued({ title: "The operator's token", words: `Give this token to ${operator.name}, to sign in with. It is shown once.`, text: token, done: () => reload(`Created ${operator.name}.`) }),
  });
}

function revoke({ name }) {
  const own = name === ownName() ? " You will be signed out." : "";
  ask({
    title: `Revoke ${name}`,
    about: [h("p", {}, `The token and its sessions stop working immediately. This cannot be undone.${own}`)],
    confirm: "Revoke operator",
    danger: true,
    send: ({ reason }) => act(`/operators/${encodeURIComponent(name)}/revoke`, { reason }),
    done: () => reload(`Revoked ${name}.`),
  });
}
