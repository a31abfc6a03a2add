// The deliveries to a webhook, newest first: their content, attempts, and the webhook's responses.

import { callApi, sentence } from "/assets/api.js";
import { choice } from "/assets/choice.js";
import { toSecond } from "/assets/days.js";
import { busy, h, wait } from "/assets/dom.js";
import { KINDS } from "/assets/eventkinds.js";
import { payload } from "/assets/payload.js";
import { table } from "/assets/table.js";
import { target } from "/assets/webhookhealth.js";

/** How many deliveries to request at once. */
const PAGE = 25;
/** How often, and how many times, to check whether a delivery has arrived. */
const PAUSE = 1_000;
const LOOKS = 10;
/** The status with which a receiver ends its webhook. */
const GONE = 410;
const FILTERS = [["", "All"], ["pending", "Pending"], ["delivered", "Delivered"], ["parked", "Parked"]];
const EVENTS = [["", "All events"], ...[...KINDS.map(([kind]) => kind), "webhook.test"].map((kind) => [kind, kind])];
const STATES = { pending: ["Pending", "tag-warn"], delivered: ["Delivered", "tag-good"], parked: ["Parked", "tag-bad"] };
const COLUMNS = [{ name: "Event", head: true }, { name: "State" }, { name: "Attempts", number: true }, { name: "Last attempt" }];

/** A time to the second, in UTC. */
const second = (text) => h("time", { datetime: text, title: text, class: "whole" }, toSecond(text));

/**
 * Shows the deliveries to `webhook` in `place`. `key` is the key of the visit, `here()` whether its user is still on the
 * page, and `manages` whether the key may resend deliveries. `state` and `kind` are the state and the kind of events that
 * are shown first; empty for all.
 */
export class Deliveries {
  #place;
  #visit;
  #rows = [];
  #next = null;
  #over = new AbortController();

  constructor(place, webhook, { key, here, manages, state = "", kind = "" }) {
    this.#place = place;
    this.#visit = { key, here, manages };
    this.webhook = webhook;
    [this.state, this.kind] = [state, kind];
    this.list = h("div", { id: "deliveries-list" }, h("p", { class: "status", role: "status" }, "Loading …"));
    this.problem = h("div", { role: "alert" });
    const show = (chosen) => {
      Object.assign(this, chosen);
      this.#rows = [];
      this.load();
    };
    const states = choice("State", FILTERS, state, (chosen) => show({ state: chosen }));
    const kinds = h("select", { id: "delivery-events", "aria-label": "Events", on: { change: ({ currentTarget }) => show({ kind: currentTarget.value }) } }, ...EVENTS.map(([value, label]) => h("option", { value, selected: value === kind }, label)));
    place.replaceChildren(
      h(
        "section",
        { "aria-labelledby": "deliveries-title", class: "stack-gap", id: "deliveries" },
        h("div", { class: "section-head" }, h("h2", { id: "deliveries-title", tabindex: "-1" }, "Deliveries"), h("p", { class: "soft" }, "Times are UTC")),
        h("p", { class: "soft webhook-url" }, "To ", target(webhook)),
        h("div", { class: "chart-choices" }, states, kinds),
        this.problem,
        this.list,
        h("p", { class: "soft hint" }, "Events are sent one after the other: while one is retried, later ones wait for it. One that fails for three days is parked: no more retries, unless you resend it. Deliveries are kept for 30 days."),
      ),
    );
    this.loaded = this.load();
  }

  /** Stops what still loads. */
  end() {
    this.#over.abort();
  }

