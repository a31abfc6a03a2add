// A link to a guide.

import { h } from "/assets/dom.js";

/** `path` is the guide's name, with a heading if the link is to one. */
export const guideLink = (path, words) => h("a", { href: `/docs/guides/${path}` }, words);
