// Times are UTC, to the second.

import { h } from "/assets/dom.js";

/** A time. */
export const time = (text) => (text ? h("time", { datetime: text, title: text }, text.slice(0, 19).replace("T", " ")) : "");
/** The day of a time. */
export const day = (text) => (text ? h("time", { datetime: text, title: text }, text.slice(0, 10)) : "");
