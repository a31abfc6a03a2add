// The header of every page shows the signed-in account and its balance. The key itself is never shown there.

import { callApi } from "/assets/api.js";
import { balanceOf, onBalance } from "/assets/balance.js";
import { cutOff, group, plural } from "/assets/decimal.js";
import { byId, h } from "/assets/dom.js";
import { rememberedKey, rememberedName } from "/assets/session.js";

/** Brings the header up to date with what the tab remembers. */
export function showSignedIn() {
  const key = rememberedKey();
  const name = rememberedName();
  byId("nav-sign-up").hidden = Boolean(key);
  showBalance(key && balanceOf(key));
  const account = byId("nav-account");
  account.replaceChildren("Account");
  if (!key) return;
  account.append(h("span", { class: "signed-in" }, h("span", { class: "quietly-there" }, name ? ", signed in as " : ", signed in"), name ?? ""));
}

function showBalance(balance) {
  const place = byId("nav-balance");
  place.hidden = !balance;
  if (!balance) return;
  // As on the meter.
  const shown = cutOff(balance, 4);
  place.title = `Balance: ${group(balance)} ${plural(balance, "credit")}`;
  place.replaceChildren(h("span", { class: "quietly-there" }, "Balance: "), `${group(shown)} ${plural(shown, "credit")}`);
}

onBalance(showSignedIn);
showSignedIn();
// The account page requests the balance itself.
const key = rememberedKey();
if (key && !byId("nav-account").hasAttribute("aria-current")) callApi("/credits/balance", { key }).catch(() => {});
