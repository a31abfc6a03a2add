// Scenes of an account at a service whose catalogue has volume tiers, or has none.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { LOOKS, call, look, signIn } from "./steps.mjs";

async function refresh(page) {
  await page.click("#refresh");
  await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
}

/** The cells of the only row. */
const row = async (page) => (await page.locator("#volumes tbody :is(th, td)").allInnerTexts()).map((text) => text.replace(/\s+/g, " ").trim());

export const volumes = {
  /** The price of the next request, how many more have that price, and the price after that. */
  async volumeTiers(visitor, { key }) {
    const page = await visitor.window({ expected: [503] });
    await signIn(page, key);
    const route = "GET /api/echo/{word}";
    assert.deepEqual(await row(page), [route, "0", "Free", "2", "0.25"]);
    const next = new Date();
    const reset = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1)).toISOString();
    assert.equal(await page.getAttribute("#volumes time", "datetime"), reset);
    assert.ok((await page.innerText("#volumes")).includes(`start again at ${reset.slice(0, 10)} 00:00 UTC`), await page.innerText("#volumes"));
    await checkPage(page, "volumes");
    // requests until then, the row
    const table = [
      [1, [route, "1", "Free", "1", "0.25"]],
      [2, [route, "3", "0.25", "1", "0.125"]],
      [1, [route, "4", "0.125", "No limit", "–"]],
    ];
    for (const [calls, expected] of table) {
      for (let made = 0; made < calls; made += 1) assert.equal((await call(page, "/api/echo/a", key)).status, 200);
      await refresh(page);
      assert.deepEqual(await row(page), expected);
    }
    // The list is missing, and the rest of the page works.
    await page.route("**/credits/usage/volumes", (route) => route.fulfill({ status: 503, json: { error: "storage_unavailable", message: "The database is busy." } }));
    await refresh(page);
    assert.equal(await page.innerText("#volumes [role=alert]"), "The database is busy.");
    assert.equal(await page.getAttribute("#balance", "data-exact"), "1.5");
    assert.ok(await page.isHidden("#load-error"));
    await checkPage(page, null);
    await page.unroute("**/credits/usage/volumes");
    await refresh(page);
    assert.equal(await page.locator("#volumes tbody tr").count(), 1);
  },

  /** A catalogue without tiers: nothing about them. */
  async withoutVolumeTiers(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    await page.waitForSelector("[aria-labelledby=activity-title]");
    assert.equal(await page.locator("#volumes").count(), 0);
    assert.ok(!/volume|tier/i.test(await page.innerText("main")), await page.innerText("main"));
    await checkPage(page, null);
  },

  /** Phones and desktops, light and dark, with more routes than are shown at first and a long one. */
  async volumeLooks(visitor, { key }) {
    for (let calls = 0; calls < 3; calls += 1) assert.equal((await call(visitor, "/api/echo/a", key)).status, 200);
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await signIn(page, key);
      assert.equal(await page.locator("#volumes tbody tr").count(), 5);
      await checkPage(page, `volumes-${look(options)}`);
      await page.click("#volumes .table-more");
      assert.equal(await page.locator("#volumes tbody tr").count(), 6);
      await checkPage(page, null);
    }
  },
};
