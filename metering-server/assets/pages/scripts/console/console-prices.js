// Price versions: the catalogues that were, are or will be in force.

import { admin } from "/assets/console-api.js";
import { countdown } from "/assets/console-countdown.js";
import { who } from "/assets/console-log.js";
import { cancelButton } from "/assets/console-price-actions.js";
import { parts } from "/assets/console-rows.js";
import { isManager } from "/assets/console-session.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { longTable } from "/assets/table.js";

/** How many versions are shown at first. */
const FIRST = 20;
/** As many digits of a hash as the command line shows. */
const HASH_DIGITS = 16;
const STATES = {
  in_force: ["tag tag-good", "in force"],
  scheduled: ["tag tag-warn", "scheduled"],
  past: ["tag", "past"],
  cancelled: ["tag tag-bad", "cancelled"],
};
const CSV = ["number", "status", "since", "applied_by", "hash"];
const COLUMNS = [{ name: "Version", head: true }, { name: "State" }, { name: "Since (UTC)" }, { name: "Applied by" }, { name: "SHA3-256" }];

/** All versions, newest first. */
export const readVersions = async () => (await admin("/catalogue/versions")).versions;

/** The view. */
export async function prices() {
  const versions = await readVersions();
  const apply = isManager() && h("a", { class: "button", href: "#/catalogue", id: "new-version" }, "Apply a catalogue");
  const columns = isManager() ? [...COLUMNS, { name: "Action" }] : COLUMNS;
  const list = await parts({
    load: async () => ({ items: versions, next: null }),
    empty: "No catalogue was recorded yet.",
    draw: (items) => longTable("Price versions", columns, items.map(row), FIRST),
    csv: { name: "price-versions", columns: CSV, cells: (version) => CSV.map((column) => version[column]) },
  });
  return { title: "Price versions", lead: "The catalogues that were, are or will be in force, on all servers of this database.", actions: [apply], body: [list] };
}

function row(version) {
  const cells = [
    h("a", { href: `#/prices/${version.number}` }, `Version ${version.number}`),
    state(version),
    version.status === "scheduled" ? [time(version.since), h("span", { class: "under" }, countdown(version.since))] : time(version.since),
    appliedBy(version),
    h("span", { class: "mono", title: version.hash }, version.hash.slice(0, HASH_DIGITS)),
  ];
  return isManager() ? [...cells, version.status === "scheduled" ? cancelButton(version, { inRow: true }) : ""] : cells;
}

/** Whether a version is in force, as a tag. */
export function state({ status }) {
  const [kind, words] = STATES[status] ?? ["tag", status];
  return h("span", { class: kind }, words);
}

/** Who applied a version. A server that starts with another file records that file. */
export const appliedBy = ({ applied_by: actor }) => (actor === null ? "Configuration" : who(actor));
