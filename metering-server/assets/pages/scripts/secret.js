// Shows a new key once, with an example request.

import { h } from "/assets/dom.js";

/** A button that copies a text, or what a function returns, and confirms it. `what` is announced by screen readers. */
export function copyButton(text, label = "Copy", kind = "button", what = "") {
  const words = h("span", {}, label);
  const button = h("button", { class: kind, type: "button" }, words, what && h("span", { class: "quietly-there" }, ` ${what}`));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      words.textContent = "Copied";
    } catch {
      words.textContent = "Copying failed: select the text instead";
    }
    setTimeout(() => {
      words.textContent = label;
    }, 2_500);
  });
  return button;
}

/** The key with a copy button. */
export function secret(key) {
  return h("div", { class: "secret" }, h("code", { id: "api-key" }, key), copyButton(key));
}

/** Lines to paste into a shell. */
export function snippet(lines) {
  const text = lines.join("\n");
  const pre = h("pre", { tabindex: "0", role: "region", "aria-label": "Example" }, h("code", {}, text));
  const head = h("div", { class: "snippet-head" }, "Shell", copyButton(text, "Copy", "button button-quiet button-small"));
  return h("div", { class: "snippet" }, head, pre);
}

/** A URL for trying out a key. Metered routes may be on another origin than the pages. */
export function sampleUrl() {
  const { apiUrl, samplePath } = document.body.dataset;
  return (apiUrl || location.origin) + samplePath;
}

/** An example request with the key. */
export function firstCall(key) {
  return snippet([`export API_KEY=${key}`, `curl -H "Authorization: Bearer $API_KEY" ${sampleUrl()}`]);
}
