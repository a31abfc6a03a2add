// Scenes of a signed-in user: figures, the runway, history and downloads.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage, shows, storedData } from "./browser.mjs";
import { LOOKS, call, copied, inModule, signIn, tabTo, watchClipboard } from "./steps.mjs";

/** Routes of a month of usage, one of them as long as they get. */
const ROUTES = [
  "/mpp/ethPrice/{block_number}",
  "/mpp/snapshot/allTrades/{block_number}",
  "/mpp/timeSeries/{token_address}/{pool_address}/{time_interval}/{step_size}",
  "/mpp/ethPrice",
  "/mpp/token/{token_address}/pools",
  "/mpp/stream/allTrades",
  "/mpp/pool/{pool_address}/metadata",
];

export const account = {
  /** Rounded figures keep their exact value, for the eyes, for the keyboard and for the clipboard. */
  async figures(visitor, { key }) {
    const page = await visitor.window();
    await watchClipboard(page);
    for (let calls = 0; calls < 3; calls += 1) assert.equal((await call(page, "/mpp/ethPrice", key)).status, 200);
    await signIn(page, key);
    const table = [
      ["58.7254166667", "58.7254"],
      ["0.0006944444", "0.0007"],
      ["0.00005", "0.0001"],
      ["0.0000123456", "0.00001"],
      ["-0.00069", "-0.0007"],
      ["99.99999", "100"],
      ["1234.5678", "1234.57"],
      ["2", "2"],
      ["0", "0"],
    ];
    for (const [exact, rounded] of table) assert.equal(await inModule(page, "figure", (module, text) => module.rounded(text), exact), rounded, exact);
    const drums = [
      ["58.7254166667", "58.7254", ""],
      ["2", "2.0000", ""],
      ["123456.789", "123,456", ""],
      ["12345.678", "12,345.6", ""],
      ["1234567.891", "1.2345", "million"],
      ["1280000000", "1.2800", "billion"],
      ["-0.5", "-0.5000", ""],
    ];
    for (const [exact, shown, unit] of drums) {
      const work = (module, text) => {
        const element = document.createElement("p");
        const word = module.drums(element, text, 4);
        return [element.textContent, word, element.querySelectorAll(".digit").length, element.getAttribute("aria-label")];
      };
      const [text, word, digits, label] = await inModule(page, "decimal", work, exact);
      assert.deepEqual([text, word], [shown, unit], exact);
      assert.ok(digits <= 6 && label.replaceAll(",", "") === exact, `${exact}: ${label}`);
    }
    const used = "0.0020833333";
    const figure = page.locator("#lifetime-used .amount");
    assert.equal(await figure.locator("[aria-hidden]").innerText(), "0.0021");
    await figure.hover();
    assert.equal(await page.innerText(".exact-tip"), used);
    await page.keyboard.press("Escape");
    assert.ok(await page.isHidden(".exact-tip"));
    await page.focus("#balance");
    assert.ok(await page.isVisible(".exact-tip"));
    assert.equal(await page.innerText(".exact-tip"), await page.getAttribute("#balance", "data-exact"));
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("#lifetime-used")));
    await page.keyboard.press("Control+c");
    assert.equal((await copied(page)).trim(), used, "copying gives the exact value");
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("[aria-labelledby=used-title]")));
    await page.keyboard.press("Control+c");
    assert.match(await copied(page), /0\.0020833333\s+of 0 bought and 2 granted/);
    await checkPage(page, null);
  },

  /** How long the balance lasts is only said when enough is known. */
  async runway(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    assert.match(await page.innerText("#runway"), /^No calls yet/);
    const says = (balance, byAge) =>
      inModule(
        page,
        "runway",
        (module, { balance, byAge }) => {
          const now = new Date("2026-11-21T15:00:00Z");
          const days = Object.entries(byAge).map(([age, used]) => ({ day: new Date(now - age * 86_400_000).toISOString().slice(0, 10), credits_used: used }));
          return module.runway(balance, days, now);
        },
        { balance, byAge },
      );
    const table = [
      ["0", { 1: "1", 5: "1" }, "Used up."],
      ["-0.5", {}, "Used up."],
      ["10", { 0: "1" }, /^Too early/],
      ["10", { 0: "1", 1: "1" }, /^Too early/],
      ["10", { 20: "1" }, /^No calls in the last 7 days/],
      // Seven complete days, one credit each, and a little today.
      ["12.5", { 0: "0.2", 1: "1", 2: "1", 3: "1", 4: "1", 5: "1", 6: "1", 7: "1" }, "About 12 days at this pace."],
      // Two complete days since the first call.
      ["10", { 2: "4" }, "About 5 days at this pace."],
      // Today has already cost more than the average.
      ["10", { 0: "10", 7: "0.7" }, "About 1 day at this pace."],
      ["1", { 0: "3", 3: "3" }, "Less than a day at this pace."],
      ["100", { 7: "7" }, "About 3 months at this pace."],
      ["100", { 7: "0.0001388889" }, "More than two years at this pace."],
    ];
    for (const [balance, byAge, expected] of table) {
      const words = await says(balance, byAge);
      if (expected instanceof RegExp) assert.match(words, expected);
      else assert.equal(words, expected, JSON.stringify(byAge));
    }
  },

  /** The chart's choices, the downloads, and the header on other pages. */
  async history(visitor, { key, name }) {
    const page = await visitor.window();
    for (const path of ["/mpp/ethPrice", "/mpp/ethPrice", "/mpp/snapshot/allTrades"]) assert.equal((await call(page, path, key)).status, 200);
    await signIn(page, key);
    const reading = page.locator(".chart-reading");
    assert.match(await reading.innerText(), /^Last 30 days .* 3 calls$/s);
    await tabTo(page, '#trend [data-choice="7"]');
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".chart-reading")?.textContent.startsWith("Last 7 days"));
    assert.equal(await page.evaluate(() => document.activeElement.dataset.choice), "7", "the button keeps the focus");
    await page.click('#trend [data-choice="calls"]');
    assert.match(await page.getAttribute("svg.chart", "aria-label"), /^Bar chart of calls by day, last 7 days. Total: 3 calls\./);
    await page.selectOption("#trend select", "GET /mpp/ethPrice");
    await page.waitForFunction(() => document.querySelector(".chart-reading")?.textContent.endsWith("2 calls"));
    await page.click("#refresh");
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    await page.waitForFunction(() => document.querySelector(".chart-reading")?.textContent.endsWith("2 calls"));
    const list = page.locator("#trend details");
    assert.ok(await list.locator("table").isHidden(), "the table is collapsed");
    await list.locator("summary").click();
    assert.ok(await list.locator("table").isVisible());

    for (const [button, path, columns] of [
      ["Usage (CSV)", "/credits/usage.csv", "day,route,method,source,calls,credits,key_id,key_name"],
      ["Ledger (CSV)", "/credits/ledger.csv", "id,created_at,type,credits,description,plan_id,chain_id,tx_hash"],
    ]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
      const text = readFileSync(await download.path(), "utf8");
      assert.equal(text.split("\r\n")[0], columns);
      assert.match(download.suggestedFilename(), /^(usage|ledger).*\.csv$/);
      if (path.includes("ledger")) assert.equal(text, await (await call(page, path, key)).text());
    }
    // A file in several parts is saved as one.
    await page.route("**/credits/ledger.csv*", (route) => {
      const isLast = route.request().url().includes("after=2");
      const headers = { "content-type": "text/csv", ...(isLast ? {} : { link: '</credits/ledger.csv?after=2>; rel="next"' }) };
      return route.fulfill({ headers, body: isLast ? "id\r\n3\r\n" : "id\r\n1\r\n2\r\n" });
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Ledger (CSV)" }).click()]);
    assert.equal(readFileSync(await download.path(), "utf8"), "id\r\n1\r\n2\r\n3\r\n");

    for (const path of ["/metering", "/docs", "/docs/mcp", "/docs/guides/quickstart", "/verify", "/agents-tos/1"]) {
      await page.goto(page.base + path);
      await page.waitForSelector(".signed-in");
      assert.equal(await page.textContent("#nav-account"), `Account, signed in as ${name}`, path);
      assert.ok(await page.isHidden("#nav-sign-up"), path);
      await page.waitForSelector("#nav-balance:not([hidden])");
      assert.match(await page.textContent("#nav-balance"), /^Balance: [\d,.]+ credits?$/, path);
      assert.ok(!(await shows(page, key)), `the key is not on ${path}`);
    }
    await page.goto(`${page.base}/metering/account`);
    await page.waitForSelector("#balance");
    await page.click("#sign-out");
    assert.ok((await page.isHidden(".signed-in")) && (await page.isHidden("#nav-balance")));
    assert.ok(await page.isVisible("#nav-sign-up"));
    assert.ok(!(await storedData(page)).includes(name), "signing out forgets the name");
  },

  /** A month of many routes, in both schemes and two widths; on a phone, activity begins within two screens. */
  async looks(visitor, { key }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await page.route("**/credits/usage/summary?*", async (route) => {
        const response = await (await route.fetch()).json();
        const day = (back) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);
        const by_day = Array.from({ length: 30 }, (_, back) => ({ day: day(back), usage_events: 100 + ((back * 7919) % 500), credits_used: (11 + ((back * 104_729) % 97) / 7) / 10 }));
        const by_endpoint = ROUTES.map((route_template, place) => ({ route_template, http_method: "GET", call_count: 9_000 >> place, credits_used: 30.123456789 / (place + 1) ** 2 }));
        const json = { ...response, totals: { usage_events: 10_432, credits_used: 54.0725694444, credits_added: 0 }, by_day, by_endpoint };
        const exact = (_, value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toFixed(10)) : value);
        await route.fulfill({ body: JSON.stringify(json, exact), headers: { "content-type": "application/json", date: new Date().toUTCString() } });
      });
      await signIn(page, key);
      await page.waitForSelector("svg.chart rect.bar");
      await checkPage(page, ["month", options.viewport.width === 375 && "phone", options.colorScheme === "dark" && "dark"].filter(Boolean).join("-"));
      const top = await page.evaluate(() => document.getElementById("activity-title").getBoundingClientRect().top + scrollY);
      if (options.viewport.width === 375) assert.ok(top <= 2 * 812, `activity begins at ${top} pixels`);
    }
  },
};
