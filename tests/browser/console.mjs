// The operators' console as a page: signing in and out, what a viewer sees, the keyboard, its looks and its weight.

import assert from "node:assert/strict";
import { checkPage, shows, storedData } from "./browser.mjs";
import { enter, shown, visit } from "./console-steps.mjs";
import { LOOKS, call, tabTo } from "./steps.mjs";

const VIEWS = ["Overview", "Accounts", "Payments", "Plans", "Catalogue", "Price versions", "Audit log", "Operators"];
const TABS = ["ledger", "charges", "usage", "keys", "members", "children", "holds", "webhooks", "payments", "history"];
const DAY_MS = 86_400_000;

/** Puts a made-up month into the report, and two chains into the health. */
async function madeUpMonth(page) {
  const exact = (_, value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toFixed(8)) : value);
  await page.route("**/admin/report?*", async (route) => {
    const response = await (await route.fetch()).json();
    const day = (back) => new Date(Date.now() - back * DAY_MS).toISOString().slice(0, 10);
    const by_day = Array.from({ length: 30 }, (_, back) => ({
      day: day(back),
      new_accounts: (back * 7) % 5,
      credits_sold: ((back * 7919) % 5) * 10.5,
      credits_granted: back % 4 === 0 ? 4 : 0,
      usage_events: 9_100 + ((back * 7919) % 5_000),
      credits_used: 9 + ((back * 104_729) % 97) / 8,
    })).reverse();
    const token = { token_contract: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", token_symbol: "USDC" };
    const sales = [
      { chain_id: 8453, plan_id: "starter", ...token, payments: 42, amount_atomic: "210000000", amount_human: "210", credits: 441 },
      { chain_id: 8453, plan_id: "pro", ...token, payments: 3, amount_atomic: "75000000", amount_human: "75", credits: 180 },
      { chain_id: 1, plan_id: "coin", token_contract: `0x${"0".repeat(40)}`, token_symbol: "ETH", payments: 2, amount_atomic: "5000000000000000", amount_human: "0.005", credits: 9 },
    ];
    const routes = ["/mpp/ethPrice/{block_number}", "/mpp/snapshot/allTrades/{block_number}", "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_size}", "/mpp/ethPrice"];
    const top_routes = routes.map((route_template, place) => ({ route_template, http_method: "GET", call_count: 90_000 >> place, credits_used: 150.12345678 / (place + 1) }));
    const names = ["price-watcher", "arbitrage-7", "research", "my-agent", "dashboard", "backtest"];
    const top_accounts = names.map((agent_name, place) => ({ ...response.top_accounts[0], agent_name, usage_events: 70_000 >> place, credits_used: 120.5 / (place + 1) }));
    const refusals = { ...response.refusals, insufficient_credits: 214, rate_limited: 57, unknown_key: 12, repeated: 3 };
    const unreported = {
      since: response.refusals.since,
      routes: [
        { route_template: "/v1/chat/completions", requests: 1_204, in_full: 3, last_at: `${day(0)}T08:01:02.003Z` },
        { route_template: "/v1/images/generations", requests: 4, in_full: 4, last_at: `${day(2)}T18:30:00.000Z` },
      ],
    };
    const json = { ...response, accounts: 318, by_day, sales, top_routes, top_accounts, refusals, unreported };
    await route.fulfill({ body: JSON.stringify(json, exact), headers: { "content-type": "application/json" } });
  });
  await page.route("**/admin/health", async (route) => {
    const response = await (await route.fetch()).json();
    const chains = [
      { chain_id: 8453, name: "base", confirmed_block: 38_123_456, latest_block: 38_123_471, problem: null },
      { chain_id: 1, name: "ethereum", confirmed_block: null, latest_block: null, problem: "the chain did not respond in time" },
    ];
    const wallet = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const gas_wallets = [{ chain_id: 8453, name: "base", wallet, balance: "21000000000000", transactions: "17", is_low: true, problem: null }];
    await route.fulfill({ body: JSON.stringify({ ...response, chains, gas_wallets }), headers: { "content-type": "application/json" } });
  });
}

/** How many pixels of the tabs are out of view. */
const tabsBeyond = (page) => page.locator(".tabs").evaluate((tabs) => document.fonts.ready.then(() => tabs.scrollWidth - tabs.clientWidth));

/** How many lines the head and the menu take. Parts that overlap in height are on the same line; those for screen readers do not count. */
const headLines = (page) =>
  page.locator(".top .mark, .logo > span, #find-text, #who > p, #sign-out, #console-nav a").evaluateAll((parts) => {
    const boxes = parts.map((part) => part.getBoundingClientRect()).filter(({ width }) => width > 1);
    boxes.sort((one, other) => one.top - other.top);
    let [lines, end] = [0, -Infinity];
    for (const { top, bottom } of boxes) {
      if (top >= end) lines += 1;
      end = Math.max(end, bottom);
    }
    return lines;
  });