  get #isLate() {
    return this.#over.signal.aborted || !this.#visit.here();
  }

  /** Loads and shows the deliveries: at least as many as were shown. */
  load() {
    return this.#try(async () => {
      const { state, kind } = this;
      const shown = this.#rows.length;
      let [rows, next] = await this.#part(null);
      while (next && rows.length < shown) [rows, next] = await this.#part(next, rows);
      if (this.#isLate || this.state !== state || this.kind !== kind) return;
      [this.#rows, this.#next] = [rows, next];
      this.#draw();
    });
  }

  /** Shows all deliveries, and looks again until the newest was sent once. */
  async follow() {
    await this.loaded;
    for (let looks = 0; looks < LOOKS && !this.#isLate; looks += 1) {
      const [newest] = this.#rows;
      if (newest && (newest.state !== "pending" || newest.last_attempt_at)) return;
      await wait(PAUSE, this.#over.signal);
      if (!this.#isLate) await this.load();
    }
  }

  async #try(work) {
    this.problem.replaceChildren();
    try {
      await work();
    } catch (error) {
      if (this.#isLate) return;
      const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => this.load() } }, "Try again");
      this.problem.replaceChildren(h("div", { class: "notice notice-bad" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again)));
    }
  }

  #draw() {
    const { manages } = this.#visit;
    const rows = this.#rows.map((delivery) => this.#row(delivery));
    const empty = this.state || this.kind ? "No deliveries match." : "No deliveries yet.";
    this.list.replaceChildren(rows.length === 0 ? h("p", { class: "soft", id: "no-deliveries" }, empty) : table("Deliveries", manages ? [...COLUMNS, { name: "Actions" }] : COLUMNS, rows), ...(this.#next ? [this.#more()] : []));
  }

  #row(delivery) {
    const { id, event, state, attempts, last_attempt_at: last, next_attempt_at: next, last_status: status, last_error: error, waits_for: first } = delivery;
    const [words, kind] = STATES[state] ?? [state, ""];
    // Both: "Status 500" is more precise than "not 2xx", and a refused connection has no status.
    const response = [status && `Status ${status}`, error].filter(Boolean).join(": ");
    const waits = first && [`Waits for ${first.type} of `, second(first.timestamp)];
    const due = waits ?? (next && ["Next ", second(next)]);
    const bytes = payload(`/webhooks/${this.webhook.id}/deliveries/${id}`, `${event.type} of ${event.timestamp}`, { responded: Boolean(error && status) && status !== GONE, key: this.#visit.key, here: () => !this.#isLate });
    const result = last ? [second(last), h("span", { class: error ? "under break bad" : "under" }, response)] : [h("span", { class: "soft" }, "None yet")];
    const resend = h("button", { class: "button button-quiet button-small", type: "button", "data-action": "resend" }, state === "pending" ? "Send now" : "Resend", h("span", { class: "quietly-there" }, ` ${event.type} of ${event.timestamp}`));
    resend.addEventListener("click", () => busy(resend, () => this.#resend(delivery)));
    return [
      [h("strong", { "data-delivery": id }, event.type), h("span", { class: "under" }, second(event.timestamp)), h("code", { class: "under break" }, event.id)],
      h("span", { class: "cell" }, h("span", { class: `tag ${kind}`.trim(), "data-state": state }, words), state === "pending" && due && h("span", { class: "under" }, ...due)),
      attempts,
      h("span", { class: "cell" }, ...result, bytes),
      ...(this.#visit.manages ? [h("span", { class: "row-actions", "data-resend": id }, state === "pending" && !last ? "" : resend)] : []),
    ];
  }

  async #resend({ id }) {
    await this.#try(async () => {
      await callApi(`/webhooks/${this.webhook.id}/deliveries/${id}/resend`, { method: "POST", key: this.#visit.key });
      await this.load();
    });
    // The button was redrawn. If the user has moved on, the focus stays there.
    if (!this.#isLate && document.activeElement === document.body) (this.list.querySelector(`[data-resend="${id}"] button`) ?? this.#place.querySelector("h2"))?.focus();
  }

  #more() {
    const more = h("button", { class: "button button-quiet button-small table-more", type: "button", id: "more-deliveries" }, "Show more deliveries");
    more.addEventListener("click", () =>
      busy(more, () =>
        this.#try(async () => {
          const [rows, next] = await this.#part(this.#next, this.#rows);
          if (this.#isLate) return;
          [this.#rows, this.#next] = [rows, next];
          this.#draw();
          const grown = this.list.querySelector("table");
          grown.tabIndex = -1;
          grown.focus();
        }),
      ),
    );
    return more;
  }

  /** The next part of the list, and the cursor of the part after it. */
  async #part(after, known = []) {
    const from = after ? `&after=${encodeURIComponent(after)}` : "";
    const state = this.state ? `&state=${this.state}` : "";
    const kind = this.kind ? `&event=${this.kind}` : "";
    const { data, next } = await callApi(`/webhooks/${this.webhook.id}/deliveries?limit=${PAGE}${state}${kind}${from}`, { key: this.#visit.key });
    return [[...known, ...data], next];
  }
}
