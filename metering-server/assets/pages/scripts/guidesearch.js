// The guides among the results of the reference's search: by title and first paragraph, and by heading. If none of these has
// the words, by the whole text, which is loaded then.

import { byId } from "/assets/dom.js";

/** The text below each heading, by the URL that leads there; null until it is loaded. */
let texts = null;
let loading = null;

/**
 * Shows the guides and headings that have all words, and returns how many guides those are. Without words, all guides.
 * `again()` is called when the texts of the guides have arrived.
 */
export function searchGuides(words, again) {
  const has = (text) => words.every((word) => text.includes(word));
  const found = show((guide) => has(guide.dataset.guide.toLowerCase()), (heading) => {
    // If a title has all words, only those of its headings are shown that have some too.
    const own = heading.textContent.toLowerCase();
    return words.length > 0 && has(heading.dataset.heading.toLowerCase()) && words.some((word) => own.includes(word));
  });
  byId("guides").classList.toggle("searched", words.length > 0);
  if (words.length === 0 || found > 0) return found;
  const below = (place) => has(texts.get(place.querySelector("a").getAttribute("href")) ?? "");
  if (texts) return show(below, below);
  loading ??= load().then(
    (all) => {
      texts = all;
      again();
    },
    () => {
      // The next search tries again.
      loading = null;
    },
  );
  return found;
}

/** Shows the guides and headings that fit, and returns the number of guides. */
function show(isFitting, isFound) {
  const section = byId("guides");
  let count = 0;
  for (const guide of section.querySelectorAll("[data-guide]")) {
    const headings = [...guide.querySelectorAll("[data-heading]")];
    for (const heading of headings) heading.hidden = !isFound(heading);
    guide.hidden = !isFitting(guide) && headings.every(({ hidden }) => hidden);
    count += guide.hidden ? 0 : 1;
  }
  section.hidden = count === 0;
  return count;
}

async function load() {
  const paths = [...byId("guides").querySelectorAll("[data-guide] > a")].map((link) => link.getAttribute("href"));
  const guides = await Promise.all(paths.map(async (path) => [...sections(path, await (await fetch(path)).text())]));
  return new Map(guides.flat());
}

/** The text of a guide's page, by heading. */
function sections(path, page) {
  const guide = new DOMParser().parseFromString(page, "text/html").getElementById("guide");
  const found = new Map([[path, ""]]);
  let place = path;
  for (const part of guide.querySelectorAll(":scope > :not(nav, .guide-place, .guide-next)")) {
    if (part.id) place = `${path}#${part.id}`;
    found.set(place, `${found.get(place) ?? ""} ${part.textContent.toLowerCase()}`);
  }
  return found;
}
