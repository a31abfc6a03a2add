// What operators look for: one search for everything, what needs attention, and why an account was charged.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage } from "./browser.mjs";
import { enter, shown, visit } from "./console-steps.mjs";
import { LOOKS, look, tabTo } from "./steps.mjs";

const plain = (text) => text.replace(/\s+/g, " ").trim();
const json = (body) => ({ contentType: "application/json", body: JSON.stringify(body) });

/** Searches by the form in the head of the page. */
async function find(page, text) {
  await page.fill("#find-text", text);
  await page.keyboard.press("Enter");
  await page.waitForFunction((wanted) => document.querySelector("#view .lead strong")?.textContent === wanted, text);
  await shown(page);
}

/** Saves the list that is shown. */
async function save(page, selector) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(selector)]);
  return readFileSync(await download.path(), "utf8");
}

const WALLET = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";

/** What needs attention, made up: one of each. */
const needs = (org) => ({
  unpaid: [],
  to_refund: [{ org_id: org, processor: "stripe", processor_id: "pi_1", paid: "10 EUR", at: "2026-11-20T08:00:00.000Z" }],
  usage_sinks: [],
  unclaimed: [
    {
      payment: { chain: "base", chain_id: 8453, tx_hash: `0x${"ab".repeat(32)}`, block_number: 42, mined_at: "2026-11-20T08:00:00.000Z", payer_address: WALLET, recipient: WALLET, token_contract: WALLET, token_symbol: "USDC", amount_atomic: "4750000", amount_human: "4.75", status: "known_payer", state: null, org_ids: [org], quote: null, note: "" },
      seen_at: "2026-11-20T08:01:00.000Z",
      nearest_plan: { plan_id: "starter", label: "Starter", price: "5", difference: "0.25", is_short: true },
      paid_before: [{ org_id: org, plan_id: "pro", plan_label: "Pro", paid: "50 USDC", at: "2026-10-01T00:00:00.000Z" }],
    },
  ],
  unclaimed_count: 1,
  webhooks: [{ org_id: org, webhook: { id: "wh_1", url: "https://example.com/hook", events: [], state: "active", old_secret_expires_at: null, created_at: "2026-11-01T00:00:00.000Z" }, since: "2026-11-20T22:51:00.000Z", attempts: 7, last_status: 500, last_error: "HTTP 500" }],
  running_out: [{ org_id: org, agent_name: "price-watcher", credit_balance: 3, credits_used: 10.5, days_left: 2 }],
  next: { unclaimed: null, webhooks: null, running_out: null },
});

