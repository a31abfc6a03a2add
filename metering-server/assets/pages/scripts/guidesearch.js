// The guides among the results of the reference's search: first those with the words in the title, the first paragraph or a
// heading, then those with the words in their text, which is loaded at the first search.

import { byId } from "/assets/dom.js";

/** The text below each heading, by the URL that leads there; null until it is loaded. */
let texts = null;
let loading = null;
/** All guides in their own order; null until the first search. */
let guides = null;

/**
 * Shows the guides and headings that have all words, and returns how many guides those are. Without words, all guides.
 * `again()` is called when the texts of the guides have arrived.
 */
export function searchGuides(words, again) {
  const section = byId("guides");
  section.classList.toggle("searched", words.length > 0);
  if (words.length > 0) loadTexts(again);
  guides ??= [...section.querySelectorAll("[data-guide]")];
  const [named, inText] = [[], []];
  const rest = [];
  for (const guide of guides) {
    const place = show(guide, words);
    guide.hidden = !place;
    (place === "title" ? named : place === "text" ? inText : rest).push(guide);
  }
  inOrder([...named, ...inText, ...rest]);
  const count = named.length + inText.length;
  section.hidden = count === 0;
  return count;
}

/** Shows the headings of a guide that have the words, and returns where the guide has them: "title", "text" or nowhere. */
function show(guide, words) {
  const has = (text) => words.every((word) => text.includes(word));
  const hasBelow = (place) => has(texts?.get(place.querySelector("a").getAttribute("href")) ?? "");
  const headings = [...guide.querySelectorAll("[data-heading]")];
  // If a title has all words, only those of its headings are shown that have some too.
  const named = headings.filter((heading) => {
    const own = heading.textContent.toLowerCase();
    return has(heading.dataset.heading.toLowerCase()) && words.some((word) => own.includes(word));
  });
  const isNamed = named.length > 0 || has(guide.dataset.guide.toLowerCase());
  const found = isNamed ? named : headings.filter(hasBelow);
  for (const heading of headings) heading.hidden = !found.includes(heading);
  if (isNamed) return "title";
  return found.length > 0 || hasBelow(guide) ? "text" : null;
}

/** Puts the guides in this order. A link that has the focus keeps it. */
function inOrder(ordered) {
  const list = guides[0]?.parentElement;
  if (!list || ordered.every((guide, place) => guide === list.children[place])) return;
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  list.append(...ordered);
  focused?.focus({ preventScroll: true });
}

function loadTexts(again) {
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
