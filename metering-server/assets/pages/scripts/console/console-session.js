// Who is signed in. A viewer reads everything; only a manager is shown actions.

import { sentence } from "/assets/api.js";
import { admin, onSessionEnd, useCsrfToken } from "/assets/console-api.js";
import { busy, byId, complain, onSubmit } from "/assets/dom.js";

const ENDED = "Your session has ended. Sign in again.";

let operator = null;
let labels = {};

/** Whether the operator may take actions. */
export const isManager = () => operator?.role === "manager";
/** The operator's name. */
export const ownName = () => operator?.name;

/** What an action of the audit log is called. */
export const actionLabel = (action) => labels[action] ?? action;

/** What every action is called, by its name in the audit log. */
export const actionLabels = () => labels;

/** Opens the session of this browser, or asks for a token. `opened` and `closed` show and clear the views. */
export async function startSession({ opened, closed }) {
  const leave = (problem = "") => {
    operator = null;
    useCsrfToken(null);
    closed();
    ask(problem);
  };
  const enter = (session) => {
    operator = session.operator;
    labels = session.actions;
    useCsrfToken(session.csrf_token);
    byId("console-status").textContent = "";
    byId("sign-in").hidden = true;
    byId("who").hidden = false;
    byId("who-name").textContent = operator.name;
    byId("who-role").textContent = operator.role;
    byId("console-nav").hidden = false;
    byId("find").hidden = false;
    opened();
  };
  // Several requests may be refused at once: the first one says so.
  onSessionEnd(() => operator && leave(ENDED));
  onSubmit(byId("token-form"), () => signIn(enter));
  byId("sign-out").addEventListener("click", () => busy(byId("sign-out"), () => signOut(leave)));
  try {
    const session = await admin("/session", { signsIn: true });
    if (session) enter(session);
    else leave();
  } catch (error) {
    leave(error.status === 401 ? ENDED : sentence(error));
  }
}

function ask(problem) {
  document.title = `Sign in · ${document.body.dataset.brand}`;
  byId("console-status").textContent = "";
  byId("who").hidden = true;
  byId("console-nav").hidden = true;
  byId("find").hidden = true;
  byId("find-text").value = "";
  byId("sign-in").hidden = false;
  byId("token").value = "";
  complain(byId("token"), problem);
  byId("token").focus({ preventScroll: true });
}

async function signIn(enter) {
  const input = byId("token");
  // Text copied from a terminal or chat may contain line breaks or invisible characters.
  const token = input.value.replace(/[\s\p{Cf}]/gu, "");
  if (!/^opr_[A-Za-z0-9]+$/.test(token)) {
    complain(input, "A token starts with opr_, followed by letters and digits. Copy all of it.");
    input.focus();
    return;
  }
  complain(input, "");
  await busy(byId("token-button"), async () => {
    try {
      enter(await admin("/session", { method: "POST", body: { token }, signsIn: true }));
      input.value = "";
    } catch (error) {
      complain(input, error.status === 401 ? "This token is not valid. Check that it is complete and has not been revoked." : sentence(error));
      input.focus();
    }
  });
}

async function signOut(leave) {
  try {
    await admin("/session", { method: "DELETE", signsIn: true });
    leave();
  } catch (error) {
    // A session that is over needs no signing out.
    if (error.status === 401) leave();
    else byId("said").textContent = `You are still signed in. ${sentence(error)}`;
  }
}
