// The webhooks of an account, and their deliveries.

import { act, admin, query } from "/assets/console-api.js";
import { ask } from "/assets/console-dialog.js";
import { filtered } from "/assets/console-filter.js";
import { reload } from "/assets/console-router.js";
import { parts } from "/assets/console-rows.js";
import { isManager } from "/assets/console-session.js";
import { time } from "/assets/console-time.js";
import { readExactly } from "/assets/decimal.js";
import { h } from "/assets/dom.js";
import { pretty } from "/assets/pretty.js";
import { table } from "/assets/table.js";
import { RATE, conditionCell, rateCell } from "/assets/webhookhealth.js";

const PROGRESS = { pending: ["Pending", "tag-warn"], delivered: ["Delivered", "tag-good"], parked: ["Parked", "tag-bad"] };
const WEBHOOKS = [{ name: "Webhook", head: true }, { name: "State" }, RATE, { name: "Events" }, { name: "Created (UTC)" }];
const DELIVERIES = [{ name: "Event", head: true }, { name: "Webhook" }, { name: "State" }, { name: "Attempts", number: true }, { name: "Last attempt (UTC)" }];

/** The webhooks, and the deliveries to all of them or one. */
export async function webhooks({ org_id: id }) {
  const { data } = await admin(`/webhooks${query({ account: id })}`);
  if (data.length === 0) return h("p", { class: "soft empty" }, "The account has no webhook.");
  const urls = new Map(data.map((webhook) => [webhook.id, webhook.url]));
  const fields = [
    { name: "webhook", label: "Webhook", options: [["", "All"], ...urls] },
    { name: "state", label: "State", options: [["", "All"], ...Object.entries(PROGRESS).map(([state, [words]]) => [state, words])] },
  ];
  const deliveries = await filtered({ label: "Deliveries", fields, list: (values) => list(id, values, urls) });
  return h("div", { class: "sections-small" }, table("Webhooks", WEBHOOKS, data.map(webhook)), h("h2", {}, "Deliveries"), ...deliveries);
}

const tag = ([words, kind]) => h("span", { class: `tag ${kind}`.trim() }, words);

function webhook(one) {
  const { id, url, events, created_at: created } = one;
  return [[h("span", { class: "break" }, url), h("code", { class: "under" }, id)], conditionCell(one, new Date()), rateCell(one), events.length === 0 ? "All" : events.join(", "), time(created)];
}

function list(account, values, urls) {
  return parts({
    load: (after) => admin(`/webhooks/deliveries${query({ account, ...values, after, limit: 50 })}`, { read: readDeliveries }),
    empty: values.webhook || values.state ? "No delivery matches." : "Nothing was sent yet.",
    more: "Show older deliveries",
    draw: (items) => table("Deliveries", isManager() ? [...DELIVERIES, { name: "Action" }] : DELIVERIES, items.map((one) => delivery(one, urls))),
    csv: {
      name: `deliveries-${account}`,
      columns: ["id", "webhook_id", "event", "event_at", "state", "attempts", "last_attempt_at", "last_status", "last_error"],
      cells: (one) => [one.id, one.webhook_id, one.event.type, one.event.timestamp, one.state, one.attempts, one.last_attempt_at, one.last_status, one.last_error],
    },
  });
}

/** A part of the list, each delivery with its event as text: with numbers as they are, where the browser can write them. */
function readDeliveries(text) {
  const { data, next } = readExactly(text);
  const exact = (_, value, context) => (typeof value === "number" && JSON.rawJSON ? JSON.rawJSON(context.source) : value);
  const events = JSON.parse(text, exact).data.map(({ event }) => JSON.stringify(event));
  return { items: data.map((one, place) => ({ ...one, payload: events[place] })), next };
}

function delivery(one, urls) {
  const { id, webhook_id: to, event, payload, state, attempts, last_attempt_at: last, last_status: status, last_error: error, next_attempt_at: next } = one;
  const response = error ?? (status ? `Status ${status}` : "");
  const cells = [
    [h("strong", { "data-delivery": id }, event.type), h("span", { class: "under" }, time(event.timestamp)), h("details", { class: "table-details" }, h("summary", {}, "Payload", h("span", { class: "quietly-there" }, ` of delivery ${id}`)), h("pre", { class: "payload", tabindex: "0" }, ...pretty(payload)))],
    h("span", { class: "break" }, urls.get(to) ?? to),
    [tag(PROGRESS[state] ?? [state, ""]), state === "pending" && next && h("span", { class: "under" }, "Next ", time(next))].filter(Boolean),
    attempts,
    last ? [time(last), h("span", { class: error ? "under break bad" : "under" }, response)] : "None yet",
  ];
  return isManager() ? [...cells, resend(one)] : cells;
}

function resend({ id, event }) {
  const label = h("span", { class: "quietly-there" }, ` ${event.type} of ${event.timestamp}`);
  const send = () =>
    ask({
      title: "Send this event again",
      about: [h("p", { class: "soft" }, "Later events of the account wait for it.")],
      confirm: "Send again",
      send: ({ reason }) => act(`/webhooks/deliveries/${id}/resend`, { reason }),
      done: () => reload("The event is sent again."),
    });
  return h("button", { class: "button button-quiet button-small", type: "button", id: `resend-${id}`, on: { click: send } }, "Resend", label);
}
