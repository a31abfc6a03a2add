// Where the account is signed in: the sessions of browsers, each of which can be signed out from here.

import { callApi, sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { table } from "/assets/table.js";

const PATH = "/api-key/sessions";
const COLUMNS = [{ name: "Device", head: true }, { name: "Signed in" }, { name: "Last used" }, { name: "Key or member" }, { name: "Action" }];
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

/**
 * Fills `place`. `key()` is the key or session of this visit, and `here()` says whether its user is still on the page.
 * `ended()` is called when this browser was signed out.
 */
export async function showDevices(place, visit) {
  if (!visit.here()) return;
  try {
    const { data } = await callApi(PATH, { key: visit.key() });
    if (visit.here()) place.replaceChildren(...content(place, visit, data));
  } catch (error) {
    if (visit.here()) place.replaceChildren(h("p", { class: "bad", role: "alert" }, error.code === "key_scope" ? "This key may not manage keys, so it cannot see where the account is signed in." : sentence(error)));
  }
}

function content(place, visit, sessions) {
  if (sessions.length === 0) return [h("p", { class: "soft" }, "No browser is kept signed in. Choose “Keep me signed in” when you enter your key.")];
  const problem = h("p", { class: "bad", role: "alert", hidden: true });
  const end = (button, path, includesThis) =>
    busy(button, async () => {
      try {
        await callApi(path, { method: "DELETE", key: visit.key() });
      } catch (error) {
        // It may have ended in the meantime.
        if (error.code !== "not_found") {
          problem.textContent = sentence(error);
          problem.hidden = false;
          return;
        }
      }
      if (!visit.here()) return;
      if (includesThis) visit.ended();
      else await showDevices(place, visit).then(() => place.querySelector("button")?.focus());
    });
  const button = (label, what, path, includesThis) => {
    const element = h("button", { class: "button button-quiet button-small", type: "button" }, label, what && h("span", { class: "quietly-there" }, ` ${what}`));
    element.addEventListener("click", () => end(element, path, includesThis));
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
