// Where the account is signed in: its browser sessions, each of which can be signed out here.

import { showList } from "/assets/accountlist.js";
import { h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const PATH = "/api-key/sessions";
const COLUMNS = [{ name: "Device", head: true }, { name: "Signed in" }, { name: "Last used" }, { name: "Key or member" }, { name: "Action" }];
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/** Fills `place`. `visit` is as in `showList`. */
export const showDevices = (place, visit) => showList(place, visit, { path: PATH, withheld: "This key may not manage keys, so it cannot see where the account is signed in.", content });

function content(sessions, { act, problem }) {
  if (sessions.length === 0) return [h("p", { class: "soft" }, "No browser is kept signed in. Choose “Keep me signed in” when you enter your key.")];
  const button = (label, what, path, includesThis) => {
    const element = h("button", { class: "button button-quiet button-small", type: "button" }, label, what && h("span", { class: "quietly-there" }, ` ${what}`));
    element.addEventListener("click", () => act(element, path, { method: "DELETE" }, includesThis));
    return element;
  };
  const rows = sessions.map((session) => [
    [session.device, session.current && h("span", { class: "soft", "data-current": "" }, " · this browser")].filter(Boolean),
    moment.format(new Date(session.created_at)),
    moment.format(new Date(session.last_used_at)),
    session.member ? `${session.member}, ${session.role}` : session.key_name,
    button("Sign out", session.device, `${PATH}/${encodeURIComponent(session.id)}`, session.current),
  ]);
  const all = button("Sign out everywhere", "", PATH, sessions.some((session) => session.current));
  return [
    h("p", { class: "soft" }, "These browsers can use this account without its key, until they are signed out, their key is replaced, or they are not used for 30 days. Programs with a key are not listed."),
    table("Where this account is signed in", COLUMNS, rows),
    problem,
    h("div", { class: "actions" }, all),
  ];
}
