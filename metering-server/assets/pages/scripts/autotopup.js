// Automatic top-ups with a saved card: whether they are on, and why they stopped. The dialogs are loaded on demand.

import { callApi, sentence } from "/assets/api.js";
import { group, plural } from "/assets/decimal.js";
import { arrived, busy, h } from "/assets/dom.js";

const STOPPED = {
  declined: "Your card was declined.",
  authentication_required: "Your card's bank wants you to confirm payments yourself.",
  refused: "The card processor does not charge your card.",
  reversed: "A payment was refunded or disputed.",
  plan_changed: "The plan has changed, or is no longer sold.",
};

const dialogs = () => arrived(import("/assets/autotopupdialog.js"));

/** A section that says whether the card is charged when the balance is low. `key` returns the key of the account. */
export function autoTopUp(plans, key) {
  const section = h("section", { "aria-labelledby": "auto-top-up-title", id: "auto-top-up" });
  const title = () => h("h2", { id: "auto-top-up-title" }, "Automatic top-ups");
  const load = async (focus = false) => {
    try {
      show(await callApi("/credits/auto-top-up", { key: key() }), focus);
    } catch (error) {
      section.replaceChildren(title(), h("p", { class: "bad", role: "alert" }, sentence(error)));
    }
  };
  const show = (settings, focus) => {
    const status = h("p", { class: "bad", role: "alert" });
    const action = (id, words, open) => {
      const button = h("button", { class: "button button-quiet button-small", type: "button", id }, words);
      button.addEventListener("click", () =>
        busy(button, async () => {
          status.textContent = "";
          try {
            const loaded = await dialogs();
            if (button.isConnected) open(loaded);
          } catch (error) {
            status.textContent = sentence(error);
          }
        }),
      );
      return button;
    };
    const { card, rule, enabled } = settings;
    const done = (changed) => show(changed, true);
    const turnOn = card && action("change-auto-top-up", enabled ? "Change" : "Turn on", ({ askAutoTopUp }) => askAutoTopUp(plans, settings, key(), done));
    const turnOff = rule && action("end-auto-top-up", "Turn off", ({ askToEnd }) => askToEnd(key(), done));
    const remove = card && action("remove-card", "Remove card", ({ askToRemove }) => askToRemove(card, key(), done));
    section.replaceChildren(title(), ...words(settings), h("div", { class: "actions" }, ...[turnOn, turnOff, remove].filter(Boolean)), status);
    if (focus) (section.querySelector("button") ?? section).focus();
  };
  section.tabIndex = -1;
  section.append(title());
  load();
  return section;
}

function words({ card, rule, stopped, enabled }) {
  if (!card) return [h("p", { class: "soft" }, "Off. To turn them on, tick “Save the card” when you pay by card.")];
  const saved = h("p", { class: "soft" }, `Saved card: ${card.brand} ending in ${card.last4}.`);
  if (!rule) return [h("p", {}, "Off."), saved];
  const when = `Below ${group(rule.threshold)} ${plural(rule.threshold, "credit")}, plan ${rule.plan_id} is bought for ${group(rule.amount)} ${rule.currency}: at most ${group(rule.monthly_limit)} ${rule.currency} a month, of which ${group(rule.charged_this_month)} ${rule.currency} are charged this month (UTC).`;
  const why = !enabled && h("p", { class: "notice notice-warn", role: "status" }, h("strong", {}, "Stopped. "), STOPPED[stopped] ?? stopped, " Nothing is charged until you turn them on again.");
  return [why, h("p", {}, when), saved].filter(Boolean);
}
