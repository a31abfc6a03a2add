// The WEBHOOKS tab: where the account's events are sent, and their deliveries.

import { callApi, sentence } from "/assets/api.js";
import { toMinute } from "/assets/days.js";
import { Deliveries } from "/assets/deliveries.js";
import { h } from "/assets/dom.js";
import { menuButton, openMenu } from "/assets/menu.js";
import { may, whyNot } from "/assets/rights.js";
import { table } from "/assets/table.js";
import { WebhookActions } from "/assets/webhookactions.js";
import { RATE, conditionCell, isMail, rateCell, target } from "/assets/webhookhealth.js";

const COLUMNS = [{ name: "Webhook", head: true }, { name: "State" }, RATE, { name: "Events" }, { name: "Actions" }];

/** Fills a panel. `secret()` is the key of this visit, and `here()` says whether its user is still on the page. `ended()` is called when the key no longer works. */
export class WebhooksTab {
  #panel;
  #visit;
  #webhooks = null;
  #now = new Date();
  #manages = false;
  #isFirst = false;
  #deliveries = null;

  constructor(panel, visit) {
    this.#panel = panel;
    this.#visit = visit;
    this.actions = new WebhookActions(this);
    this.secret = () => visit.secret();
  }

  /** Loads and shows the webhooks, and the deliveries that were open. */
  async load() {
    const secret = this.secret();
    const late = () => !this.#visit.here() || this.secret() !== secret;
    if (!this.#webhooks) this.#panel.replaceChildren(h("p", { class: "status", role: "status" }, "Loading …"));
    try {
      const [{ data: own }, { data, date }] = await Promise.all([callApi("/keys/current", { key: secret }), callApi("/webhooks", { key: secret })]);
      if (late()) return;
      this.#manages = own.scopes.includes("manage") && may("develop");
      this.#isFirst = own.parent_id === null && may("develop");
      [this.#webhooks, this.#now] = [data, date];
      this.#draw();
      const shown = this.#deliveries && data.find(({ id }) => id === this.#deliveries.webhook.id);
      if (shown) this.#openDeliveries(shown, this.#deliveries);
      else this.end();
    } catch (error) {
      if (late()) return;
      if (error.code === "unauthorized") {
        this.#visit.ended();
        return;
      }
      const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => this.load() } }, "Try again");
      this.#panel.replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again)));
    }
  }

  /** Shows the webhooks after a change. The focus moves to the menu of the webhook with this id. */
  async changed(id) {
    if (!this.#visit.here()) return;
    await this.load();
    const button = id && this.#panel.querySelector(`[data-actions="${id}"] button`);
    (button || this.#panel.querySelector("#new-webhook"))?.focus();
  }

  /**
   * Shows the deliveries to a webhook; with `follow`, until the newest has arrived. The focus moves to their heading.
   */
  async show(webhook, { follow = false } = {}) {
    if (!this.#visit.here()) return;
    // A test is shown without filters.
    this.#openDeliveries(webhook, follow ? {} : this.#deliveries);
    this.#place.querySelector("h2").focus();
    await (follow ? this.#deliveries.follow() : this.#deliveries.loaded);
  }

  /** Stops what still loads. */
  end() {
    this.#deliveries?.end();
    this.#deliveries = null;
  }

  get #place() {
    return this.#panel.querySelector("#deliveries-place");
  }

  #openDeliveries(webhook, filters) {
    const { state, kind } = filters ?? {};
    this.end();
    this.#deliveries = new Deliveries(this.#place, webhook, { key: this.secret(), here: () => this.#visit.here(), manages: this.#manages, state, kind });
  }

  #draw() {
    const create = h("button", { class: "button", type: "button", id: "new-webhook", on: { click: () => this.actions.create() } }, "New webhook");
    const reopen = openMenu(this.#panel);
    const none = h("p", { class: "soft", id: "no-webhooks" }, this.#isFirst ? "None yet." : "The account has none.");
    this.#panel.replaceChildren(
      h(
        "section",
        { "aria-labelledby": "webhooks-title", class: "stack-gap", id: "webhooks" },
        h("div", { class: "section-head" }, h("h2", { id: "webhooks-title" }, "Webhooks"), h("p", { class: "soft" }, "Times are UTC"), this.#isFirst ? create : ""),
        h("p", { class: "soft" }, "Webhooks send events to your server: a low balance, a payment, a new key. Requests are signed as Standard Webhooks specifies, and retried for three days until your server responds with a 2xx status. ", h("a", { href: "/docs/guides/webhooks#verify-the-signature" }, "How to verify them"), "."),
        this.#isFirst ? "" : h("p", { class: "notice", id: "webhooks-not-first" }, may("develop") ? "Only the account's first key can create and change webhooks. Sign in with it to do so." : whyNot("develop")),
        this.status = h("div", { role: "alert" }),
        this.#webhooks.length === 0 ? none : table("Webhooks", COLUMNS, this.#webhooks.map((webhook) => this.#row(webhook))),
      ),
      h("div", { id: "deliveries-place" }),
    );
    reopen();
  }

  #row(webhook) {
    const { id, events, created_at: created, old_secret_expires_at: old } = webhook;
    return [
      [h("button", { class: "link-button webhook-url", type: "button", "data-webhook": id, "aria-label": `Deliveries to ${target(webhook)}`, on: { click: () => this.show(webhook) } }, target(webhook)), h("code", { class: "under" }, id), h("span", { class: "under" }, `since ${toMinute(created)}`)],
      conditionCell(webhook, this.#now, old ? [`Old secret until ${toMinute(old)}`] : []),
      rateCell(webhook),
      events.length === 0 ? "All" : h("span", { class: "cell" }, ...events.map((event) => h("code", {}, event))),
      this.#menu(webhook),
    ];
  }

  /** The actions on a webhook. Mail goes to the account's own address, and is not signed. */
  #menu(webhook) {
    const { actions } = this;
    const item = (action, label, work, danger = false) => ({ action, label, danger, work: () => this.#try(() => work(webhook)) });
    const isOn = webhook.state === "active";
    const test = isOn && this.#manages ? [item("test", "Test", (one) => actions.test(one))] : [];
    const terms = [item("change", "Change", (one) => actions.change(one)), item("rotate", "Rotate secret", (one) => actions.rotate(one))];
    const manage = [
      ...(isMail(webhook) ? [] : terms),
      isOn ? item("disable", "Switch off", (one) => actions.disable(one)) : item("enable", "Switch on", (one) => actions.enable(one)),
      item("delete", "Delete", (one) => actions.remove(one), true),
    ];
    const items = [item("deliveries", "Deliveries", (one) => this.show(one)), ...test, ...(this.#isFirst ? manage : [])];
    return h("span", { class: "row-actions", "data-actions": webhook.id }, menuButton(target(webhook), items));
  }

  async #try(work) {
    this.status.replaceChildren();
    try {
      await work();
    } catch (error) {
      this.status.replaceChildren(h("p", { class: "notice notice-bad" }, sentence(error)));
    }
  }
}
