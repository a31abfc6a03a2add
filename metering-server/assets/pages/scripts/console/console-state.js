// Whether an account or an operator is active: the filter of a list, and the tag of an item.

import { h } from "/assets/dom.js";

const STATES = { active: ["Active", "tag tag-good"], revoked: ["Revoked", "tag tag-bad"] };

/** The options of a filter. */
export const STATE_OPTIONS = [["", "All"], ...Object.entries(STATES).map(([state, [words]]) => [state, words])];

/** The state as a tag. */
export function stateTag(state) {
  const [words, kind] = STATES[state] ?? [state, "tag"];
  return h("span", { class: kind }, words);
}
