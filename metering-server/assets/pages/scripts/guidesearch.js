// The guides among the results of the reference's search: by title and first paragraph, and by heading.

import { byId } from "/assets/dom.js";

/** Shows the guides and headings that have all words, and returns how many guides those are. Without words, all guides. */
export function searchGuides(words) {
  const section = byId("guides");
  const has = (text) => words.every((word) => text.toLowerCase().includes(word));
  let count = 0;
  for (const guide of section.querySelectorAll("[data-guide]")) {
    const headings = [...guide.querySelectorAll("[data-heading]")];
    for (const heading of headings) {
      // A title that has all words brings none of its headings along, unless they have some too.
      const own = heading.textContent.toLowerCase();
      heading.hidden = words.length === 0 || !has(heading.dataset.heading) || !words.some((word) => own.includes(word));
    }
    guide.hidden = !has(guide.dataset.guide) && headings.every(({ hidden }) => hidden);
    count += guide.hidden ? 0 : 1;
  }
  section.classList.toggle("searched", words.length > 0);
  section.hidden = count === 0;
  return count;
}
