// A link to a guide.

import { h } from "/assets/dom.js";

/** `path` is the guide's name, with a heading if one is meant. */
export const guideLink = (path, words) => h("a", { href: `/docs/guides/${path}` }, words);
