// A guide: buttons that copy its code, and tabs where the same code is there in several languages.

import { h } from "/assets/dom.js";
import { copyButton } from "/assets/secret.js";
import { startTabs } from "/assets/tabs.js";

const guide = document.getElementById("guide");
/** Whether the tabs are set up: later changes are the reader's choice. */
let isReady = false;

for (const snippet of guide.querySelectorAll(".snippet")) {
  const code = snippet.querySelector("code");
  snippet.querySelector(".snippet-head").append(copyButton(() => code.textContent, "Copy", "button button-quiet button-small", `${snippet.dataset.language} code`));
}
guide.querySelectorAll(".code-choices").forEach(addTabs);
isReady = true;

function addTabs(group, number) {
  const tabs = [...group.querySelectorAll(".snippet")].map((panel, place) => {
    const { language } = panel.dataset;
    const id = `code-${number}-${place}`;
    for (const [name, value] of Object.entries({ id, role: "tabpanel", "aria-labelledby": `${id}-tab` })) panel.setAttribute(name, value);
    return h("button", { type: "button", role: "tab", id: `${id}-tab`, "aria-controls": id, "data-language": language }, language);
  });
  const list = h("div", { class: "code-languages", role: "tablist", "aria-label": "Language" }, ...tabs);
  group.prepend(list);
  startTabs(list, { inUrl: false, opened: (id) => isReady && showEverywhere(document.getElementById(id).dataset.language) }).openNamed();
}

/** Shows a language in all tabs that have it. */
function showEverywhere(language) {
  const others = [...guide.querySelectorAll('[role="tab"][aria-selected="false"]')].filter((tab) => tab.dataset.language === language);
  others[0]?.click();
}
