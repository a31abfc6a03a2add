// The people with access to the account besides the holder of its key: members, invitations, and the log of members'
// actions.

import { showList } from "/assets/accountlist.js";
import { callApi, sentence } from "/assets/api.js";
import { formDialog } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { field } from "/assets/field.js";
import { copyButton } from "/assets/secret.js";
import { table } from "/assets/table.js";

const PATH = "/members";
const ROLES = ["owner", "billing", "developer", "viewer"];
const MEANING = "An owner may do everything. Billing buys and changes billing details. A developer makes and changes keys and webhooks. A viewer reads.";
const COLUMNS = [{ name: "Who", head: true }, { name: "Role" }, { name: "Since" }, { name: "Action" }];
const LOG = [{ name: "When", head: true }, { name: "Who" }, { name: "What" }, { name: "About" }, { name: "Status" }];
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const at = (time) => moment.format(new Date(time));

/** Fills `place`. `visit` is as in `showList`. */
export const showMembers = (place, visit) =>
  showList(place, visit, { path: PATH, withheld: "Only the account's first key and its members see who belongs to it.", content: (members, list) => content(visit, members, list) });

function content(visit, members, { again, act, problem }) {
  const own = members.find(({ current }) => current);
  const owns = !own || own.role === "owner";
  const pathOf = ({ id }) => `${PATH}/${encodeURIComponent(id)}`;
  const remove = (member) => {
    const what = member.current ? "Leave" : member.state === "invited" ? "Withdraw" : "Remove";
    const button = h("button", { class: "button button-quiet button-small", type: "button" }, what, h("span", { class: "quietly-there" }, ` ${member.identity ?? "the invitation"}`));
    button.addEventListener("click", () => act(button, pathOf(member), { method: "DELETE" }, member.current));
    return button;
  };
  const role = (member) => {
    if (!owns) return member.role;
    const select = h("select", { "aria-label": `Role of ${member.identity ?? "whoever follows the link"}` }, ...ROLES.map((name) => h("option", { value: name, selected: name === member.role }, name)));
    select.addEventListener("change", () => act(select, pathOf(member), { method: "PATCH", body: { role: select.value } }));
    return select;
  };
  const rows = members.map((member) => [
    [member.identity ?? "Whoever follows the link", member.current && h("span", { class: "soft" }, " · you")].filter(Boolean),
    role(member),
    member.state === "invited" ? `Invited until ${at(member.expires_at)}` : at(member.since),
    owns || member.current ? remove(member) : "",
  ]);
  const list = members.length > 0 ? table("Members of this account", COLUMNS, rows) : h("p", { class: "soft" }, "Only the holder of the key uses this account.");
  const invite = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => ask(visit, again) } }, "Invite somebody");
  const log = h("details", { class: "more" }, h("summary", {}, "What members did"), h("div", {}));
  log.addEventListener("toggle", () => log.open && showLog(log.lastElementChild, visit));
  return [h("p", { class: "soft" }, "Members sign in as themselves, without the key. ", MEANING), list, problem, owns && h("div", { class: "actions" }, invite), log].filter(Boolean);
}

function ask(visit, again) {
  const email = field({ name: "email", label: "Email address", type: "email", value: "", hint: "Empty for a link that you pass on yourself." });
  const roles = field({ name: "role", label: "Role", value: "viewer", options: ROLES.map((name) => [name, name]), hint: MEANING });
  formDialog({
    title: "Invite somebody",
    fields: [email, roles],
    confirm: "Invite",
    explain: (one, text) => `${one.label} ${text}.`,
    send: ({ email: address, role }) => callApi(PATH, { method: "POST", key: visit.key(), body: { role, ...(address && { email: address }) } }),
    done: async ({ url }) => {
      await again();
      if (url) showLink(url);
    },
  });
}

/** The link is shown only once. */
function showLink(url) {
  formDialog({
    title: "Pass on this link",
    about: [h("p", {}, "The first person who follows it, and proves an email address or a wallet, joins. It works for seven days, and is not shown again."), h("p", { class: "mono" }, url), copyButton(url)],
    confirm: "Done",
    dismiss: "Close",
    send: async () => null,
    done: () => {},
  });
}

async function showLog(place, visit) {
  try {
    const { data } = await callApi(`${PATH}/log?limit=50`, { key: visit.key() });
    if (!visit.here()) return;
    const rows = data.map((entry) => [at(entry.at), entry.actor_name, entry.action.replaceAll("_", " "), entry.subject, entry.status ?? ""]);
    place.replaceChildren(rows.length > 0 ? table("What members did", LOG, rows, { scrolls: true }) : h("p", { class: "soft" }, "Nothing yet."));
  } catch (error) {
    if (visit.here()) place.replaceChildren(h("p", { class: "bad", role: "alert" }, sentence(error)));
  }
}
