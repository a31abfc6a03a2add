// An account's members, and the log of their actions.

import { admin } from "/assets/console-api.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const MEMBERS = [{ name: "Who", head: true }, { name: "Role" }, { name: "State" }, { name: "Since (UTC)" }];
const LOG = [{ name: "When (UTC)", head: true }, { name: "Who" }, { name: "What" }, { name: "About" }, { name: "Status" }];

/** The members, the open invitations and the account's own log. */
export async function members({ org_id: id }) {
  const { data, log } = await admin(`/accounts/${id}/members`);
  if (data.length === 0 && log.length === 0) return h("p", { class: "soft empty" }, "The account has no members.");
  const rows = data.map((member) => [[member.identity ?? "A link to pass on", h("code", { class: "under" }, member.id)], member.role, member.state === "invited" ? "Invited" : "Joined", time(member.since)]);
  const entries = log.map((entry) => [time(entry.at), [entry.actor_name, h("code", { class: "under" }, entry.actor)], entry.action, h("span", { class: "break" }, entry.subject), entry.status ?? ""]);
  return h("div", { class: "sections-small" }, table("Members", MEMBERS, rows), h("h2", {}, "What they did"), entries.length > 0 ? table("What they did", LOG, entries) : h("p", { class: "soft empty" }, "Nothing is logged."));
}
