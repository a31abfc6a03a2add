// Dialogs with forms. Errors are shown next to the fields that they are about, and a dialog stays open until the work
// is done.

import { sentence } from "/assets/api.js";
import { busy, h, say } from "/assets/dom.js";
import { secret } from "/assets/secret.js";

/**
 * Asks for values in a dialog, which closes once they were sent. `dismiss` is the text of the other button. The rest is
 * as for `checkedForm`.
 */
export function formDialog({ title, about = [], dismiss = "Cancel", done, ...rest }) {
  const close = (result, values) => {
    dialog.close();
    done(result, values);
  };
  const cancel = h("button", { class: "button button-quiet", type: "button", on: { click: () => dialog.close() } }, dismiss);
  const dialog = openDialog(title, [...about, checkedForm({ ...rest, other: cancel, done: close })]);
  return dialog;
}

/**
 * A form that asks for values. `fields` come from `field` and `boxes`, and `layout` the elements that show them. `send`
 * takes the values by name, and `done` its result. `other` is the button next to the submit button.
 * `problemOf` words an error that belongs to no field, and `explain` one that the service found in a field.
 */
export function checkedForm({ fields = [], layout = null, confirm, other, danger = false, problemOf = sentence, explain = (_, text) => text, send, done }) {
  const problem = h("p", { class: "notice notice-bad", role: "alert", id: "dialog-error", hidden: true });
  const submit = h("button", { class: danger ? "button button-danger" : "button", type: "submit" }, confirm);
  const shown = layout ?? fields.map(({ element }) => element);
  const form = h("form", { novalidate: true, autocomplete: "off" }, ...shown, problem, h("div", { class: "actions" }, submit, other));
  const asked = () => fields.filter((one) => one.isVisible());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(problem, "");
    const wrong = asked().filter((one) => !one.validate());
    if (wrong.length > 0) {
      goTo(wrong[0]);
      return;
    }
    const values = Object.fromEntries(asked().map((one) => [one.name, one.value()]));
    busy(submit, async () => {
      let result;
      try {
        result = await send(values);
      } catch (error) {
        refuse(error);
        return;
      }
      done(result, values);
    });
  });
  const refuse = (error) => {
    const named = asked().filter((one) => error.fields?.[one.name]);
    for (const one of named) one.complain(explain(one, error.fields[one.name]));
    if (named.length > 0) goTo(named[0]);
    else {
      say(problem, problemOf(error));
      problem.scrollIntoView({ block: "nearest" });
    }
  };
  return form;
}

/** Moves the focus to a field, which may be in a closed part of the form. */
function goTo({ element, input }) {
  const part = element.closest("details");
  if (part) part.open = true;
  input.focus();
}

/** Shows a secret once. `more` is shown under it, and `done` is called when the user has closed it. */
export function issued({ title, words, text, more = [], done }) {
  const close = h("button", { class: "button button-quiet", type: "button", id: "secret-kept", on: { click: () => dialog.close() } }, "I have saved it");
  const dialog = openDialog(title, [h("p", {}, words), secret(text), ...more, h("div", { class: "actions" }, close)]);
  // Escape would lose it.
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", done);
}

/** Opens a panel at the side of the page. A press beside it closes it, and so does a link to another part of the page. */
export function openPanel(title, content) {
  const close = h("button", { class: "button button-quiet button-small panel-close", type: "button", on: { click: () => dialog.close() } }, "Close");
  const dialog = openDialog(title, [close, ...content], "side-panel");
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog || target.closest('a[href^="#"]')) dialog.close();
  });
  return dialog;
}

/** Opens a dialog. The focus returns when it is closed. */
export function openDialog(title, content, kind = "form-dialog") {
  const before = document.activeElement;
  const dialog = h("dialog", { "aria-labelledby": "dialog-title", class: kind }, h("h2", { id: "dialog-title" }, title), ...content);
  dialog.addEventListener("close", () => {
    dialog.remove();
    before?.focus?.({ preventScroll: true });
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
