// Notes of operators on an account.

import { act } from "/assets/console-api.js";
import { ask } from "/assets/console-dialog.js";
import { who } from "/assets/console-log.js";
import { reload } from "/assets/console-router.js";
import { time } from "/assets/console-time.js";
import { h } from "/assets/dom.js";
import { checks } from "/assets/field.js";

/** The notes, newest first; null if there are none. */
export function notes({ notes: list = [] }) {
  if (list.length === 0) return null;
  const items = list.map(({ at, by, text }) => h("li", {}, h("p", { class: "break" }, text), h("p", { class: "log-facts soft" }, time(at), " UTC, by ", who(by))));
  return h("section", { "aria-labelledby": "notes-title", id: "notes" }, h("h2", { id: "notes-title" }, "Notes"), h("ul", { class: "notes" }, ...items));
}

/** Asks for a note and writes it. */
export function addNote({ agent_name: name }, path) {
  ask({
    title: `Note on ${name}`,
    fields: [{ name: "note", label: "Note", hint: "For other operators. It cannot be changed. The owner's export has it, without your name.", maxlength: "500", check: checks.given }],
    reason: null,
    confirm: "Add note",
    send: ({ note }) => act(path("notes"), { note }),
    done: () => reload("Added the note."),
  });
}
