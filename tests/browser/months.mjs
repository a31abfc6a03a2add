// Scenes on a store with months of data, which take screenshots of docs/pages.md.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { enter, shown, visit } from "./console-steps.mjs";
import { LOOKS, look, signIn } from "./steps.mjs";

/** The tabs of an account that have their own screens. */
const TABS = ["charges", "usage", "keys"];

export const months = {
  /** The usage of an account: by route over a month, and by key over three, with the tooltip of a bar. Its purchases, with a receipt. */
  async months(visitor, { key }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      const [narrow, dark] = [options.viewport.width === 375, options.colorScheme === "dark"];
      await signIn(page, key);
      await page.waitForSelector("svg.chart rect.part");
      await page.waitForSelector("#activity tbody tr");
      assert.deepEqual(await page.locator("#purchases tbody th").allInnerTexts().then((days) => days.length), 3);
      await checkPage(page, ["month", narrow && "phone", dark && "dark"].filter(Boolean).join("-"));
      await page.click('#trend [data-choice="90"]');
      await page.waitForFunction(() => document.querySelectorAll(".stacked .day").length === 90);
      await page.click("#trend [data-choice=key]");
      await page.waitForSelector("#breakdown tbody tr >> nth=2");
      // On a phone, there is no pointer that rests on a bar.
      if (!narrow) await page.locator(".stacked .day").nth(30).locator(".part").first().hover();
      await checkPage(page, `usage-keys-${look(options)}`);
      if (narrow || dark) continue;
      await page.click("#tab-settings");
      await page.waitForSelector("#billing address");
      await page.click("#tab-usage");
      await page.locator("#purchases a").first().click();
      await page.waitForSelector("#receipt-number");
      const words = await page.innerText("#receipt");
      for (const part of ["Acme Data GmbH", "DE 123456789", "Team", "90 USDC", "77.08 EUR at 0.8612"]) assert.ok(words.includes(part), `${part} in ${words}`);
      await checkPage(page, null);
    }
  },

  /** The console's overview, an account, the search and a price version with its rehearsal. */
  async consoleMonths(visitor, { token, org }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      const [narrow, dark] = [options.viewport.width === 375, options.colorScheme === "dark"];
      await enter(page, token);
      await page.waitForSelector("svg.chart rect.bar");
      await page.waitForSelector('[data-attention="runway"]');
      await page.waitForSelector("#revenue-EUR-change:not(:empty)");
      const earned = (await page.locator(".tile", { has: page.locator("#revenue-EUR") }).innerText()).replace(/\s+/g, " ");
      assert.match(earned, /^Revenue in EUR 154\.44 EUR in 2 payments with a value \+63% on the 30 days before$/i);
      assert.match(await page.innerText("#sales"), /In EUR\s+154\.44 EUR in 2 payments\s/);
      await checkPage(page, narrow ? (dark ? "console-dark-phone" : null) : dark ? null : "console");
      await page.goto(`${page.base}/console#/accounts/${org}`);
      await page.waitForSelector("#panel-ledger table");
      await page.mouse.move(0, 0);
      assert.match((await page.innerText("#panel-ledger tbody tr:last-child")).replace(/\s+/g, " "), /Signup bonus Free credits \+400/);
      await checkPage(page, !narrow && !dark ? "console-account" : null);
      for (const tab of TABS) {
        await page.click(`#tab-${tab}`);
        await page.waitForSelector(`#panel-${tab} :is(svg.chart, table)`);
        if (tab === "charges") assert.match(await page.locator("#panel-charges tbody tr").first().innerText(), /Version 1/);
        await checkPage(page, `console-${tab}-${look(options)}`);
      }
      await page.fill("#find-text", "price");
      await page.press("#find-text", "Enter");
      await page.waitForSelector('[data-found="accounts"] tbody tr');
      await checkPage(page, `console-search-${look(options)}`);
      await visit(page, "Payments");
      await page.waitForSelector("#credited tbody tr >> nth=5");
      assert.match(await page.innerText("#credited .payments-total"), /^6 payments shown: 330 USDC on chain 8453/);
      await checkPage(page, `console-payments-${look(options)}`);
      await visit(page, "Price versions");
      await page.locator("#view tbody tr", { hasText: "scheduled" }).locator("a").first().click();
      await page.waitForSelector("#rehearsed");
      await shown(page);
      await checkPage(page, `console-price-${look(options)}`);
    }
  },
};
