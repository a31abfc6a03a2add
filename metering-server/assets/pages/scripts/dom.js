// Building and finding elements. Text is only ever inserted as text: whatever the server or a wallet says stays inert.

const SVG = "http://www.w3.org/2000/svg";

/** The element with this id, which is in the page. */
export const byId = (id) => document.getElementById(id);

/** An HTML element: attributes (`on` maps events to listeners; false and null leave one out), then children. */
export const h = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);

/** The same for SVG. */
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

/** Shows a text in an element that is hidden while it has none. */
export function say(element, text) {
  element.textContent = text ?? "";
  element.hidden = !text;
}

/** Marks an input as wrong, or as right again when there is no text. Its message stands in `ID-error`. */
export function complain(input, text) {
  say(byId(`${input.id}-error`), text);
  if (text) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

/** A button that works: pressing it does nothing until the work is done. It is not `disabled`, which would take the focus away. */
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

/** What becomes of a form that is sent. Its button is disabled in the page, so that nobody sends it to the service before. */
export function onSubmit(form, work) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    work();
  });
  form.querySelector('[type="submit"]').disabled = false;
}

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
