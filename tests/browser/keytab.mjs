// Scenes of the Keys tab: child keys of the key that is signed in, with budgets and limits.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { ONE_CALL, OTHER_ROUTE, ROUTE, act, again, api, covered, details, hasButtonsInView, make, menu, openKeys, row, secretOf, status, submit } from "./keysteps.mjs";
import { KEY, LOOKS, copied, look, signIn, tabTo, watchClipboard } from "./steps.mjs";

export const keyTab = {
  /** A key is created, used until its budget is spent, changed, rotated, disabled and deleted. */
  async manageKeys(visitor, { key }) {
    const page = await visitor.window({ expected: [400, 401, 402, 403, "ERR_FAILED"] });
    await watchClipboard(page);
    await signIn(page, key);
    await page.click("#tab-usage");
    assert.ok(!(await page.isVisible("#trend [data-choice=key]")), "one key needs no split");
    await openKeys(page);
    assert.match(await row(page, "First key").innerText(), new RegExp(`this tab.*sk_live_…${key.slice(-4)}.*Active.*No limit`, "s"));
    assert.equal(await page.locator("[data-action=disable], [data-action=delete]").count(), 0);

    // Errors are next to the fields that they are about.
    await page.click("#new-key");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-name-error"), /Give the key a name/);
    await page.fill("#field-name", "crawler");
    assert.ok(await page.isHidden("#field-limit_reset"));
    await page.fill("#field-limit", ONE_CALL);
    await page.selectOption("#field-limit_reset", "daily");
    await page.selectOption("#field-expires_at", "day");
    await page.click("dialog summary");
    await page.fill("#field-routes", "ethprice");
    await page.locator(`.route-list [value="GET ${ROUTE}"]`).check();
    await page.fill("#field-routes", "/mpp/ethPrize");
    assert.match(await page.innerText(".route-list"), /No route has this text/);
    await page.click("#field-routes-add");
    assert.equal(await page.innerText("#field-routes-count"), "2 routes.");
    await page.fill("#field-networks", "everywhere");
    await page.click("dialog summary");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#field-routes-error:not([hidden])");
    assert.match(await page.innerText("#field-routes-error"), /ethPrize.*did you mean \/mpp\/ethPrice\?/);
    assert.match(await page.innerText("#field-networks-error"), /everywhere.*is not an address or a network/);
    assert.ok(await page.evaluate(() => document.activeElement.id === "field-routes"), "the first wrong field has the focus");
    await checkPage(page, null);
    await page.locator('.route-list [value="/mpp/ethPrize"]').uncheck();
    await page.fill("#field-networks", "127.0.0.1\n::1");

    // The response is lost; a retry gets the same key.
    const made = [];
    const lose = async (route) => {
      made.push((await (await route.fetch()).json()).key);
      await route.abort();
    };
    await page.route("**/keys", lose, { times: 1 });
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /may have been created.*same key/);
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#secret-kept");
    await page.click(".secret button");
    const clipboard = await copied(page);
    const crawler = await secretOf(page, "crawler");
    assert.deepEqual([clipboard, made], [crawler, [crawler]]);
    assert.equal(await page.locator("#keys tbody tr").count(), 2);
    assert.ok(!(await storedData(page)).includes(crawler), "the new key is not kept");

    // It is used until its budget is spent.
    assert.equal(await status(page, crawler, OTHER_ROUTE), 403);
    assert.equal(await status(page, crawler), 200);
    assert.equal(await status(page, crawler), 402);
    assert.equal(await status(page, key), 200);
    await again(page);
    assert.match(await row(page, "crawler").innerText(), new RegExp(`sk_live_…${crawler.slice(-4)}.*Active.*0\\.0007\\s.*of\\s+0\\.001 credits a day`, "s"));
    assert.equal(await row(page, "crawler").locator(".share rect").getAttribute("width"), "69.4");
    assert.match(await details(page, "crawler"), /Made by\s+First key.*Remaining\s+0\.0003.*Resets\s+20\d\d-\d\d-\d\d\s00:00.*Used today\s+0\.0007.*call, read.*GET \/mpp\/ethPrice.*How rate limits work/s);
    assert.equal(await page.locator('#keys a[href^="/docs/guides/rate-limits"]').count(), 1);

    // Only what was changed is sent.
    const patches = [];
    page.on("request", (request) => request.method() === "PATCH" && patches.push(request.postDataJSON()));
    await act(page, "crawler", "change");
    await page.waitForSelector(".route-list .check >> nth=2");
    assert.deepEqual(await page.locator(".route-list :checked").evaluateAll((boxes) => boxes.map(({ value }) => value)), [`GET ${ROUTE}`]);
    assert.equal(await page.inputValue("#field-expires_at"), "keep");
    await page.fill("#field-name", "spider");
    await page.fill("#field-limit", "0.5");
    await submit(page);
    await row(page, "spider").getByText("of 0.5 credits a day").waitFor();
    assert.deepEqual(patches.pop(), { name: "spider", limit: "0.5" });
    assert.ok(await page.evaluate(() => document.activeElement.matches(".menu-button")), "the key keeps the focus");
    assert.equal(await status(page, crawler), 200);

    // With grace, both secrets work; without, only the newest.
    await act(page, "spider", "rotate");
    await page.selectOption("#field-grace_seconds", "3600");
    await page.click("dialog [type=submit]");
    const second = await secretOf(page, "spider");
    assert.deepEqual([await status(page, crawler), await status(page, second)], [200, 200]);
    await act(page, "spider", "rotate");
    await page.click("dialog [type=submit]");
    const third = await secretOf(page, "spider");
    assert.deepEqual([await status(page, crawler), await status(page, second), await status(page, third)], [401, 401, 200]);

    await act(page, "spider", "disable");
    await submit(page);
    await row(page, "spider").locator("[data-state=disabled]").waitFor();
    assert.equal(await status(page, third), 401);
    await act(page, "spider", "enable");
    await row(page, "spider").locator("[data-state=active]").waitFor();
    assert.ok((await row(page, "spider").innerText()).includes(`sk_live_…${third.slice(-4)}`), "the end of its newest secret");
    assert.equal(await status(page, third), 200);

    // A key's usage, and its breakdown.
    await page.click("#tab-usage");
    await page.click("#refresh");
    await page.click("#trend [data-choice=key]");
    // The table of the last reading may still be there.
    await page.locator("#breakdown tbody tr").filter({ hasText: /spider\s*6/ }).waitFor();
    const spent = await page.locator("#breakdown tbody tr").allInnerTexts();
    assert.deepEqual(spent.map((line) => line.split(/\s*\t\s*|\n/).filter(Boolean).slice(0, 2)), [["spider", "6"], ["First key", "1"]]);
    await page.selectOption("#activity-key", { label: "spider" });
    await page.waitForFunction(() => [...document.querySelectorAll("#activity td[data-label=Key]")].every((cell) => cell.textContent === "spider"));
    assert.ok((await page.locator("section[aria-labelledby=activity-title] td[data-label=Key]").allInnerTexts()).includes("spider"));

    await openKeys(page);
    await act(page, "spider", "delete");
    assert.match(await page.innerText("dialog"), /cannot be undone.*It has no child keys/s);
    await submit(page);
    await page.waitForFunction(() => document.querySelectorAll("#keys tbody tr").length === 1);
    assert.equal(await status(page, third), 401);
    await page.click("#tab-usage");
    await page.click("#usage-clear");
    await page.click("#trend [data-choice=key]");
    await page.locator("#breakdown").getByText("spider").waitFor();
    await checkPage(page, null);
  },

  /** Child keys: their view, the effects of disabling a parent, and the steps after a leak. */
  async keyTree(visitor, { key }) {
    const page = await visitor.window({ expected: [401, 403, "ERR_FAILED"] });
    const { key: team } = await make(page, key, { name: "team", scopes: ["call", "read", "manage"], limit: "1" });
    const { key: intern } = await make(page, team, { name: "intern" });
    const { key: laptop } = await make(page, key, { name: "laptop" });

    // A key that may manage keys sees itself and its child keys, and gives no more than it has.
    const member = await visitor.window({ expected: [400, 401] });
    await signIn(member, team);
    await openKeys(member);
    assert.deepEqual(await member.locator("#keys [data-key]").allInnerTexts(), ["team", "intern"]);
    await member.click("#new-key");
    assert.ok(await member.isDisabled("#field-scopes-topup"));
    await member.fill("#field-name", "too much");
    await member.fill("#field-limit", "2");
    await member.click("dialog [type=submit]");
    await member.waitForSelector("#field-limit-error:not([hidden])");
    assert.match(await member.innerText("#field-limit-error"), /Budget in credits must not be more than that of the parent key/);
    await member.getByRole("button", { name: "Cancel" }).click();

    // One that may not sees itself, and why.
    const plain = await visitor.window();
    await signIn(plain, intern);
    await openKeys(plain);
    assert.match(await plain.innerText("#keys-no-scope"), /does not have the scope manage/);
    assert.deepEqual(await plain.locator("#keys [data-key]").allInnerTexts(), ["intern"]);
    await menu(plain, "intern").click();
    assert.deepEqual(await plain.locator("#keys [role=menuitem]").allInnerTexts(), ["Details", "Rotate"], "it can replace itself");
    await plain.keyboard.press("Escape");
    await checkPage(plain, null);

    await signIn(page, key);
    await openKeys(page);
    assert.match(await row(page, "intern").textContent(), /child of team/);
    assert.equal(await row(page, "intern").locator(".depth-2").count(), 1, "it is indented under team");
    await act(page, "team", "disable");
    await submit(page);
    await row(page, "intern").getByText("Off, because team is disabled").waitFor();
    assert.equal(await status(page, intern), 401);
    await act(page, "team", "enable");
    await row(page, "intern").locator("[data-state=active]").waitFor();

    // A leaked key shows the next steps, and is rotated.
    await api(page, key, "POST", "/keys/leaked", { key: laptop });
    await again(page);
    assert.match(await page.innerText("[data-leaked]"), /laptop was reported as leaked.*Rotate it.*Usage tab/s);
    assert.equal(await row(page, "laptop").locator("[data-action=enable], [data-action=disable]").count(), 0);
    await page.click("[data-action=rotate-leaked]");
    assert.equal(await page.locator("#field-grace_seconds").count(), 0, "a leaked secret gets no grace");
    await page.click("dialog [type=submit]");
    const fresh = await secretOf(page, "laptop");
    assert.equal(await page.locator("[data-leaked]").count(), 0);
    assert.deepEqual([await status(page, laptop), await status(page, fresh)], [401, 200]);

    // Deleting lists the keys that are deleted with it.
    await act(page, "team", "delete");
    assert.match(await page.innerText("#stops-too"), /This key is deleted with it:\s+intern key_/);
    await submit(page);
    await row(page, "intern").waitFor({ state: "detached" });
    assert.deepEqual([await status(page, team), await status(page, intern)], [401, 401]);
    await member.click("#refresh");
    await member.waitForSelector("#sign-in:not([hidden])");

    // The first key may be renamed and get a budget, and keeps its scopes.
    await act(page, "First key", "change");
    assert.equal(await page.locator("#field-scopes, #field-expires_at").count(), 0);
    await page.fill("#field-limit", "2");
    await page.selectOption("#field-limit_reset", "monthly");
    await submit(page);
    await row(page, "First key").getByText("of 2 credits a month").waitFor();
    await act(page, "First key", "change");
    await page.fill("#field-limit", "");
    await submit(page);
    await row(page, "First key").getByText("No limit").waitFor();

    // The key of this tab is rotated; the tab continues with the new secret.
    await act(page, "First key", "rotate");
    await page.selectOption("#field-grace_seconds", "3600");
    await page.click("dialog [type=submit]");
    const first = await secretOf(page, "First key", { isOwn: true });
    assert.deepEqual([await status(page, key), await status(page, first)], [200, 200]);
    const replaced = [];
    const lose = async (route) => {
      replaced.push((await (await route.fetch()).json()).api_key);
      await route.abort();
    };
    await page.route("**/keys/current/rotate", lose, { times: 1 });
    await act(page, "First key", "rotate");
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#dialog-error:not([hidden])");
    assert.match(await page.innerText("#dialog-error"), /may have been replaced.*same new one/);
    await page.click("dialog [type=submit]");
    const last = await secretOf(page, "First key", { isOwn: true });
    assert.deepEqual(replaced, [last], "the secret of the lost response");
    assert.deepEqual([await status(page, key), await status(page, first), await status(page, last)], [401, 401, 200]);
    const stored = await storedData(page);
    assert.ok(stored.includes(last) && !stored.includes("metering.rotation"));
    await again(page);
  },

  /** The keyboard alone creates, disables and deletes a key. */
  async keysByKeyboard(visitor, { key }) {
    const page = await visitor.window();
    const press = (name) => page.keyboard.press(name);
    await signIn(page, key);
    await page.focus("#tab-usage");
    await press("ArrowRight");
    await page.waitForSelector("#keys table");
    await tabTo(page, "#new-key");
    await press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "field-name");
    await page.keyboard.type("bot");
    await press("Tab");
    await page.keyboard.type("0.5");
    await tabTo(page, "#field-scopes-read");
    await press("Space");
    await tabTo(page, "dialog [type=submit]");
    await press("Enter");
    await page.waitForSelector("#secret-kept");
    const secret = (await page.innerText("dialog #api-key")).match(KEY)[0];
    await tabTo(page, "#secret-kept");
    await press("Enter");
    await row(page, "bot").waitFor();
    await page.waitForFunction(() => document.activeElement.matches(".menu-button"));
    assert.match(await details(page, "bot"), /Scopes\s+call\s/);
    await menu(page, "bot").focus();
    assert.deepEqual([await status(page, secret), await status(page, secret, "/credits/balance")], [200, 403]);
    // Escape closes a dialog, and the focus returns.
    await press("ArrowDown");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "details");
    await press("Escape");
    assert.ok(await page.evaluate(() => document.activeElement.matches(".menu-button[aria-expanded=false]")));
    await press("Enter");
    await press("d");
    await press("d");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "delete");
    await press("ArrowUp");
    await press("Enter");
    await page.waitForSelector("dialog");
    await press("Escape");
    await page.waitForSelector("dialog", { state: "detached" });
    assert.ok(await page.evaluate(() => document.activeElement.matches(".menu-button")));
    await press("ArrowUp");
    await press("ArrowUp");
    assert.equal(await page.evaluate(() => document.activeElement.dataset.action), "disable");
    await press("Enter");
    await tabTo(page, "dialog [type=submit]");
    await press("Enter");
    await row(page, "bot").locator("[data-state=disabled]").waitFor();
    await page.waitForFunction(() => document.activeElement.matches(".menu-button"));
    await press("ArrowUp");
    await press("Enter");
    await page.waitForSelector("dialog");
    await tabTo(page, "dialog [type=submit]");
    await press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForFunction(() => document.activeElement.id === "new-key");
    assert.equal(await row(page, "bot").count(), 0);
  },

  /** A key without the scope to read gets a reason; many keys come in parts. */
  async manyKeys(visitor, { key }) {
    const page = await visitor.window({ expected: [403] });
    const { key: blind } = await make(page, key, { name: "blind", scopes: ["call"] });
    await page.goto(`${page.base}/metering/account`);
    await page.fill("#key", blind);
    await page.click("#key-button");
    await page.waitForSelector("#key-error:not([hidden])");
    assert.match(await page.innerText("#key-error"), /lacks the scope 'read'/);
    for (let count = 0; count < 60; count += 1) await make(page, key, { name: `agent-${count}` });
    await signIn(page, key);
    await openKeys(page);
    const rows = page.locator("#keys tbody tr");
    assert.equal(await rows.count(), 50);
    await page.click("#more-keys");
    await row(page, "agent-59").waitFor();
    assert.equal(await rows.count(), 62);
    assert.equal(await page.locator("#more-keys").count(), 0);
    await again(page);
    await row(page, "agent-59").waitFor();
    assert.equal(await rows.count(), 62, "a refresh shows as many");
    await page.fill("#search-keys", "AGENT-1");
    await page.waitForFunction(() => document.querySelectorAll("#keys tbody tr").length === 12);
    assert.equal(await row(page, "First key").count(), 1, "the parent of what was found is listed, too");
    await page.fill("#search-keys", "nobody");
    assert.match(await page.innerText("#keys-found"), /No key has this name or id/);
    await page.fill("#search-keys", "");
    await page.selectOption("#order-keys", "name");
    assert.deepEqual((await page.locator("#keys [data-key]").allInnerTexts()).slice(0, 4), ["First key", "agent-0", "agent-1", "agent-10"]);
    await checkPage(page, null);
  },

  /** The tab and its dialogs, in both schemes at two widths. */
  async keyLooks(visitor, { key }) {
    const setup = await visitor.window();
    const { key: crawler } = await make(setup, key, { name: "crawler", limit: "0.005", limit_reset: "daily", expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString() });
    const { key: team, data: parent } = await make(setup, key, { name: "Research team, with interns", limit: "10", limit_reset: "monthly", scopes: ["call", "read", "manage"] });
    const { key: intern } = await make(setup, team, { name: "intern", routes: ["/mpp/*"], networks: ["127.0.0.1", "::1"], requests_per_minute: 60 });
    const { key: laptop } = await make(setup, key, { name: "laptop" });
    const { key: spent, data: exhausted } = await make(setup, key, { name: "trial", limit: "1" });
    for (const secret of [key, key, crawler, crawler, team, intern, laptop, spent]) assert.equal(await status(setup, secret), 200);
    await api(setup, key, "PATCH", `/keys/${exhausted.id}`, { limit: "0.0005" });
    await api(setup, key, "PATCH", `/keys/${parent.id}`, { disabled: true });
    await api(setup, key, "POST", "/keys/leaked", { key: laptop });
    for (const options of LOOKS) {
      const page = await visitor.window({ ...options, expected: [400] });
      await signIn(page, key);
      await checkPage(page, `key-usage-${look(options)}`);
      await openKeys(page);
      assert.match(await row(page, "trial").innerText(), /Budget used up/);
      assert.equal(await page.locator("#keys tbody tr").count(), 6);
      const { height } = await page.locator("#keys table").boundingBox();
      assert.ok(height < options.viewport.height, `six keys take ${height} pixels`);
      assert.deepEqual(await page.locator("#keys tbody tr").evaluateAll(covered), [], "a menu's button covers nothing");
      await checkPage(page, `keys-${look(options)}`);
      await page.click("#new-key");
      assert.ok(await page.locator("dialog").evaluate(hasButtonsInView), "the buttons are in view");
      await checkPage(page, `new-key-${look(options)}`, { top: "dialog" });
      await page.fill("#field-name", "a key");
      await page.fill("#field-limit", "1");
      await page.selectOption("#field-expires_at", "at");
      await page.fill("#field-expires_on", "2020-01-01T10:00");
      await page.click("dialog summary");
      assert.ok(await page.locator("dialog").evaluate((dialog) => dialog.scrollHeight > dialog.clientHeight), "the dialog scrolls");
      for (const top of [0, 100_000]) {
        await page.locator("dialog").evaluate((dialog, top) => dialog.scrollTo({ top, behavior: "instant" }), top);
        assert.ok(await page.locator("dialog").evaluate(hasButtonsInView), `the buttons are in view when it is scrolled to ${top}`);
      }
      await page.fill("#field-networks", "here");
      await page.click("dialog [type=submit]");
      await page.waitForSelector("#field-networks-error:not([hidden])");
      assert.match(await page.innerText("#field-expires_at-error"), /must be in the future/);
      await checkPage(page, `new-key-errors-${look(options)}`, { top: "#field-networks" });
      await page.keyboard.press("Escape");
      for (const [name, action] of [["crawler", "details"], ["First key", "change"], ["crawler", "change"], ["crawler", "rotate"], ["crawler", "disable"], ["Research team, with interns", "delete"]]) {
        await act(page, name, action);
        await page.waitForSelector("dialog");
        await checkPage(page, `key-${action}-${look(options)}`, { top: "dialog" });
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog", { state: "detached" });
      }
      await act(page, "crawler", "rotate");
      await page.selectOption("#field-grace_seconds", "86400");
      await page.click("dialog [type=submit]");
      await page.waitForSelector("#secret-kept");
      await checkPage(page, `key-secret-${look(options)}`, { top: "dialog" });
      await page.click("#secret-kept");
    }
  },
};
