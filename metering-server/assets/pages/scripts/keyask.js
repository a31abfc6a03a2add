// Asks for the key where a session is not enough: only the key itself pays for requests.

import { complain, h, onSubmit } from "/assets/dom.js";
import { readKey, rememberKey } from "/assets/session.js";

let number = 0;

/** A form for the key. Calls `done` once this tab has it. */
export function askForKey(done) {
  number += 1;
  const id = `try-key-${number}`;
  const input = h("input", { id, class: "mono", type: "password", autocomplete: "current-password", autocapitalize: "none", spellcheck: "false", placeholder: "sk_live_…", "aria-describedby": `${id}-error` });
  const form = h(
    "form",
    { class: "notice", method: "post", novalidate: true, "data-needs": "key" },
    h("p", {}, "You are signed in without your key, and only the key itself pays for requests. It stays in this tab."),
    h("div", { class: "field" }, h("label", { for: id }, "API key"), input, h("p", { class: "field-error", id: `${id}-error`, role: "alert", hidden: true })),
    h("button", { class: "button button-small", type: "submit" }, "Use this key"),
  );
  onSubmit(form, () => {
    const key = readKey(input.value);
    complain(input, key ? "" : "A key starts with sk_live_, followed by letters and digits. Copy all of it.");
    if (!key) {
      input.focus();
      return;
    }
    rememberKey(key);
    done();
  });
  return form;
}