/** Chooses days that are over, the wrong way round first. */
async function customDays(page) {
  await page.click("[data-choice=custom]");
  await page.waitForSelector("#report-from:focus");
  await page.fill("#report-to", "2020-01-01");
  await page.waitForSelector('#report-days-error:has-text("The first day must not be after the last.")');
  await page.fill("#report-from", "2019-12-01");
  await page.waitForSelector('.lead:has-text("2019-12-01 to 2020-01-01, UTC")');
  await checkPage(page, null);
  await page.click('[data-choice="30"]');
  await page.waitForSelector("#report-from", { state: "detached" });
}

export const operatorsConsole = {
  /** Signs in with wrong tokens and the right one; signs out. The token is not stored anywhere. */
  async consoleSignIn(visitor, { token, service }) {
    const page = await visitor.window({ expected: [401] });
    await page.goto(`${page.base}/console`);
    await page.waitForSelector("#sign-in:not([hidden])");
    assert.deepEqual(page.faults, [], "asking who is signed in is no error");
    assert.equal(await page.getAttribute("#token", "type"), "password");
    assert.ok(await page.isHidden("#console-nav"));
    await checkPage(page, null);
    assert.ok(await page.isHidden("#provider"), "no provider is configured");
    // With a provider: a made-up one, and a browser that was sent back from it.
    const sentBack = await visitor.window();
    let problem = null;
    await sentBack.route("**/admin/oidc", (route) => route.fulfill({ json: { name: "Acme", problem } }));
    await sentBack.goto(`${page.base}/console?sign_in=no_role`);
    await sentBack.waitForSelector('#provider-error:has-text("not among the operators")');
    assert.equal(await sentBack.innerText('#provider-link[href="/admin/oidc/start"]'), "Sign in with Acme");
    assert.ok(!sentBack.url().includes("sign_in"), "a reload does not say it again");
    await checkPage(sentBack, null);
    problem = "It cannot be reached.";
    await sentBack.reload();
    await sentBack.waitForSelector(`#provider-error:has-text("${problem}")`);
    assert.ok(await sentBack.isHidden("#provider-link"));
    const wrong = [["sk_live_1", /starts with opr_/], [`opr_${"x".repeat(43)}`, /not valid/]];
    for (const [text, problem] of wrong) {
      await page.fill("#token", text);
      await page.click("#token-button");
      await page.waitForSelector("#token-error:not([hidden])");
      await page.waitForFunction((pattern) => new RegExp(pattern).test(document.querySelector("#token-error").textContent), problem.source);
      assert.equal(await page.evaluate(() => document.activeElement.id), "token");
    }
    await checkPage(page, null);
    await page.fill("#token", ` ${token}\n`);
    await page.click("#token-button");
    await shown(page);
    assert.equal(await page.innerText("#view-title"), "Overview");
    assert.match(await page.innerText("#who"), /boss\s+manager/);
    const cookies = await page.context().cookies();
    assert.deepEqual(cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite]), [[true, "Strict"]]);
    assert.ok(!(await storedData(page)).includes("opr_") && !(await shows(page, token)), "the token is not kept");
    // Another tab is signed in, and a reload keeps the view.
    const tab = await page.context().newPage();
    await tab.goto(`${page.base}/console#/plans`);
    await tab.waitForSelector('#view-title:has-text("Plans")');
    await tab.reload();
    await tab.waitForSelector('#view-title:has-text("Plans")');
    await page.click("#sign-out");
    await page.waitForSelector("#sign-in:not([hidden])");
    assert.ok(await page.isHidden("#token-error"));
    assert.ok(await page.isHidden("#view"));
    await page.evaluate(() => (location.hash = "#/accounts"));
    assert.ok(await page.isHidden("#view"), "another fragment shows nothing");
    await tab.click('#console-nav >> text="Accounts"');
    await tab.waitForSelector("#sign-in:not([hidden])");
    assert.match(await tab.innerText("#token-error"), /session has ended/);
    for (const path of ["/console", "/admin/session"]) assert.equal((await fetch(service + path)).status, 404, `${path} is not public`);
    await checkPage(page, null);
  },

  /** A viewer reads everything and is offered no action. */
  async consoleViewer(visitor, { token, manager, org }) {
    const buttons = async (page) => {
      const seen = {};
      for (const name of VIEWS) {
        await visit(page, name);
        seen[name] = await page.locator("#view button:not([aria-pressed], [type=submit], [data-download])").allInnerTexts();
      }
      await page.goto(`${page.base}/console#/accounts/${org}`);
      await page.waitForSelector("#figures");
      await page.waitForSelector("#panel-ledger table");
      seen.Account = await page.locator(".page-head button").allInnerTexts();
      return seen;
    };
    const page = await visitor.window();
    await enter(page, token);
    const none = Object.fromEntries([...VIEWS, "Account"].map((name) => [name, []]));
    assert.deepEqual(await buttons(page), none);
    await checkPage(page, null);
    const other = await visitor.window();
    await enter(other, manager);
    const all = await buttons(other);
    assert.deepEqual(all.Account, ["Grant", "Adjust", "Limits", "Rotate key", "Add note", "Revoke", "Erase owner"]);
    assert.deepEqual([all.Accounts, all.Plans], [["New account"], ["New plan"]]);
    assert.equal(all.Operators.length, 3, "a new one, and two to revoke");
  },

  /** Signs in, finds an account and grants credits with the keyboard alone. */
  async consoleKeyboard(visitor, { token }) {
    const page = await visitor.window();
    await page.goto(`${page.base}/console`);
    await page.waitForSelector("#sign-in:not([hidden])");
    assert.equal(await page.evaluate(() => document.activeElement.id), "token", "the token can be typed at once");
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
    await shown(page);
    assert.equal(await page.evaluate(() => document.activeElement.id), "view-title");
    await page.keyboard.press("Tab");
    await tabTo(page, 'a[href="#/accounts"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector('#view-title:has-text("Accounts")');
    await tabTo(page, "#search");
    await page.keyboard.type("holder");
    await page.keyboard.press("Enter");
    await page.waitForSelector('#found:has-text("1 account")');
    await tabTo(page, "tbody a");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#grant");
    await tabTo(page, "#grant");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "field-credits", "the dialog has the focus");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.id), "grant", "and gives it back");
    await page.keyboard.press("Enter");
    await page.keyboard.type("2.5");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "field-reason", "what is missing has the focus");
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#message");
    assert.equal(await page.innerText("#balance"), "4.5");
    await tabTo(page, "#tab-ledger");
    for (const name of TABS.slice(1)) {
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.evaluate(() => document.activeElement.id), `tab-${name}`);
    }
    await page.waitForSelector("#panel-history .log");
    await tabTo(page, "#panel-history summary");
    await page.keyboard.press("Enter");
    assert.ok(await page.isVisible("#panel-history details[open] table"));
    await tabTo(page, "#skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
    await tabTo(page, "#sign-out");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#sign-in:not([hidden])");
    await checkPage(page, null);
  },

  /** Every view in both schemes, on a phone and a desktop. */
  async consoleLooks(visitor, { token, service, key, org }) {
    for (let calls = 0; calls < 3; calls += 1) assert.equal((await call({ base: service }, "/mpp/ethPrice", key)).status, 200);
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await madeUpMonth(page);
      await enter(page, token);
      if (options.viewport.width === 375) assert.equal(await headLines(page), 2, "the head and the menu are one line each");
      await page.waitForSelector("svg.chart rect.bar");
      await page.waitForSelector("#health table");
      assert.match((await page.innerText("#health")).replace(/\s+/g, " "), /Gas wallet base, chain 8453 0x5aAe\w+ PROBLEM Pays the gas of about 17 more payments\. Refill it\./i);
      assert.match((await page.innerText("#unreported")).replace(/\s+/g, " "), /Settled without a report .*\/v1\/chat\/completions\s.*1,204\s.*3\s.* 08:01:02/i);
      await checkPage(page, null);
      assert.equal(await page.locator("#daily svg.chart rect.bar.open").count(), 1, "today is not over");
      if (options === LOOKS[0]) await customDays(page);
      for (const measure of ["credits_sold", "credits_granted", "usage_events", "new_accounts"]) {
        await page.click(`#daily [data-choice=${measure}]`);
        await page.waitForSelector("#daily svg.chart rect.bar");
      }
      for (const view of VIEWS.slice(1)) {
        await visit(page, view);
        for (const summary of await page.locator("#view summary").all()) await summary.click();
        await checkPage(page, null);
        const create = page.locator("#new-account, #new-plan, #new-operator");
        if ((await create.count()) === 0) continue;
        await create.click();
        await page.click("dialog [type=submit]");
        await checkPage(page, null);
        await page.keyboard.press("Escape");
      }
      await page.goto(`${page.base}/console#/accounts/${org}`);
      await page.waitForSelector("#panel-ledger table");
      await page.mouse.move(0, 0);
      await checkPage(page, null);
      if (options.viewport.width === 1280) assert.ok((await tabsBeyond(page)) <= 0, "every tab is in view");
      for (const tab of TABS.slice(1)) {
        await page.click(`#tab-${tab}`);
        await page.waitForSelector(`#panel-${tab} :is(svg.chart, .empty, table, .log)`);
        await checkPage(page, null);
      }
      for (const action of ["grant", "adjust", "limits", "rotate", "note", "revoke"]) {
        await page.click(`#${action}`);
        await page.click("dialog [type=submit]");
        await checkPage(page, null);
        await page.keyboard.press("Escape");
      }
    }
  },
};
