// Times are UTC, to the second.

import { toSecond } from "/assets/days.js";
import { h } from "/assets/dom.js";

/** A time. */
export const time = (text) => (text ? h("time", { datetime: text, title: text }, toSecond(text)) : "");
/** The day of a time. */
export const day = (text) => (text ? h("time", { datetime: text, title: text }, text.slice(0, 10)) : "");
