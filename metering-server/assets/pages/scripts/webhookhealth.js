// The health of a webhook: the first thing its owner checks when events do not arrive.

import { group } from "/assets/decimal.js";
import { h } from "/assets/dom.js";

const STATES = { active: ["Active", "tag-good"], disabled: ["Off", ""], gone: ["Gone", "tag-bad"] };
const MAIL = "mailto:";

/** Whether a webhook is mail to the account's address. */
export const isMail = ({ url }) => url.startsWith(MAIL);

/** The target of a webhook, as text. */
export const target = (webhook) => (isMail(webhook) ? `Email to ${webhook.url.slice(MAIL.length)}` : webhook.url);

/** A time to the minute, in UTC, without the day if that is today. */
export function clockTime(text, now) {
  const [day, time] = [text.slice(0, 10), text.slice(11, 16)];
  return day === now.toISOString().slice(0, 10) ? time : `${day} ${time}`;
}

/** The health of a webhook at `now`: a text, the kind of its tag, and notes about its deliveries. */
export function condition({ state, health }, now) {
  const { waiting, failing_since: since, last_status: status, last_error: error, next_attempt_at: next, last_delivered_at: delivered } = health ?? {};
  const count = Number(waiting ?? 0);
  const others = count > 0 ? `${count} waiting` : "";
  if (state !== "active") return { words: STATES[state]?.[0] ?? state, kind: STATES[state]?.[1] ?? "", notes: [state === "gone" && "It responded 410.", others].filter(Boolean) };
  if (since) {
    const why = status ? `HTTP ${status}` : error;
    return { words: `Failing since ${clockTime(since, now)}`, kind: "tag-bad", notes: [[why, others].filter(Boolean).join(", "), `Next attempt ${clockTime(next, now)}`] };
  }
  const last = delivered && `Last delivered ${clockTime(delivered, now)}`;
  const [words, kind] = STATES.active;
  return { words, kind, notes: [others, last].filter(Boolean) };
}

/** The part of the deliveries of the last 7 days that succeeded, and how many there were. Numbers are texts. */
function successRate({ health }) {
  const [delivered, first, failed] = ["delivered", "at_first_attempt", "failed"].map((name) => BigInt(health?.last_7_days?.[name] ?? 0));
  const all = delivered + failed;
  if (all === 0n) return { words: "None sent", notes: [] };
  // Rounded down: only all are 100%.
  const part = (count) => {
    const permille = (count * 1_000n) / all;
    return permille % 10n === 0n ? `${permille / 10n}%` : `${permille / 10n}.${permille % 10n}%`;
  };
  return { words: part(delivered), notes: [`${group(String(delivered))} of ${group(String(all))}`, first < delivered && `${part(first)} at the first attempt`].filter(Boolean) };
}

/** The column of `rateCell`. */
export const RATE = { name: "Delivered, 7 days" };

/** The cell that shows how many deliveries succeeded. */
export function rateCell(webhook) {
  const { words, notes } = successRate(webhook);
  return h("span", { class: "cell" }, words, ...notes.map((note) => h("span", { class: "under" }, note)));
}

/** The cell that shows the health of a webhook, with `more` notes. */
export function conditionCell(webhook, now, more = []) {
  const { words, kind, notes } = condition(webhook, now);
  return h("span", { class: "cell" }, h("span", { class: `tag ${kind}`.trim(), "data-state": webhook.state }, words), ...[...notes, ...more].map((note) => h("span", { class: "under" }, note)));
}
