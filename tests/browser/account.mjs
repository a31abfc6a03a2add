// Scenes of a signed-in user: amounts, the runway, history and downloads.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage, shows, storedData } from "./browser.mjs";
import { LOOKS, call, comeBack, copied, inModule, look, signIn, tabTo, watchClipboard } from "./steps.mjs";

/** Routes of a month of usage, one of them of maximum length. */
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
  /** Rounded amounts keep their exact value: on hover, with the keyboard and in the clipboard. */
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
    // The header's balance has the digits of the meter.
    for (const [exact, shown] of [["1.99848", "1.9984"], ["58.7254166667", "58.7254"], ["123.4569", "123.456"], ["1234567.891", "1234567"], ["-0.5", "-0.5"], ["2", "2"], ["0", "0"]]) {
      assert.equal(await inModule(page, "decimal", (module, text) => module.cutOff(text, 4), exact), shown, exact);
    }
    const balance = await page.getAttribute("#balance", "data-exact");
    const meter = (await page.innerText("#balance")).replace(/\s/g, "");
    const header = (await page.textContent("#nav-balance")).match(/[\d,.]+/)[0];
    assert.ok(meter.startsWith(header) && /^0*$/.test(meter.slice(header.length).replace(".", "")), `${balance}: ${header} in the header, ${meter} on the meter`);
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

  /** The runway is shown only when enough data is known. */
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
          const days = byAge.map(([age, used]) => ({ day: new Date(now - age * 86_400_000).toISOString().slice(0, 10), credits_used: used }));
          return module.runway(balance, days, now);
        },
        { balance, byAge },
      );
    // The cases of the same rule in metering-core.
    const cases = JSON.parse(readFileSync(new URL("../../metering-core/src/money/runway.json", import.meta.url), "utf8"));
    for (const [balance, byAge, expected] of cases) assert.equal(await says(balance, byAge), expected, JSON.stringify([balance, byAge]));
  },

  /** Usage is split by route and by key, exactly; axes use their height; changes are in percent. */
  async usageSplit(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    const row = (day, route_template, key_id, calls, credits_used) => ({ day, http_method: "GET", route_template, key_id, key_name: `name of ${key_id}`, calls, credits_used });
    const rows = [
      row("2026-11-19", "/a", "k1", "5", "1"),
      row("2026-11-20", "/a", "k1", "2", "0.3333333333"),
      row("2026-11-21", "/a", "k2", "1", "0.3333333333"),
      row("2026-11-21", "/b", "k2", "1", "0.3333333333"),
      ...["1", "2", "3", "4", "5", "6"].map((number) => row("2026-11-21", `/r${number}`, "k1", number, "0.01")),
    ];
    // Pages cannot send a BigInt, so it is sent as text.
    const say = (module, { rows, ...view }) => JSON.parse(JSON.stringify(module.split(rows, view), (_, value) => (typeof value === "bigint" ? String(value) : value)));
    const of = (view) => inModule(page, "split", say, { rows, from: "2026-11-20", to: "2026-11-21", by: "route", measure: "credits", ...view });
    const all = await of({});
    assert.deepEqual(all.series.map(({ id }) => id), ["GET /a", "GET /b", "GET /r6", "GET /r5", "GET /r4", "GET /r3", "GET /r2", "GET /r1"]);
    assert.deepEqual([all.total.calls, all.total.credits, all.before.calls], ["25", "10600000000", "5"], "three thirds and six hundredths");
    assert.deepEqual(all.bars.map(({ from, parts }) => [from, parts.map(({ name, calls }) => `${name} ${calls}`)]), [
      ["2026-11-20", ["GET /a 2"]],
      ["2026-11-21", ["GET /a 1", "GET /b 1", "GET /r6 6", "GET /r5 5", "GET /r4 4", "All others 6"]],
    ]);
    assert.deepEqual((await of({ by: "key", measure: "calls" })).series.map(({ name, calls }) => `${name} ${calls}`), ["name of k1 23", "name of k2 2"]);
    assert.deepEqual((await of({ key: "k2", route: "GET /a" })).series.map(({ id, calls }) => [id, calls]), [["GET /a", "1"]]);
    const year = await of({ from: "2025-11-22" });
    assert.deepEqual([year.bars.length, year.bars.at(-1).from, year.bars[0].to, year.before], [53, "2026-11-15", "2025-11-22", null], "weeks, of which the last is complete");

    const changes = [["112", "100", "+12%"], ["100", "112", "−11%"], ["1", "0", null], ["0", "5", "−100%"], ["7", "7", "±0%"], ["100", "10", "10×"], ["299", "3", "99×"], ["99999", "3", null]];
    for (const [now, before, words] of changes) {
      assert.equal(await inModule(page, "split", (module, amounts) => module.change(...amounts.map(BigInt)), [now, before]), words, `${before} to ${now}`);
    }
    const ticks = (most) => inModule(page, "scale", (module, most) => module.scale(BigInt(most)).ticks.map(String).join(), most);
    for (const [most, expected] of [["0", "0,1"], ["1", "0,1"], ["3", "0,1,2,3"], ["5", "0,2,4"], ["41", "0,10,20,30,40"], ["99", "0,20,40,60,80"]]) assert.equal(await ticks(most), expected, most);
    const problem = (days) => inModule(page, "days", (module, days) => module.rangeProblem(...days, { today: "2026-11-21", most: 366 }), days);
    for (const [from, to, words] of [["", "2026-11-21", /Choose the first/], ["2026-11-21", "2026-11-20", /not be after/], ["2026-11-21", "2026-11-22", /future/], ["2024-11-20", "2026-11-21", /at most 366/], ["2026-11-21", "2026-11-21", /^$/]]) {
      assert.match(await problem([from, to]), words);
    }
  },

  /** Bars, legend and activity filter each other, by mouse and by keyboard; activity comes in pages. */
  async usageFilters(visitor, { key }) {
    const page = await visitor.window();
    const press = (name) => page.keyboard.press(name);
    for (const path of ["/mpp/ethPrice", "/mpp/ethPrice", "/mpp/snapshot/allTrades"]) assert.equal((await call(page, path, key)).status, 200);
    await signIn(page, key);
    const rows = page.locator("#activity tbody tr");
    await page.waitForSelector("#breakdown tbody tr >> nth=1");
    await page.locator(".stacked .day").last().locator(".part").first().hover();
    assert.match(await page.innerText(".chart-tip"), /so far.*3 calls.*GET \/mpp\/snapshot\/allTrades.*GET \/mpp\/ethPrice/s);
    assert.equal(await page.locator(".stacked .hatched").count(), 1, "today is hatched");
    await checkPage(page, "usage-tip");
    await page.locator(".stacked .day").last().locator(".part").first().click();
    await page.waitForFunction(() => document.querySelector("#usage-route").value === "GET /mpp/ethPrice");
    assert.equal(await page.inputValue("#activity-route"), "GET /mpp/ethPrice", "the filter is that of the tab");
    await page.waitForFunction(() => document.querySelectorAll("#activity tbody tr").length === 2);
    await page.click("#usage-clear");
    await page.waitForFunction(() => document.querySelectorAll("#activity tbody tr").length === 4);
    await page.click("#breakdown [data-series='GET /mpp/snapshot/allTrades']");
    await page.waitForFunction(() => document.querySelectorAll("#activity tbody tr").length === 1);
    await page.click("#breakdown [aria-pressed=true]");
    await page.waitForFunction(() => document.querySelectorAll("#activity tbody tr").length === 4);

    // One stop for Tab; arrows go to bars and parts.
    await tabTo(page, ".stacked .day");
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /not over yet: .* 3 calls\. GET \/mpp\/ethPrice: /);
    await press("ArrowUp");
    assert.match(await page.textContent(".chart-body [role=status]"), /^GET \/mpp\/ethPrice: .* 2 calls$/);
    await press("Enter");
    await page.waitForFunction(() => document.querySelector("#usage-route").value === "GET /mpp/ethPrice" && document.activeElement.matches(".day"));
    await press("ArrowLeft");
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /: 0 credits, 0 calls/);
    await press("Enter");
    await page.waitForSelector("#no-activity");
    await tabTo(page, "#activity-clear");
    await press("Enter");
    await page.waitForFunction(() => document.querySelectorAll("#activity tbody tr").length === 4);
    await checkPage(page, null);

    // Days of one's own.
    await page.click("#trend [data-choice=custom]");
    const today = await page.inputValue("#usage-to");
    await page.fill("#usage-from", today);
    await page.waitForFunction(() => document.querySelectorAll(".stacked .day").length === 1);
    await page.fill("#usage-to", "2020-01-01");
    assert.match(await page.innerText("#usage-dates-error"), /must not be after/);
    await checkPage(page, null);

    for (let calls = 0; calls < 60; calls += 1) assert.equal((await call(page, "/mpp/ethPrice", key)).status, 200);
    await page.click("#refresh");
    await page.waitForSelector("#more-activity");
    assert.equal(await rows.count(), 8);
    await page.click("#more-activity");
    assert.equal(await rows.count(), 50);
    await page.click("#more-activity");
    await page.waitForSelector("#activity-end");
    assert.equal(await rows.count(), 64);
    assert.equal(await page.evaluate(() => document.activeElement.rowIndex), 51, "the keyboard goes on at the first new row");

    // Changes from elsewhere appear when the user returns, but are not reloaded again immediately.
    const asked = [];
    page.on("request", (request) => request.url().includes("/credits/balance") && asked.push(request));
    await comeBack(page, 1_000);
    assert.equal(asked.length, 0);
    const loaded = page.waitForResponse((response) => response.url().includes("/credits/balance"));
    await comeBack(page, 60_000);
    await loaded;
    await checkPage(page, null);
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
    assert.match(await page.getAttribute("svg.chart", "aria-label"), /^Bar chart of calls by day, 7 days, in total 3 calls\./);
    await page.selectOption("#usage-route", "GET /mpp/ethPrice");
    await page.waitForFunction(() => document.querySelector(".chart-reading")?.textContent.endsWith("2 calls"));
    await page.click("#refresh");
    await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
    await page.waitForFunction(() => document.querySelector(".chart-reading")?.textContent.endsWith("2 calls"));
    const list = page.locator("#trend details");
    assert.ok(await list.locator("table").isHidden(), "the table is collapsed");
    await list.locator("summary").click();
    assert.ok(await list.locator("table").isVisible());

    for (const [button, path, columns] of [
      ["Usage (CSV)", "/credits/usage.csv", "day,route,method,source,calls,credits,key_id,key_name,model"],
      ["Ledger (CSV)", "/credits/ledger.csv", "id,created_at,type,credits,description,plan_id,chain_id,tx_hash"],
    ]) {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: button }).click()]);
      const text = readFileSync(await download.path(), "utf8");
      assert.equal(text.split("\r\n")[0], columns);
      assert.match(download.suggestedFilename(), /^(usage|ledger).*\.csv$/);
      if (path.includes("ledger")) assert.equal(text, await (await call(page, path, key)).text());
    }
    await page.focus("#tab-usage");
    await page.keyboard.press("ArrowLeft");
    const everything = page.getByRole("button", { name: "Download everything (JSON)" });
    const [stored] = await Promise.all([page.waitForEvent("download"), everything.click()]);
    assert.equal(JSON.parse(readFileSync(await stored.path(), "utf8")).account.agent_name, name);
    await page.click("#tab-usage");
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
      const day = (back) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);
      const days = Array.from({ length: 60 }, (_, back) => day(back));
      const exact = (_, value) => (typeof value === "number" && !Number.isInteger(value) ? Number(value.toFixed(10)) : value);
      const fulfill = (route, json) => route.fulfill({ body: JSON.stringify(json, exact), headers: { "content-type": "application/json", date: new Date().toUTCString() } });
      await page.route("**/credits/usage/summary?*", async (route) => {
        const response = await (await route.fetch()).json();
        const by_day = days.slice(0, 30).map((day, back) => ({ day, usage_events: 100 + ((back * 7919) % 500), credits_used: (11 + ((back * 104_729) % 97) / 7) / 10 }));
        await fulfill(route, { ...response, by_day });
      });
      await page.route("**/credits/usage/daily?*", (route) => {
        const usage = days.flatMap((day, back) => ROUTES.flatMap((route_template, place) => ["First key", "crawler"].map((key_name, number) => {
          const calls = ((back * 7919 + place * 31) % 500 >> place) + number;
          return { day, route_template, http_method: "GET", client_source: "direct", key_id: `key_${number}`, key_name, calls, credits_used: calls * 0.0006944444 };
        })));
        return fulfill(route, { usage, next: null });
      });
      await signIn(page, key);
      await page.waitForSelector("svg.chart rect.part");
      await checkPage(page, `many-routes-${look(options)}`);
      const top = await page.evaluate(() => document.getElementById("activity-title").getBoundingClientRect().top + scrollY);
      if (options.viewport.width === 375) assert.ok(top <= 2 * 812, `activity begins at ${top} pixels`);
    }
  },
};
