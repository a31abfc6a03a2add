// Who is signed in. A viewer reads everything; only a manager is shown actions.

import { sentence } from "/assets/api.js";
import { admin, onSessionEnd, useCsrfToken } from "/assets/console-api.js";
import { busy, byId, complain, onSubmit, say } from "/assets/dom.js";

const ENDED = "Your session has ended. Sign in again.";

/** Why signing in through the provider failed, by the server's value of `sign_in`. */
const REFUSED = {
  expired: "This sign-in took too long, was used before, or began in another browser. Try again.",
  refused: "The provider did not sign you in. Try again, or sign in with a token.",
  unavailable: "The provider cannot be reached. Try again later, or sign in with a token.",
  invalid: "The provider's response is not valid. Sign in with a token, and look at the server's log.",
  no_role: "You are not among the operators of this service. Ask whoever runs it to add you to the operators of its sign-in.",
};

let operator = null;
let labels = {};

/** Whether the operator may take actions. */
export const isManager = () => operator?.role === "manager";
/** The operator's name. */
export const ownName = () => operator?.name;

/** The name of an action in the audit log. */
export const actionLabel = (action) => labels[action] ?? action;

/** The label of every action, by its name in the audit log. */
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
  // Several requests may be refused at once: only the first is reported.
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
  showProvider();
}

/** Offers the provider to sign in through, if there is one. Tokens work even if this fails. */
async function showProvider() {
  // Shown once, and not again after a reload.
  const address = new URL(location.href);
  const refused = address.searchParams.get("sign_in");
  if (refused !== null) {
    address.searchParams.delete("sign_in");
    history.replaceState(null, "", address);
  }
  const provider = await admin("/oidc", { signsIn: true }).catch(() => null);
  byId("provider").hidden = !provider;
  if (!provider) return;
  const link = byId("provider-link");
  link.textContent = `Sign in with ${provider.name}`;
  link.hidden = provider.problem !== null;
  say(byId("provider-error"), provider.problem ?? REFUSED[refused] ?? "");
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
