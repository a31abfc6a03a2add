// Replaces the key of this tab where the Keys tab cannot: when the response to a rotation is missing, or with the
// wallet that paid for the account.

import { sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { newKey, showElsewhere, showRotate } from "/assets/rotate.js";
import { rotateKey } from "/assets/rotation.js";
import { forgetRotation, rememberedRotation } from "/assets/session.js";

/**
 * Fills `place`, or hides it. `account` is the balance document. `key()` is the key of this visit; `here()` says whether
 * the same user is still on the page, and then `rotated` is called with the new key. `ended()` is called if the key is
 * not live and there is no new one.
 */
export function showReplace(place, visit) {
  const { account } = visit;
  const parts = [...(rememberedRotation() ? [unfinished(place, visit)] : []), ...(account.payer_address ? [withWallet(visit)] : [])];
  place.hidden = parts.length === 0;
  place.replaceChildren(...parts);
}

function withWallet(visit) {
  const wallet = h("div", {});
  // The wallet's new key replaces any left by an earlier attempt.
  const rotated = (key) => {
    forgetRotation();
    visit.rotated(key);
  };
  showRotate(wallet, { ...visit, rotated });
  return h("details", {}, h("summary", { class: "wallet-summary" }, "Replace the key with your wallet"), wallet);
}

/** The response of an earlier attempt did not arrive. */
function unfinished(place, visit) {
  return h(
    "div",
    { class: "stack-gap" },
    h("h2", {}, "Your new key has not arrived"),
    h(
      "div",
      { class: "notice notice-warn", id: "unfinished-rotation" },
      h("p", {}, h("strong", {}, "The response did not arrive. "), "Your key may have been replaced already."),
      h("p", {}, "Try again in this tab: if it was replaced, you get the same new key; if not, it is replaced now. Do not close the tab before that."),
      h("div", { class: "actions" }, confirm(place, visit, "Get the new key")),
    ),
  );
}

function confirm(place, visit, label) {
  const { key, here, rotated } = visit;
  const button = h("button", { class: "button", type: "button", "data-action": "replace-now" }, label);
  button.addEventListener("click", () =>
    busy(button, async () => {
      try {
        const fresh = await rotateKey(key());
        if (!here()) {
          forgetRotation();
          showElsewhere(fresh);
          return;
        }
        rotated(fresh);
        forgetRotation();
        place.replaceChildren(...newKey(fresh));
        place.querySelector("h2").focus();
      } catch (error) {
        if (!here()) return;
        if (error.code === "unauthorized" && !rememberedRotation() && visit.ended) {
          visit.ended();
          return;
        }
        showReplace(place, visit);
        const failure = h("div", { class: "notice notice-bad", role: "alert", tabindex: "-1" }, sentence(error));
        place.hidden = false;
        place.prepend(failure);
        failure.focus();
      }
    }),
  );
  return button;
}
