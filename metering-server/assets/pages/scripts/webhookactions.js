// The actions on a webhook, each in a dialog.

import { callApi } from "/assets/api.js";
import { formDialog, issued } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { KINDS } from "/assets/eventkinds.js";
import { boxes, field } from "/assets/field.js";
import { problem } from "/assets/tries.js";
import { target } from "/assets/webhookhealth.js";

const GRACE = [["86400", "1 day"], ["604800", "1 week"], ["3600", "1 hour"], ["0", "Not at all"]];

/** The actions of `tab`: `secret()` is the key of this visit, and `changed(id)` is called after a change. `show(webhook)` opens its deliveries. */
export class WebhookActions {
  constructor(tab) {
    this.tab = tab;
  }

  create() {
    const { tab } = this;
    formDialog({
      title: "New webhook",
      fields: terms(),
      confirm: "Create webhook",
      explain,
      problemOf: (error) => problem(error, "The webhook may have been created. If it is in the list, rotate it to get a secret."),
      send: ({ url, events }) => callApi("/webhooks", { method: "POST", key: tab.secret(), body: { url, events: allIfNone(events) } }),
      done: ({ secret, data }) => showSecret("The webhook's secret", secret, () => tab.changed(data.id)),
    });
  }

  change(webhook) {
    const { tab } = this;
    formDialog({
      title: "Change webhook",
      fields: terms(webhook),
      confirm: "Save changes",
      explain,
      send: ({ url, events }) => patch(tab, webhook, { ...(url !== webhook.url && { url }), ...(differ(events, webhook.events) && { events: allIfNone(events) }) }),
      done: () => tab.changed(webhook.id),
    });
  }

  rotate(webhook) {
    const { tab } = this;
    formDialog({
      title: "Rotate the secret",
      about: [h("p", { class: "soft" }, "Requests to ", h("span", { class: "break" }, webhook.url), " are signed with a new secret. For some time they are also signed with the old one, so that you can replace it without losing events.")],
      fields: [field({ name: "grace_seconds", label: "Also sign with the old secret", options: GRACE, value: "86400", hint: "Choose “Not at all” if someone else knows the old one." })],
      confirm: "Rotate secret",
      problemOf: (error) => problem(error, "The secret may have been replaced. Try again to get another one."),
      send: ({ grace_seconds: seconds }) => callApi(`${pathOf(webhook)}/rotate`, { method: "POST", key: tab.secret(), body: { grace_seconds: Number(seconds) } }),
      done: ({ secret }) => showSecret("The webhook's new secret", secret, () => tab.changed(webhook.id)),
    });
  }

  /** Sends a test event, and shows its delivery. */
  async test(webhook) {
    await callApi(`${pathOf(webhook)}/test`, { method: "POST", key: this.tab.secret() });
    await this.tab.show(webhook, { follow: true });
  }

  disable(webhook) {
    const { tab } = this;
    formDialog({
      title: "Switch off the webhook",
      about: [h("p", {}, h("span", { class: "break" }, target(webhook)), ": events that happen from now on are not sent. Pending ones are sent when you switch it on again.")],
      confirm: "Switch off",
      danger: true,
      send: () => patch(tab, webhook, { disabled: true }),
      done: () => tab.changed(webhook.id),
    });
  }

  /** Needs no dialog: it does no harm. */
  async enable(webhook) {
    await patch(this.tab, webhook, { disabled: false });
    await this.tab.changed(webhook.id);
  }

  remove(webhook) {
    const { tab } = this;
    formDialog({
      title: "Delete the webhook",
      about: [h("p", {}, h("span", { class: "break" }, target(webhook)), ": nothing more is sent, and the list of its deliveries is deleted. This cannot be undone.")],
      confirm: "Delete webhook",
      danger: true,
      send: () => callApi(pathOf(webhook), { method: "DELETE", key: tab.secret() }),
      done: () => tab.changed(null),
    });
  }
}

const pathOf = ({ id }) => `/webhooks/${encodeURIComponent(id)}`;
const patch = (tab, webhook, body) => callApi(pathOf(webhook), { method: "PATCH", key: tab.secret(), body });
/** Problems with the URL are whole sentences. */
const explain = (one, text) => (one.name === "url" ? `${text[0].toUpperCase()}${text.slice(1)}.` : `${one.label} ${text}.`);
/** On the wire, null means all kinds. */
const allIfNone = (events) => (events.length > 0 ? events : null);
const differ = (one, other) => [...one].sort().join() !== [...other].sort().join();

function terms(webhook = null) {
  return [
    field({ name: "url", label: "URL", value: webhook?.url, type: "url", class: "mono", inputmode: "url", hint: "https only, and reachable from the internet.", check: (text) => (/^https:\S+$/i.test(text) ? "" : "Enter a URL that starts with https") }),
    boxes({ name: "events", label: "Events", hint: "Choose none to get all of them, including those that later versions add.", options: KINDS.map(([kind, hint]) => [kind, kind, hint]), value: webhook?.events ?? [] }),
  ];
}

function showSecret(title, secret, done) {
  const words = [h("strong", {}, "Save it now: it is shown only once. "), "Your server needs it to verify signatures; the Standard Webhooks libraries take it as it is."];
  issued({ title, words, text: secret, done });
}
