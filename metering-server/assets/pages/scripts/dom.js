// Creates and finds elements. Text is only ever inserted as text, so content from the server or a wallet stays inert.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id, which must be in the page. */
export const byId = (id) => document.getElementById(id);

/** Creates an HTML element: attributes (`on` maps events to listeners; false and null are left out), then children. */
export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** Creates an SVG element. */
export const s = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** A text whose paths may break after a slash, rather than within a word. */
export const breakable = (text) => text.split("/").flatMap((part, place, all) => (place === 0 ? [part] : ["/", !all[place - 1].endsWith(" ") && h("wbr"), part]));

/** An address. If it needs two lines, it breaks in its middle rather than before its last digit. */
export const halves = (address) => [address.slice(0, address.length / 2), address.slice(address.length / 2)].map((half) => h("span", { class: "half" }, half));

/** Sets the text of an element, which is hidden while the text is empty. */
export function say(element, text) {
  element.textContent = text ?? "";
  element.hidden = !text;
}

/**
 * Shows a step of a page, and none of the steps beside it: their ids end in `-step`. The heading above shows `title`.
 */
export function showStep(id, title) {
  const step = byId(id);
  const card = step.parentElement;
  for (const other of card.children) if (other.id.endsWith("-step")) other.hidden = other !== step;
  if (title) card.querySelector("h1").textContent = title;
}

/** Marks an input as invalid, or as valid when there is no text. Its message is shown in `ID-error`. */
export function complain(input, text) {
  say(byId(`${input.id}-error`), text);
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** Marks a button as busy and ignores presses until the work is done. `disabled` would take the focus away. */
export async function busy(button, work) {
  if (button.getAttribute("aria-busy") === "true") return undefined;
  button.setAttribute("aria-busy", "true");
  button.setAttribute("aria-disabled", "true");
  try {
    return await work();
  } finally {
    button.removeAttribute("aria-busy");
    button.removeAttribute("aria-disabled");
  }
}

/** Waits for a part of the page that is loaded when it is needed. */
export const arrived = (part) =>
  part.catch(() => {
    throw new Error("Could not load this part of the page. Check your connection and try again.");
  });

/** Handles a form's submission. Its button is disabled in the page, so that it cannot be submitted before this runs. */
export function onSubmit(form, work) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    work();
  });
  form.querySelector('[type="submit"]').disabled = false;
}

/** Resolves after a time, or as soon as `signal` is aborted. */
export const wait = (milliseconds, signal) =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", resolve, { once: true });
  });
