// Dialogs for actions. Each asks for a reason, shows errors beside its fields, and stays open until the action is done.

import { actionProblem } from "/assets/console-api.js";
import { field } from "/assets/console-field.js";
import { busy, byId, h, say } from "/assets/dom.js";
import { secret } from "/assets/secret.js";

const REASON = {
  name: "reason",
  label: "Reason",
  hint: "Goes into the audit log, which only operators read.",
  maxlength: "500",
  check: (text) => (text ? "" : "Say why. The audit log keeps it."),
};

/**
 * Asks for what an action needs. `fields` are described in `field`; a reason is always asked for, and `reason` may
 * describe it. `send` takes the action with the values by name, and `done` is called with its result once the dialog is
 * closed.
 */
export function ask({ title, about = [], fields = [], reason = {}, confirm, danger = false, send, done }) {
  const made = [...fields, { ...REASON, ...reason }].map(field);
  const problem = h("p", { class: "notice notice-bad", role: "alert", id: "dialog-error", hidden: true });
  const submit = h("button", { class: danger ? "button button-danger" : "button", type: "submit" }, confirm);
  const cancel = h("button", { class: "button button-quiet", type: "button", on: { click: () => dialog.close() } }, "Cancel");
  const form = h("form", { novalidate: true, autocomplete: "off" }, ...made.map(({ element }) => element), problem, h("div", { class: "actions" }, submit, cancel));
  const dialog = open(title, [...about, form]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(problem, "");
    const wrong = made.filter((one) => one.isVisible() && !one.validate());
    if (wrong.length > 0) {
      wrong[0].input.focus();
      return;
    }
    const values = Object.fromEntries(made.filter((one) => one.isVisible()).map((one) => [one.name, one.value()]));
    busy(submit, async () => {
      let result;
      try {
        result = await send(values);
      } catch (error) {
        refuse(error);
        return;
      }
      dialog.close();
      done(result, values);
    });
  });
  const refuse = (error) => {
    const named = made.filter((one) => error.fields?.[one.name]);
    for (const one of named) one.complain(error.fields[one.name]);
    if (named.length > 0) named[0].input.focus();
    else say(problem, actionProblem(error));
  };
  return dialog;
}

/** Shows a secret once. `done` is called when the operator has closed it. */
export function issued({ title, words, text, done }) {
  const close = h("button", { class: "button button-quiet", type: "button", id: "secret-kept", on: { click: () => dialog.close() } }, "I have saved it");
  const dialog = open(title, [h("p", {}, words), secret(text), h("div", { class: "actions" }, close)]);
  // Escape would lose it.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", done);
}

function open(title, content) {
  const before = document.activeElement;
  // Clear the result of the last action.
  byId("said").replaceChildren();
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: "console-dialog" }, h("h2", { id: "dialog-title" }, title), ...content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    before?.focus?.({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