export const consoleSearch = {
  /** Finds accounts by everything that identifies them, a key and a request; a secret is not sent. */
  async consoleSearch(visitor, { token, org, name, email, key, request }) {
    const page = await visitor.window({ expected: [400] });
    await enter(page, token);
    const sent = [];
    page.on("request", (one) => one.url().includes("/admin/search") && sent.push(one.url()));
    for (const secret of ["sk_live_1234567890", ` ${token}`]) {
      await page.fill("#find-text", secret);
      await page.keyboard.press("Enter");
      await page.waitForSelector("#find-text-error:not([hidden])");
      assert.match(await page.innerText("#find-text-error"), /secret of a key|token of an operator/);
      assert.equal(await page.inputValue("#find-text"), "", "it is not left on the page");
    }
    assert.deepEqual(sent, [], "a secret is not sent");
    await checkPage(page, null);
    for (const text of [org, name.slice(0, 5), email.toUpperCase(), key]) {
      await find(page, text);
      assert.deepEqual(await page.locator('[data-found="accounts"] tbody th a').allInnerTexts(), [name], text);
    }
    assert.match(plain(await page.innerText('[data-found="keys"]')), new RegExp(key));
    await find(page, request);
    const facts = async (fact) => plain(await page.innerText(`[data-fact="${fact}"]`));
    assert.deepEqual([await facts("charged"), await facts("refund"), await facts("balance-after")], ["0.25", "1.75", "1.75"]);
    assert.match(await facts("route"), /POST \/chat/);
    assert.equal(await facts("price-version"), "Version 1");
    assert.match(await facts("key"), /key_/);
    assert.match(await facts("accepted"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    await checkPage(page, "console-request");
    const nothing = [
      ["nobody", /No agent's name begins with this/],
      ["nobody@example.com", /No active account has this email/],
      [`0x${"ab".repeat(32)}`, /No payment with this transaction/],
      [`0x${"ab".repeat(20)}`, /No active account belongs to this wallet/],
      ["R-1-ABABABABABABABAB", /No receipt has this number/],
      [`req_${"a".repeat(32)}`, /kept for a day/],
    ];
    for (const [text, words] of nothing) {
      await find(page, text);
      assert.match(await page.innerText(".empty"), words, text);
    }
    await page.fill("#find-text", "0x12");
    await page.keyboard.press("Enter");
    await page.waitForSelector('#view-title:has-text("Could not load this page")');
    assert.match(await page.innerText("#view"), /64 hexadecimal digits/);
    await checkPage(page, null);
  },

  /** The same by the keyboard alone: a slash goes to the search, and the result is an account with its charges. */
  async consoleSearchKeyboard(visitor, { token, org, name }) {
    const page = await visitor.window();
    await enter(page, token);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "find-text");
    await page.keyboard.type(`${name.slice(0, 4)}/`);
    assert.equal(await page.inputValue("#find-text"), `${name.slice(0, 4)}/`, "a slash in a field is a slash");
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-found="accounts"] tbody a');
    await tabTo(page, '[data-found="accounts"] tbody a');
    await page.keyboard.press("Enter");
    await page.waitForSelector("#tab-ledger");
    await tabTo(page, "#tab-ledger");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector("#panel-charges table");
    assert.equal(new URL(page.url()).hash, `#/accounts/${org}?tab=charges`);
    const rows = await page.locator("#panel-charges tbody tr").allInnerTexts();
    assert.match(plain(rows[0]), /Charge POST \/chat.* key_\w+ -0\.25 1\.75 Version 1$/);
    await tabTo(page, "#charges-filter");
    await page.keyboard.type("nothing");
    await page.waitForSelector("#panel-charges .empty");
    await page.reload();
    await page.waitForSelector("#panel-charges table");
    await checkPage(page, null);
  },

  /** The tabs of an account, and files of what they show. */
  async consoleTabs(visitor, { token, org }) {
    const page = await visitor.window();
    await enter(page, token, `accounts/${org}?tab=keys`);
    await page.waitForSelector("#panel-keys table");
    assert.match(plain(await page.innerText("#panel-keys tbody")), /First key sk_live_…\w{4} key_\w+ ACTIVE/i);
    assert.match(await save(page, "#panel-keys [data-download]"), /^id,name,parent_id,state,/);
    await page.click("#tab-charges");
    await page.waitForSelector("#panel-charges table");
    assert.match(await save(page, "#panel-charges [data-download]"), /^time,type,method,path,route,.*\r\n.*,usage,POST,\/chat,/);
    await page.fill("#charges-to", "2020-01-01");
    await page.waitForSelector('#panel-charges .empty:has-text("No charge matches")');
    assert.match(await page.innerText("#charges-found"), /^0 of \d+$/);
    await page.fill("#charges-to", "");
    await page.waitForSelector("#panel-charges table");
    await page.click("#tab-holds");
    await page.waitForSelector("#panel-holds .empty");
    await page.click("#tab-webhooks");
    await page.waitForSelector("#panel-webhooks .empty");
    await page.click("#tab-ledger");
    await page.waitForSelector("#panel-ledger table");
    await page.fill("#filter-to", "2020-01-01");
    await page.waitForSelector('#panel-ledger .empty:has-text("No entry in these days")');
    await page.click("#tab-history");
    await page.waitForSelector("#panel-history .log");
    await page.selectOption("#history-action", "account.grant");
    await page.waitForSelector('#panel-history .empty:has-text("No entry matches")');
    await page.selectOption("#history-action", "account.create");
    await page.waitForSelector('#panel-history [data-action="account.create"]');
    await page.fill("#history-to", "2020-01-01");
    await page.waitForSelector('#panel-history .empty:has-text("No entry matches")');
    await page.click("#tab-payments");
    await page.waitForSelector("#payments-state");
    await checkPage(page, null);
    await visit(page, "Accounts");
    assert.match(await save(page, "#view .list-tools [data-download]"), /^org_id,agent_name,email,/);
    await page.selectOption("#filter-state", "revoked");
    await page.waitForSelector('.empty:has-text("No account matches")');
    assert.equal(new URL(page.url()).hash, "#/accounts?state=revoked");
    await page.reload();
    await shown(page);
    assert.equal(await page.inputValue("#filter-state"), "revoked");
    await visit(page, "Payments");
    await page.selectOption("#filter-state", "final");
    await page.waitForSelector('#credited .empty:has-text("No payment matches")');
    assert.equal(new URL(page.url()).hash, "#/payments?state=final");
    await page.reload();
    await shown(page);
    assert.equal(await page.inputValue("#filter-state"), "final");
    await checkPage(page, null);
  },

  /** With an empty store nothing needs attention, every list says that it is empty, and nothing is found. */
  async consoleEmpty(visitor, { token }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await enter(page, token);
      await page.waitForSelector("#no-attention");
      assert.equal(await page.innerText("#attention p"), "Nothing needs attention.");
      await page.waitForSelector("#sold-change:not(:empty)");
      assert.match(plain(await page.innerText(".console-tiles")), /Same as the 30 days before/);
      await checkPage(page, null);
      for (const view of ["Accounts", "Payments", "Plans", "Catalogue", "Price versions", "Audit log", "Operators"]) {
        await visit(page, view);
        await checkPage(page, null);
      }
      await find(page, "anything");
      await page.waitForSelector(".empty");
      await checkPage(page, null);
    }
  },

  /** Each item that needs attention, and the links to the pages that solve it. */
  async consoleAttention(visitor, { token, org }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await page.route("**/admin/attention*", (route) => route.fulfill(json(needs(org))));
      await page.route("**/metrics", async (route) => {
        const soon = Math.floor(Date.now() / 1_000) + 86_400;
        await route.fulfill({ contentType: "text/plain", body: `metering_tls_certificate_expiry_timestamp_seconds ${soon}\nmetering_chain_source_up{chain_id="8453",source="2"} 0\n` });
      });
      await enter(page, token);
      await page.waitForSelector('[data-attention="certificate"]');
      await page.waitForSelector('[data-attention="runway"]');
      const words = async (kind) => plain(await page.innerText(`[data-attention="${kind}"]`));
      assert.match(await words("payment"), /^Payment 4\.75 USDC on base, 2026-11-20 08:00:00 UTC, 0\.25 USDC short of Starter\. This wallet paid 50 USDC for Pro before, on 2026-10-01, for org_\w+\. Assign it/i);
      assert.match(await words("webhook"), /https:\/\/example\.com\/hook fails since 2026-11-20 22:51:00 UTC: HTTP 500, 7 attempts\. Its deliveries/i);
      assert.match(await words("refund"), /^Refund 10 EUR, payment pi_1 at stripe, was taken on 2026-11-20 08:00:00 UTC for an account that is revoked\./i);
      assert.match(await words("runway"), /price-watcher in about 2 days: 3 credits left, 10\.5 used in 7 days\./);
      assert.match(await words("source"), /RPC source 2 of chain 8453 does not respond/);
      await checkPage(page, `console-attention-${look(options)}`);
      assert.equal(await page.getAttribute('[data-attention="payment"] a:last-of-type', "href"), "#/payments?chain=base&from_block=42&to_block=42");
      assert.equal(await page.locator('[data-attention="runway"]').count(), 1);
      await page.click('[data-attention="webhook"] a');
      await page.waitForSelector("#panel-webhooks .empty");
      assert.equal(await page.getAttribute("#tab-webhooks", "aria-selected"), "true");
      // More than a few of a kind are counted, with a link to all.
      const [many, { running_out: [runway], ...others }] = [7, needs(org)];
      await page.unroute("**/admin/attention*");
      await page.route("**/admin/attention*", (route) => route.fulfill(json({ ...others, running_out: Array(many).fill(runway) })));
      await visit(page, "Overview");
      await page.waitForSelector('[data-attention="runway"]:has-text("2 more.")');
      await page.click('[data-attention="runway"] a[href="#/attention"]');
      await page.waitForFunction((count) => document.querySelectorAll('[data-attention="runway"]').length === count, many);
      await shown(page);
      assert.equal(await page.innerText("#view-title"), "All that needs attention");
      assert.equal(await page.locator('a[href="#/attention"]').count(), 0);
      await checkPage(page, null);
      // Lists that the service sends in pages are read page by page.
      await page.unroute("**/admin/attention*");
      await page.route(/\/admin\/attention(\?|$)/, (route) => {
        const after = new URL(route.request().url()).searchParams.get("after");
        const next = { ...others.next, running_out: after ? null : "2.10.org" };
        return route.fulfill(json({ ...others, running_out: [{ ...runway, agent_name: after ?? "first" }], next }));
      });
      const held = [];
      await page.route("**/admin/health", (route) => held.push(route));
      await visit(page, "Overview");
      await page.waitForSelector('[data-attention="runway"]:has-text("There may be more.")');
      await page.click('[data-attention="runway"] a[href="#/attention"]');
      await page.waitForSelector('[data-more="running_out"]');
      await checkPage(page, null);
      await page.press('[data-more="running_out"]', "Enter");
      await page.waitForSelector('[data-attention="runway"]:has-text("2.10.org"):focus');
      assert.equal(await page.locator('[data-attention="runway"]').count(), 2);
      assert.equal(await page.locator("[data-more]").count(), 0);
      // What arrives later adds its items and does not take the focus away.
      await Promise.all(held.map((route) => route.continue()));
      await page.waitForSelector('#attention [role="status"]', { state: "detached" });
      assert.equal(await page.locator('[data-attention="runway"]:focus').count(), 1);
    }
  },
};
