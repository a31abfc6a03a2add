// Child accounts: those of the account's own customers, with their balances. The dialogs move credits, change limits, replace
// keys and close accounts.

import { callApi, sentence } from "/assets/api.js";
import { toMinute } from "/assets/days.js";
import { group, plural } from "/assets/decimal.js";
import { formDialog, issued } from "/assets/dialog.js";
import { busy, h } from "/assets/dom.js";
import { checks, field } from "/assets/field.js";
import { figure } from "/assets/figure.js";
import { menuButton } from "/assets/menu.js";
import { allowed, may } from "/assets/rights.js";
import { table } from "/assets/table.js";
import { Tries, problem } from "/assets/tries.js";

const PATH = "/accounts";
/** How many accounts to request at once. */
const PAGE = 100;
const COLUMNS = [{ name: "Account", head: true }, { name: "Balance", number: true }, { name: "Used", number: true }, { name: "Rate limits" }, { name: "Actions" }];
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Fills `section`, and shows it unless this key may not see child accounts. `key()` is the key or session of this visit,
 * and `here()` says whether its user is still on the page. `moved()` is called when the account's own balance has changed.
 */
export const showChildren = (section, visit) => new Children(section, visit).load();

class Children {
  #section;
  #visit;
  #children = [];
  #next = null;
  #search = "";

  constructor(section, visit) {
    this.#section = section;
    this.#visit = visit;
    this.place = h("div", {});
    this.status = h("div", { role: "alert" });
  }

