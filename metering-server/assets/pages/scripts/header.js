// The header of every page says who is signed in. The key itself is never shown there.

import { byId, h } from "/assets/dom.js";
import { rememberedKey, rememberedName } from "/assets/session.js";

/** Brings the header up to date with what the tab remembers. */
export function showSignedIn() {
  const key = rememberedKey();
  const name = rememberedName();
  byId("nav-sign-up").hidden = Boolean(key);
  const account = byId("nav-account");
  account.replaceChildren("Account");
  if (!key) return;
  account.append(h("span", { class: "signed-in" }, h("span", { class: "quietly-there" }, name ? ", signed in as " : ", signed in"), name ?? ""));
}

showSignedIn();
