// Dialogs for actions. Most ask for a reason.

import { actionProblem } from "/assets/console-api.js";
import { formDialog, issued as showOnce } from "/assets/dialog.js";
import { byId } from "/assets/dom.js";
import { field } from "/assets/field.js";

const REASON = {
  name: "reason",
  label: "Reason",
  hint: "Goes into the audit log, which only operators read.",
  maxlength: "500",
  check: (text) => (text ? "" : "Say why. The audit log keeps it."),
};

/**
 * Asks for an action's parameters. `fields` are described in `field`; a reason is requested too, described by `reason`,
 * unless that is null. `send` takes the action with the values by name, and `done` is called with its result once the
 * dialog is closed.
 */
export function ask({ fields = [], reason = {}, ...more }) {
  forgetLast();
  return formDialog({ ...more, fields: [...fields, ...(reason ? [{ ...REASON, ...reason }] : [])].map(field), problemOf: actionProblem });
}

/** Shows a secret once. `done` is called when the operator has closed it. */
export function issued(secret) {
  forgetLast();
  showOnce(secret);
}

/** Clears the result of the last action. */
const forgetLast = () => byId("said").replaceChildren();