  /** Loads and shows the accounts: at least as many as were shown. */
  async load() {
    try {
      const shown = this.#children.length;
      let [children, next] = await this.#part(null);
      while (next && children.length < shown) [children, next] = await this.#part(next, children);
      if (!this.#visit.here()) return;
      [this.#children, this.#next] = [children, next];
      this.#draw();
    } catch (error) {
      if (!this.#visit.here()) return;
      this.#section.hidden = error.code === "key_scope";
      this.#fill([], [h("p", { class: "bad", role: "alert" }, sentence(error))]);
    }
  }

  /** Shows the accounts after a change. The focus moves to the menu of the account with this id. */
  async #changed(id) {
    if (!this.#visit.here()) return;
    this.#visit.moved?.();
    await this.load();
    (this.#section.querySelector(`[data-actions="${id}"] button`) ?? this.#section.querySelector("button"))?.focus();
  }

  #fill(action, content) {
    this.#section.querySelector("#children-action").replaceChildren(...action);
    this.#section.querySelector("#children-list").replaceChildren(...content);
  }

  #draw() {
    this.#section.hidden = false;
    const create = h("button", { class: "button button-quiet button-small", type: "button", id: "new-child", on: { click: () => this.#create() } }, "New child account");
    const about = h("p", { class: "soft" }, "Accounts of your own customers, each with keys, a balance, limits and statements of its own. You fill them with your credits; what they buy themselves stays theirs.");
    this.#fill(allowed("own", create), [about, this.status, this.#children.length > 1 && this.#finder(), this.place].filter(Boolean));
    this.#list();
  }

  #list() {
    const text = this.#search.trim().toLowerCase();
    const found = this.#children.filter(({ agent_name: name, org_id: id }) => name.toLowerCase().includes(text) || id.toLowerCase().includes(text));
    const columns = may("own") ? COLUMNS : COLUMNS.slice(0, -1);
    const words = text ? "No account has this name or id." : "None yet.";
    const list = found.length > 0 ? table("Child accounts", columns, found.map((child) => this.#row(child))) : h("p", { class: "soft", role: "status", id: "no-children" }, words);
    this.place.replaceChildren(...[list, this.#next && this.#more()].filter(Boolean));
  }

  #row(child) {
    const { org_id: id, agent_name: name, credit_balance: balance, total_credits_used: used, rate_limits: limits, closed_at: closed } = child;
    const limit = (count, window) => (count === "0" ? `No limit per ${window}` : `${group(count)} a ${window}`);
    const cells = [
      [name, closed && [" ", h("span", { class: "tag" }, `closed ${toMinute(closed)}`)], h("code", { class: "under" }, id)].flat().filter(Boolean),
      figure(balance),
      figure(used),
      h("span", { class: "cell" }, h("span", {}, limit(limits.requests_per_minute, "minute")), h("span", { class: "under" }, limit(limits.requests_per_day, "day"))),
    ];
    return may("own") ? [...cells, closed ? "" : this.#menu(child)] : cells;
  }

  /** The search field for accounts; searching loads all of them. */
  #finder() {
    const change = ({ currentTarget }) => {
      this.#search = currentTarget.value;
      this.#try(async () => {
        while (this.#next) [this.#children, this.#next] = await this.#part(this.#next, this.#children);
        this.#list();
      });
    };
    return h("div", { class: "chart-choices" }, h("input", { type: "search", id: "search-children", placeholder: "Find by name or id", "aria-label": "Find a child account", value: this.#search, on: { input: change } }));
  }

  #menu(child) {
    const item = (action, label, work, danger = false) => ({ action, label, danger, work });
    return h(
      "span",
      { class: "row-actions", "data-actions": child.org_id },
      menuButton(child.agent_name, [
        item("give", "Give credits", () => this.#move(child, true)),
        item("take", "Take credits back", () => this.#move(child, false)),
        item("limits", "Change limits", () => this.#limit(child)),
        item("rotate", "Replace its keys", () => this.#rotate(child)),
        item("close", "Close", () => this.#close(child), true),
      ]),
    );
  }

  #create() {
    // A retry with the same name returns the same account, so a lost response loses no key.
    const tries = new Tries();
    formDialog({
      title: "New child account",
      about: [h("p", { class: "soft" }, "It has no credits yet, and the rate limits of your account.")],
      fields: [field({ name: "agent_name", label: "Name", maxlength: "64", hint: "Letters, digits, hyphens and underscores.", check: (text) => (NAME.test(text) ? "" : "Use letters, digits, hyphens and underscores.") })],
      confirm: "Create account",
      explain,
      problemOf: (error) => problem(error, "The account may have been created. Try again with the same name: you get the same account."),
      send: (body) => this.#send(PATH, "POST", body, tries),
      done: (issuedChild) => this.#showKey(issuedChild),
    });
  }

  /** Gives credits, or takes them back. */
  #move(child, gives) {
    const tries = new Tries();
    const words = gives ? "They go from your balance to this account." : "At most what you gave, less what you took back. What the account bought itself stays its own.";
    formDialog({
      title: `${gives ? "Give credits to" : "Take credits back from"} ${child.agent_name}`,
      about: [h("p", { class: "soft" }, `${words} It has `, figure(child.credit_balance), ` ${plural(child.credit_balance, "credit")}.`)],
      fields: [field({ name: "credits", label: "Credits", inputmode: "decimal", check: checks.credits })],
      confirm: gives ? "Give credits" : "Take credits back",
      explain,
      problemOf: (error) => problem(error, "The credits may have been moved. Try again with the same amount: they move once."),
      send: ({ credits }) => this.#send(`${pathOf(child)}/credits`, "POST", { credits: gives ? credits : `-${credits}` }, tries),
      done: () => this.#changed(child.org_id),
    });
  }

  #limit(child) {
    const { requests_per_minute: minute, requests_per_day: day } = child.rate_limits;
    const count = (name, label, value) => field({ name, label, value, inputmode: "numeric", hint: "0 for no limit. At most that of your account.", check: checks.whole });
    formDialog({
      title: `Limits of ${child.agent_name}`,
      fields: [count("requests_per_minute", "Requests a minute", minute), count("requests_per_day", "Requests a day (UTC)", day), count("tokens_per_minute", "Tokens a minute", child.tokens_per_minute)],
      confirm: "Save limits",
      problemOf: (error) => {
        const { rate_limits: limits, tokens_per_minute: tokens } = error.fields ?? {};
        if (limits) return `The limits ${limits}.`;
        return tokens ? `The limit on tokens ${tokens}.` : sentence(error);
      },
      send: (values) => {
        const { tokens_per_minute: tokens, ...limits } = Object.fromEntries(Object.entries(values).map(([name, text]) => [name, Number(text)]));
        return this.#send(pathOf(child), "PATCH", { rate_limits: limits, tokens_per_minute: tokens });
      },
      done: () => this.#changed(child.org_id),
    });
  }

  #rotate(child) {
    formDialog({
      title: `Replace the keys of ${child.agent_name}`,
      about: [h("p", {}, "Its first key stops working immediately, and so does every key of it that could manage keys. You get a new first key.")],
      confirm: "Replace keys",
      danger: true,
      problemOf: (error) => problem(error, "The keys may have been replaced. Try again to get a new one."),
      send: () => this.#send(`${pathOf(child)}/rotate`, "POST"),
      done: (issuedChild) => this.#showKey(issuedChild),
    });
  }

  #close(child) {
    formDialog({
      title: `Close ${child.agent_name}`,
      about: [h("p", {}, "Its keys stop working, and its ", figure(child.credit_balance), ` ${plural(child.credit_balance, "credit")} come back to you. This cannot be undone. Its records are kept.`)],
      confirm: "Close account",
      danger: true,
      send: () => this.#send(pathOf(child), "DELETE"),
      done: () => this.#changed(null),
    });
  }

  #showKey({ api_key: key, data }) {
    const words = [h("strong", {}, "Save it now: it is shown only once. "), "Pass it on to whoever uses the account."];
    issued({ title: `The first key of ${data.agent_name}`, words, text: key, done: () => this.#changed(data.org_id) });
  }

  #send(path, method, body, tries) {
    return callApi(path, { method, key: this.#visit.key(), body, headers: tries ? { "Idempotency-Key": tries.keyOf(body) } : {} });
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
    const more = h("button", { class: "button button-quiet button-small table-more", type: "button", id: "more-children" }, "Show more accounts");
    more.addEventListener("click", () =>
      busy(more, () =>
        this.#try(async () => {
          [this.#children, this.#next] = await this.#part(this.#next, this.#children);
          this.#list();
        }),
      ),
    );
    return more;
  }

  /** The next part of the list, and the cursor of the part after it. */
  async #part(after, known = []) {
    const from = after ? `&after=${encodeURIComponent(after)}` : "";
    const { data, next } = await callApi(`${PATH}?limit=${PAGE}${from}`, { key: this.#visit.key() });
    return [[...known, ...data], next];
  }
}

const pathOf = ({ org_id: id }) => `${PATH}/${encodeURIComponent(id)}`;
const explain = (one, text) => `${one.label} ${text}.`;
