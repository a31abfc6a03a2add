// Everything about one key, at the side of the page.

import { openPanel } from "/assets/dialog.js";
import { plural } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { figure } from "/assets/figure.js";
import { guideLink } from "/assets/guidelink.js";
import { PERIODS, moment, never, stateTag } from "/assets/keyrow.js";
import { copyButton } from "/assets/secret.js";

const COUNTS = [["requests_per_minute", "Requests a minute"], ["requests_per_day", "Requests a day"], ["tokens_per_minute", "Tokens a minute"], ["max_in_flight", "Requests at the same time"]];

/** Opens it. `children` are the keys made by the key, and `items` the actions on it, as in its menu. */
export function openKeyPanel(key, { parents, children, now, items }) {
  const act = ({ action, label, danger, work }) =>
    h("button", { class: `button button-quiet button-small ${danger ? "danger" : ""}`.trim(), type: "button", "data-action": action, on: { click: () => {
      dialog.close();
      work();
    } } }, label);
  const content = [
    h("p", {}, stateTag(key, parents, now)),
    h("div", { class: "actions" }, ...items.map(act)),
    h("dl", { class: "facts" }, ...facts(key, { parents, children }).map(([term, ...words]) => h("div", {}, h("dt", {}, term), h("dd", {}, ...words)))),
    h("p", { class: "hint" }, "Times are UTC. ", guideLink("rate-limits", "How rate limits work")),
  ];
  const dialog = openPanel(key.name, content);
}

function facts(key, { parents, children }) {
  const credits = (text) => [figure(text), ` ${plural(text, "credit")}`];
  const list = (values, all) => (values.length === 0 ? [all] : values.map((value) => h("code", { class: "line" }, value)));
  const budget = key.limit === null
    ? [["Budget", "No limit"]]
    : [
        ["Budget", ...credits(key.limit), ` ${PERIODS[key.limit_reset] ?? "in total"}`],
        ["Remaining", ...credits(key.limit_remaining)],
        ...(key.limit_resets_at ? [["Resets", moment(key.limit_resets_at)]] : []),
        ["Alert", ...(key.alert_below ? ["below ", ...credits(key.alert_below)] : ["None"])],
      ];
  return [
    ["Id", h("code", {}, key.id), " ", copyButton(key.id, "Copy", "button button-quiet button-small", "the id")],
    ...(key.hint ? [["Secret", h("code", {}, key.hint)]] : []),
    ...(parents.length > 0 ? [["Made by", parents[0].name]] : []),
    ...(children.length > 0 ? [["Child keys", children.map(({ name }) => name).join(", ")]] : []),
    ...budget,
    ["Used today", ...credits(key.usage_daily)],
    ["Used this week", ...credits(key.usage_weekly)],
    ["Used this month", ...credits(key.usage_monthly)],
    ["Used in total", ...credits(key.usage)],
    ["Last used", key.last_used_at ? moment(key.last_used_at) : never()],
    ["Created", moment(key.created_at)],
    ["Expires", key.expires_at ? moment(key.expires_at) : never()],
    ["Scopes", key.scopes.join(", ")],
    ["Routes", ...list(key.routes, "All")],
    ["Networks", ...list(key.networks, "All")],
    ...COUNTS.map(([name, label]) => [label, key[name] === "0" ? "No limit of its own" : key[name]]),
  ];
}
