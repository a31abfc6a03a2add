// Everything that needs attention: the overview shows a few items of a kind, and counts the rest.

import { attention } from "/assets/console-attention.js";
import { readHealth } from "/assets/console-chains.js";
import { readReport, settled, trouble } from "/assets/console-overview.js";
import { h } from "/assets/dom.js";

/** The view. The requests without a report are in the shortest report. */
export async function attentionPage() {
  const health = settled(readHealth());
  const { value, problem } = await settled(readReport("/report?days=1"));
  return {
    title: "All that needs attention",
    back: h("p", { class: "back" }, h("a", { href: "#/overview" }, "Overview")),
    lead: "The newest payments, the webhooks that have failed longest, and the accounts that run out first.",
    body: [problem && trouble(problem), attention({ counts: value?.unreported, health, isWhole: true })],
  };
}
