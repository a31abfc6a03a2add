// The actions on a key and its child keys, each in a dialog.

import { callApi } from "/assets/api.js";
import { formDialog, issued } from "/assets/dialog.js";
import { h } from "/assets/dom.js";
import { field } from "/assets/field.js";
import { keyForm } from "/assets/keyform.js";
import { rotateKey } from "/assets/rotation.js";
import { forgetRotation } from "/assets/session.js";
import { firstCall } from "/assets/secret.js";
import { Tries, problem } from "/assets/tries.js";

const GRACE = [["0", "Not at all"], ["3600", "1 hour"], ["86400", "1 day"]];

/**
 * The actions of `tab`: `secret()` is the secret of this visit, `own` its key, `now()` the service's time, and
 * `changed(id)` is called after a change. `rotated(secret)` is called when the secret of this visit is replaced, and
 * `ended()` when it no longer works. `unfinished()` is called when the response to its rotation may be missing, and
 * again when that is resolved.
 */
export class KeyActions {
  constructor(tab) {
    this.tab = tab;
  }

  /** Makes a key. */
  create() {
    const { tab } = this;
    // A retry with the same values returns the same key, so a lost response loses no key.
    const tries = new Tries();
    keyForm({
      own: tab.own,
      now: memo(tab.now),
      title: "New key",
      confirm: "Create key",
      problemOf: (error) => problem(error, "The key may have been created. Try again with the same values: you get the same key."),
      send: (body) => callApi("/keys", { method: "POST", key: tab.secret(), body, headers: { "Idempotency-Key": tries.keyOf(body) } }),
      done: ({ key, data }) => showSecret(`The key ${data.name}`, key, data, () => tab.changed(data.id)),
    });
  }

  change(key) {
    const { tab } = this;
    keyForm({
      key,
      own: tab.own,
      now: memo(tab.now),
      title: `Change ${key.name}`,
      confirm: "Save changes",
      send: (body) => callApi(pathOf(key), { method: "PATCH", key: tab.secret(), body }),
      done: () => tab.changed(key.id),
    });
  }

  disable(key) {
    const { tab } = this;
    const isOwn = key.id === tab.own.id;
    formDialog({
      title: `Disable ${key.name}`,
      about: [
        h("p", {}, "Requests with it, and with its child keys, are refused from now on. ", isOwn ? "" : "You can enable it again."),
        isOwn && h("p", {}, h("strong", {}, "You are signed in with this key. "), "Only a parent key can enable it again."),
      ].filter(Boolean),
      confirm: "Disable key",
      danger: true,
      send: () => callApi(pathOf(key), { method: "PATCH", key: tab.secret(), body: { disabled: true } }),
      done: () => (isOwn ? tab.ended() : tab.changed(key.id)),
    });
  }

  /** Needs no dialog: it does no harm. */
  async enable(key) {
    await callApi(pathOf(key), { method: "PATCH", key: this.tab.secret(), body: { disabled: false } });
    await this.tab.changed(key.id);
  }

  rotate(key) {
    const { tab } = this;
    const isOwn = key.id === tab.own.id;
    const tries = new Tries();
    const leaked = key.state === "leaked";
    // A key without the scope can only replace itself, without a grace period.
    const manages = tab.own.scopes.includes("manage");
    const grace = field({ name: "grace_seconds", label: "The old secret goes on working", options: GRACE, value: "0", hint: "Time to give the new one to your programs." });
    const words = leaked
      ? "The key gets a new secret and can be used again. The leaked one stays refused."
      : "The key gets a new secret. Its name, budget, limits and child keys stay.";
    formDialog({
      title: `Rotate ${key.name}`,
      about: [h("p", { class: "soft" }, words)],
      fields: leaked || !manages ? [] : [grace],
      confirm: "Rotate key",
      problemOf: (error) => {
        tab.unfinished();
        return problem(error, "The secret may have been replaced. Try again: you get the same new one.");
      },
      send: ({ grace_seconds: seconds = "0" }) => {
        // This tab remembers a rotation of its own key until the new secret has arrived, even after a reload.
        if (isOwn && seconds === "0") return rotateKey(tab.secret()).then((secret) => ({ key: secret, data: key }));
        const body = { grace_seconds: Number(seconds) };
        return callApi(`${pathOf(key)}/rotate`, { method: "POST", key: tab.secret(), body, headers: { "Idempotency-Key": tries.keyOf(body) } });
      },
      done: ({ key: secret, data }) => {
        if (isOwn) {
          tab.rotated(secret);
          forgetRotation();
          tab.unfinished();
        }
        showSecret(`The new secret of ${data.name}`, secret, data, () => tab.changed(key.id));
      },
    });
  }

  /** Deletes a key, after showing which others are deleted with it. */
  async remove(key) {
    const { tab } = this;
    const isOwn = key.id === tab.own.id;
    const below = keysBelow(key, await tab.all());
    const stops = below.length === 0
      ? h("p", {}, "It has no child keys.")
      : h("div", { id: "stops-too" }, h("p", {}, h("strong", {}, below.length === 1 ? "This key is deleted with it:" : `These ${below.length} keys are deleted with it:`)), h("ul", {}, ...below.map(({ id, name }) => h("li", {}, name, " ", h("code", {}, id)))));
    formDialog({
      title: `Delete ${key.name}`,
      about: [
        h("p", {}, "Requests with it are refused from now on. This cannot be undone. Its usage stays on record."),
        stops,
        isOwn && h("p", {}, h("strong", {}, "You are signed in with this key. "), "Deleting it signs you out."),
      ].filter(Boolean),
      confirm: "Delete key",
      danger: true,
      send: () => callApi(pathOf(key), { method: "DELETE", key: tab.secret() }),
      done: () => (isOwn ? tab.ended() : tab.changed(null)),
    });
  }
}

const pathOf = ({ id }) => `/keys/${encodeURIComponent(id)}`;

/** All child keys of a key. */
export function keysBelow(key, keys) {
  const found = new Set([key.id]);
  // A key comes after its parent.
  for (const { id, parent_id: parent } of keys) if (found.has(parent)) found.add(id);
  return keys.filter(({ id }) => id !== key.id && found.has(id));
}

function showSecret(title, secret, { scopes }, done) {
  const words = [h("strong", {}, "Save it now: it is shown only once. "), "Programs send it in the header Authorization."];
  issued({ title, words, text: secret, more: scopes.includes("call") ? [firstCall(secret)] : [], done });
}

/** Caches the first result of a function: "in 1 hour" is the same time in every retry. */
function memo(work) {
  let result;
  return () => (result ??= work());
}
