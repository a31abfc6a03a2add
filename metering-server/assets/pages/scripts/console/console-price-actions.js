// What a manager can do about price versions: apply a catalogue, and cancel a version that has not taken effect.

import { act } from "/assets/console-api.js";
import { ask } from "/assets/console-dialog.js";
import { reload } from "/assets/console-router.js";
import { toSecond } from "/assets/days.js";
import { byId, h } from "/assets/dom.js";

/** The entry for the service's default in the list of times. */
const SOON = "soon";
const inWords = (time) => `${toSecond(time)} UTC`;

/** The button that applies a catalogue. */
export const applyButton = (text, label) => h("button", { class: "button", type: "button", id: "apply", on: { click: () => apply(text) } }, label);

/** The button that cancels a scheduled version: in its row, or on its own page. */
export function cancelButton(version, { inRow = false } = {}) {
  const label = inRow ? ["Cancel", h("span", { class: "quietly-there" }, ` version ${version.number}`)] : ["Cancel version"];
  return h("button", { class: `button button-quiet danger${inRow ? " button-small" : ""}`, type: "button", id: `cancel-${version.number}`, on: { click: () => cancel(version) } }, ...label);
}

function apply(text) {
  ask({
    title: "Apply this catalogue",
    about: [h("p", { class: "soft" }, "All servers of this database switch to it at the same time. From then on, they no longer take the file of their configuration.")],
    fields: [
      { name: "when", label: "Takes effect", options: [[SOON, "In 30 seconds"], ["at", "At a time"]] },
      { name: "at", label: "Time (UTC)", hint: "Such as 2027-01-01 00:00. At least 15 seconds ahead.", autocomplete: "off", check: (written) => (rfc3339(written) ? "" : "Enter a date and a time, such as 2027-01-01 00:00."), when: (other) => other("when") !== SOON },
    ],
    confirm: "Apply catalogue",
    send: ({ at, reason }) => act("/catalogue/apply", { catalogue: text, at: at && rfc3339(at), reason }),
    done: async ({ number, since }) => {
      await reload(`Version ${number} takes effect at ${inWords(since)}.`);
      byId("said").append(h("p", { class: "after-said" }, h("a", { href: `#/prices/${number}` }, "See the version, its rehearsal and its countdown")));
    },
  });
}

/** A time in UTC as the service reads it; empty if it is invalid. */
function rfc3339(written) {
  const [, day, clock, seconds = ":00"] = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d)?Z?$/.exec(written) ?? [];
  const time = `${day}T${clock}${seconds}Z`;
  // A day such as 31 February would roll over into the next month.
  return day && !Number.isNaN(Date.parse(time)) && new Date(time).toISOString().startsWith(day) ? time : undefined;
}

function cancel({ number, since }) {
  let refused = false;
  const dialog = ask({
    title: `Cancel version ${number}`,
    about: [h("p", {}, `It is scheduled for ${inWords(since)}. If it is cancelled, what is in force before then stays in force.`)],
    confirm: "Cancel version",
    dismiss: "Keep it",
    danger: true,
    send: async ({ reason }) => {
      try {
        const cancelled = await act(`/catalogue/versions/${number}/cancel`, { reason });
        refused = false;
        return cancelled;
      } catch (error) {
        // It may have taken effect meanwhile, or the response was lost; the page is then out of date.
        refused = true;
        throw error;
      }
    },
    done: () => reload(`Version ${number} will not take effect.`),
  });
  dialog.addEventListener("close", () => refused && reload());
}
