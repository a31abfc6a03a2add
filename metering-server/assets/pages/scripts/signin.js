// Keeps this browser signed in: a key, or a link that came by mail, is exchanged for a session. Its token is in a cookie
// that no script can read; the pages only remember that there is one.

import { callApi } from "/assets/api.js";
import { SESSION, forgetSession, rememberSession } from "/assets/session.js";

/** Whether the browser would keep the cookie: over plain HTTP, only on the user's own machine. */
export const canKeep = () => isSecureContext;

/** Opens a session with a key, which is then no longer needed here. */
export async function keepSignedIn(key) {
  await callApi("/api-key/sessions", { method: "POST", key, credentials: "same-origin" });
  rememberSession();
}

/** The accounts of a link, given its `token` and perhaps a wallet's `signature`. The link stays valid. */
export const accountsOfLink = (link) => callApi("/api-key/sessions/email/account", { method: "POST", body: link });

/** Opens a session with a link, in the account `org_id` if it has several. */
export async function signInByLink(link) {
  await callApi("/api-key/sessions/email/confirm", { method: "POST", body: link, credentials: "same-origin" });
  rememberSession();
}

/** Opens another session after its key was replaced, which ended the first. */
export async function staySignedIn(key) {
  try {
    await callApi("/api-key/sessions", { method: "POST", key, credentials: "same-origin" });
  } catch {
    forgetSession();
  }
}

/** Ends the session of this browser. */
export const endSession = () => callApi("/api-key/sessions/current", { method: "DELETE", key: SESSION, keepalive: true });
