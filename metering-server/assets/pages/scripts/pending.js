// A program's request for access, kept until the user has signed in: a link in mail opens another tab.

import { h } from "/assets/dom.js";

const PENDING = "metering.authorization";
const LIFETIME_MS = 30 * 60_000;

/** Keeps a request: the query of the consent page, and the name of the program. */
export const keepPending = (search, name) => localStorage.setItem(PENDING, JSON.stringify({ search, name, until: Date.now() + LIFETIME_MS }));

export const forgetPending = () => localStorage.removeItem(PENDING);

/** A notice that links back to the consent page, if a program is waiting. */
export function waitingNotice() {
  let waiting = null;
  try {
    waiting = JSON.parse(localStorage.getItem(PENDING));
  } catch {
    // The stored text is not our JSON.
  }
  if (!waiting || !(waiting.until > Date.now())) {
    forgetPending();
    return [];
  }
  const back = h("a", { class: "button button-small", href: `/oauth/authorize${waiting.search}` }, "Continue");
  return [h("div", { class: "notice", id: "waiting-program", role: "status" }, h("p", {}, h("strong", {}, waiting.name), " asks for access to this account."), h("div", { class: "actions" }, back))];
}
