// The ROTATE tab: replaces the key with the key itself, and, for accounts that were paid for by a wallet, with that.

import { sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { newKey, showElsewhere, showRotate } from "/assets/rotate.js";
import { rotateKey } from "/assets/rotation.js";
import { forgetRotation, rememberedRotation } from "/assets/session.js";

/**
 * Fills `place`. `account` is the balance document. `key()` is the key of this visit; `here()` says whether the same user
 * is still on the page, and then `rotated` is called with the new key. `ended()` is called if the key is not live and there
 * is no new one to get.
 */
export function showReplace(place, visit) {
  const { account } = visit;
  const offer = h("div", { class: "stack-gap" }, h("h2", {}, "Replace this key"), ...(rememberedRotation() ? unfinished(place, visit) : first(place, visit)));
  place.replaceChildren(offer);
  if (!account.payer_address) return;
  const wallet = h("div", {});
  place.append(h("details", { class: "more" }, h("summary", {}, "Use your wallet instead"), wallet));
  // The wallet's new key replaces whatever an earlier attempt may have left.
  const rotated = (key) => {
    forgetRotation();
    visit.rotated(key);
  };
  showRotate(wallet, { ...visit, rotated });
}

function first(place, visit) {
  const about = h("p", { class: "soft" }, "You get a new key, and the old one stops working immediately, everywhere it is used. Balance, usage and limits stay the same.");
  const button = h("button", { class: "button", type: "button", "data-action": "replace" }, "Replace key …");
  const sure = h(
    "div",
    { class: "notice notice-warn", hidden: true, id: "replace-sure" },
    h("p", {}, h("strong", {}, "Programs that use the old key are refused "), "until they have the new one. It is shown only once."),
    h("div", { class: "actions" }, confirm(place, visit, "Replace it now"), h("button", { class: "button button-quiet", type: "button", "data-action": "keep" }, "Keep the old key")),
  );
  button.addEventListener("click", () => {
    sure.hidden = false;
    button.hidden = true;
    sure.querySelector("button").focus();
  });
  sure.querySelector("[data-action=keep]").addEventListener("click", () => {
    sure.hidden = true;
    button.hidden = false;
    button.focus();
  });
  return [about, h("div", { class: "actions" }, button), sure];
}

/** The response of an earlier attempt did not arrive. */
function unfinished(place, visit) {
  return [
    h(
      "div",
      { class: "notice notice-warn", id: "unfinished-rotation" },
      h("p", {}, h("strong", {}, "The response did not arrive. "), "Your key may have been replaced already."),
      h("p", {}, "Try again in this tab: if it was replaced, you get the same new key; if not, it is replaced now. Do not close the tab before that."),
      h("div", { class: "actions" }, confirm(place, visit, "Get the new key")),
    ),
  ];
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
        place.prepend(failure);
        failure.focus();
      }
    }),
  );
  return button;
}
