// The Keys tab: the key of this visit and its child keys.

import { callApi, sentence } from "/assets/api.js";
import { busy, h } from "/assets/dom.js";
import { guideLink } from "/assets/guidelink.js";
import { KeyActions } from "/assets/keyactions.js";
import { openKeyPanel } from "/assets/keypanel.js";
import { keyTable } from "/assets/keyrow.js";
import { ORDERS, treeOf } from "/assets/keytree.js";
import { menuButton, openMenu } from "/assets/menu.js";
import { allowed, may, mayGive, whyNot } from "/assets/rights.js";

/** How many keys to request at once. */
const PAGE = 50;

/**
 * Fills a panel. `secret()` is the secret of this visit, and `here()` says whether its user is still on the page.
 * `rotated(secret)` is called when it is replaced, `ended()` when it no longer works, and `unfinished()` when the
 * response to its rotation may be missing, and again when that is resolved.
 */
export class KeysTab {
  #panel;
  #visit;
  #keys = [];
  #next = null;
  /** The service's clock minus this computer's, in milliseconds. */
  #skew = 0;
  /** The order of the keys, and the search text. */
  #view = { order: "created", search: "" };

  constructor(panel, visit) {
    this.#panel = panel;
    this.#visit = visit;
    this.own = null;
    this.actions = new KeyActions(this);
    this.secret = () => visit.secret();
    this.now = () => new Date(Date.now() + this.#skew);
    this.place = h("div", {});
  }

  rotated(secret) {
    this.#visit.rotated(secret);
  }

  ended() {
    this.#visit.ended();
  }

  unfinished() {
    this.#visit.unfinished();
  }

  /** Loads and shows the keys: at least as many as were shown. */
  async load() {
    const secret = this.secret();
    const late = () => !this.#visit.here() || this.secret() !== secret;
    if (!this.own) this.#panel.replaceChildren(h("p", { class: "status", role: "status" }, "Loading …"));
    try {
      const { data: own, date } = await callApi("/keys/current", { key: secret });
      const shown = this.#keys.length;
      let [keys, next] = [[own], null];
      if (own.scopes.includes("manage")) {
        [keys, next] = await part(secret, null);
        while (next && keys.length < shown) [keys, next] = await part(secret, next, keys);
      }
      if (late()) return;
      // A member can give keys no more rights than the role has.
      this.own = { ...own, scopes: own.scopes.filter(mayGive) };
      this.#skew = date.getTime() - Date.now();
      [this.#keys, this.#next] = [keys, next];
      this.#draw();
    } catch (error) {
      if (late()) return;
      if (error.code === "unauthorized") {
        this.ended();
        return;
      }
      const again = h("button", { class: "button button-quiet button-small", type: "button", on: { click: () => this.load() } }, "Try again");
      this.#panel.replaceChildren(h("div", { class: "notice notice-bad", role: "alert" }, h("p", {}, sentence(error)), h("div", { class: "actions" }, again)));
    }
  }

  /** All keys. */
  async all() {
    const secret = this.secret();
    let [keys, next] = [this.#keys, this.#next];
    while (next) [keys, next] = await part(secret, next, keys);
    return keys;
  }

  /** Shows the keys after a change. The focus moves to the menu of the key with this id. */
  async changed(id) {
    if (!this.#visit.here()) return;
    await this.load();
    const button = id && this.#panel.querySelector(`[data-actions="${id}"] button`);
    (button || this.#panel.querySelector("#new-key"))?.focus();
  }

  #draw() {
    const manages = this.own.scopes.includes("manage");
    const create = h("button", { class: "button", type: "button", id: "new-key", on: { click: () => this.actions.create() } }, "New key");
    const about = manages
      ? h("p", { class: "soft" }, "Give each program a key of its own, with a budget and no more than it needs. A key sees and changes only itself and its child keys. ", guideLink("keys", "How keys work"), ", and ", guideLink("rate-limits#limits-of-a-key", "how their rate limits work"), ".")
      : h("p", { class: "notice", id: "keys-no-scope" }, !may("develop") ? whyNot("develop") : "You see only the key that you signed in with, because it does not have the scope manage. Sign in with a key that has it to see, create and change keys.");
    const focused = where(this.#panel);
    const reopen = openMenu(this.#panel);
    this.#panel.replaceChildren(
      h(
        "section",
        { "aria-labelledby": "keys-title", class: "stack-gap", id: "keys" },
        h("div", { class: "section-head" }, h("h2", { id: "keys-title" }, "Keys"), manages ? create : ""),
        about,
        this.status = h("div", { role: "alert" }),
        ...this.#keys.filter(({ state }) => state === "leaked").map((key) => this.#leak(key)),
        this.#keys.length > 1 && this.#finder(),
        this.place,
        h("p", { class: "soft hint" }, "Used is in credits: in the current period for a key with a budget (child keys included), in total for one without. All times are UTC, and so are days and months."),
      ),
    );
    this.#list();
    if (focused) this.#panel.querySelector(focused)?.focus({ preventScroll: true });
    reopen();
  }

  #list() {
    const tree = treeOf(this.#keys, this.#view);
    const found = this.#view.search && h("p", { class: "soft", role: "status", id: "keys-found" }, tree.length === 0 ? "No key has this name or id." : "");
    const table = keyTable(tree, {
      own: this.own,
      secret: this.secret(),
      now: this.now(),
      open: (key, parents) => this.#open(key, parents),
      actions: (key) => this.#menu(key),
    });
    this.place.replaceChildren(...[tree.length > 0 && table, found, this.#next && this.#more()].filter(Boolean));
  }

  /** The fields that search and order the keys. Both need all of them. */
  #finder() {
    const complete = async () => {
      if (this.#next) [this.#keys, this.#next] = [await this.all(), null];
      this.#list();
    };
    const change = (name, value) => {
      this.#view[name] = value;
      this.#try(complete);
    };
    const search = h("input", { type: "search", id: "search-keys", placeholder: "Find by name or id", "aria-label": "Find a key", value: this.#view.search, on: { input: ({ currentTarget }) => change("search", currentTarget.value) } });
    const order = h("select", { id: "order-keys", "aria-label": "Order of the keys", on: { change: ({ currentTarget }) => change("order", currentTarget.value) } }, ...ORDERS.map(([value, label]) => h("option", { value, selected: value === this.#view.order }, label)));
    return h("div", { class: "chart-choices" }, search, order);
  }

  #leak(key) {
    const rotate = h("button", { class: "button", type: "button", "data-action": "rotate-leaked", on: { click: () => this.actions.rotate(key) } }, "Rotate it", h("span", { class: "quietly-there" }, `: ${key.name}`));
    return h(
      "div",
      { class: "notice notice-bad", "data-leaked": key.id },
      h("p", {}, h("strong", {}, `${key.name} was reported as leaked. `), "Its secret is refused, and so are its child keys."),
      h("p", {}, "Rotate it to get a new secret, and give that to the programs that used it. This deletes its child keys, because the finder may have made them. Then look for calls in the Usage tab that were not yours. If you no longer need the key, delete it."),
      h("div", { class: "actions" }, ...allowed("develop", rotate)),
    );
  }

  #open(key, parents) {
    const children = this.#keys.filter(({ parent_id: parent }) => parent === key.id);
    openKeyPanel(key, { parents, children, now: this.now(), items: this.#items(key) });
  }

  #menu(key) {
    return h("span", { class: "row-actions", "data-actions": key.id }, menuButton(key.name, [{ action: "details", label: "Details", work: () => this.#panel.querySelector(`[data-key="${key.id}"]`).click() }, ...this.#items(key)]));
  }

  /** The actions on a key. The first key cannot be disabled or deleted. */
  #items(key) {
    const isAllowed = key.parent_id === null ? may("own") : may("develop") && key.scopes.every(mayGive);
    if (!isAllowed) return [];
    const { actions } = this;
    const item = (action, label, work, danger = false) => ({ action, label, danger, work: () => this.#try(() => work(key)) });
    const rotate = item("rotate", "Rotate", (one) => actions.rotate(one));
    if (!this.own.scopes.includes("manage")) return [rotate];
    const onOff = key.disabled ? item("enable", "Enable", (one) => actions.enable(one)) : item("disable", "Disable", (one) => actions.disable(one));
    // A leaked key is off until it is rotated.
    const toggle = key.state === "leaked" ? [] : [onOff];
    const unlessFirst = key.parent_id === null ? [] : [...toggle, item("delete", "Delete", (one) => actions.remove(one), true)];
    return [item("change", "Change", (one) => actions.change(one)), rotate, ...unlessFirst];
  }

  async #try(work) {
    this.status.replaceChildren();
    try {
      await work();
    } catch (error) {
      this.status.replaceChildren(h("p", { class: "notice notice-bad" }, sentence(error)));
    }
  }

  #more() {
    const more = h("button", { class: "button button-quiet button-small table-more", type: "button", id: "more-keys" }, "Show more keys");
    more.addEventListener("click", () =>
      busy(more, () =>
        this.#try(async () => {
          const secret = this.secret();
          const [keys, next] = await part(secret, this.#next, this.#keys);
          if (!this.#visit.here() || this.secret() !== secret) return;
          [this.#keys, this.#next] = [keys, next];
          this.#list();
          const grown = this.#panel.querySelector("table");
          grown.tabIndex = -1;
          grown.focus();
        }),
      ),
    );
    return more;
  }
}

/** Where the focus is in a panel, so that it can go back there after a refresh. */
function where(panel) {
  const focus = document.activeElement;
  if (!panel.contains(focus)) return null;
  const menu = focus.closest("[data-actions]")?.dataset.actions;
  return menu ? `[data-actions="${menu}"] button` : focus.id ? `#${focus.id}` : focus.dataset.key ? `[data-key="${focus.dataset.key}"]` : null;
}

/** The next part of the list, and the cursor of the part after it. */
async function part(secret, after, known = []) {
  const from = after ? `&after=${encodeURIComponent(after)}` : "";
  const { data, next } = await callApi(`/keys?limit=${PAGE}${from}`, { key: secret });
  return [[...known, ...data], next];
}
