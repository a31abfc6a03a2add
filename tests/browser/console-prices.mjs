// Price versions in the operators' console: reading, applying and cancelling them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage } from "./browser.mjs";
import { enter, newestEntry, says, send, shown, visit } from "./console-steps.mjs";
import { LOOKS, look } from "./steps.mjs";

/** A time that is far enough ahead for any test. */
const FAR = "2099-01-01 00:00";
const SHOWN = "2099-01-01 00:00:00";

const plain = (text) => text.replace(/\s+/g, " ").trim();
/** Number, state and who applied it, of each version in the list. */
const list = async (page) => {
  const rows = await page.locator("#view tbody tr").all();
  return Promise.all(rows.map(async (row) => (await row.locator(":is(th, td)").allInnerTexts()).map(plain).filter((_, place) => [0, 1, 3].includes(place))));
};

/** Opens the form that applies a file. */
async function choose(page, file) {
  await visit(page, "Catalogue");
  await page.setInputFiles("#catalogue-file", file);
  await page.click("#apply");
}

async function refused(page, words) {
  await page.click("dialog [type=submit]");
  await page.waitForSelector("#dialog-error:not([hidden])");
  await page.waitForFunction(() => !document.querySelector("dialog [aria-busy]"));
  assert.match(await page.innerText("#dialog-error"), words);
}

export const consolePrices = {
  /** Applies a file, reads the version, cancels it, and applies it again. */
  async consolePrices(visitor, { token, files: [file, other] }) {
    const page = await visitor.window({ expected: [400, 409] });
    await enter(page, token, "prices");
    assert.deepEqual(await list(page), [["Version 1", "in force", "Configuration"]]);
    assert.equal(await page.locator("#view tbody button").count(), 0, "what is in force cannot be cancelled");
    await page.click("#new-version");
    await page.waitForSelector('#view-title:has-text("Catalogue")');
    await choose(page, file);
    assert.match(plain(await page.innerText("#check-result")), /GET \/mpp\/extra Added – 0 for requests 1 to 1000 of a month, 0\.001 up to 100000, then 0\.0005/i);
    assert.ok(await page.isHidden("#field-at"), "the time is only asked for when it is not the default");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-reason-error"), /^Say why/);
    await page.fill("#field-reason", "Prices of 2099");
    await page.selectOption("#field-when", "at");
    for (const wrong of ["", "tomorrow", "2099-02-31 00:00", "2099-01-01"]) {
      await page.fill("#field-at", wrong);
      await page.click("dialog [type=submit]");
      assert.match(await page.innerText("#field-at-error"), /such as 2027-01-01 00:00/, wrong);
      assert.equal(await page.evaluate(() => document.activeElement.id), "field-at");
    }
    await page.fill("#field-at", "2020-01-01 00:00:00");
    await refused(page, /too soon: it must be at least 15 seconds ahead/);
    await checkPage(page, null);
    await send(page, { at: FAR });
    await says(page, `Version 2 takes effect at ${SHOWN} UTC.`);

    const table = [[file, /Version 2 has the same catalogue, and is in force at/], [other, /Version 2 takes effect at .* too; cancel it first, or choose another time/]];
    for (const [chosen, problem] of table) {
      await choose(page, chosen);
      await page.selectOption("#field-when", "at");
      await page.fill("#field-at", FAR);
      await page.fill("#field-reason", "Twice");
      await refused(page, problem);
      await page.keyboard.press("Escape");
    }
    await visit(page, "Price versions");
    assert.deepEqual(await list(page), [["Version 2", "scheduled", "boss"], ["Version 1", "in force", "Configuration"]]);
    await checkPage(page, null);

    await page.click('text="Version 2"');
    await page.waitForSelector('#view-title:has-text("Price version 2")');
    const text = readFileSync(file, "utf8");
    assert.deepEqual(JSON.parse(await page.textContent("#catalogue-text pre")), JSON.parse(text));
    assert.ok((await page.textContent("#catalogue-text pre")).includes("\n  "), "indented");
    assert.equal(await page.locator("#catalogue-text button").count(), 1, "copies it");
    assert.match(plain(await page.innerText("#changes")), /Version 2 is valid\..* 2 routes would change\..* GET \/mpp\/ethPrice New price/i);
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("[data-download]")]);
    assert.deepEqual([download.suggestedFilename(), readFileSync(await download.path(), "utf8")], ["version-2.json", text]);
    await checkPage(page, null);
    await page.click("#cancel-2");
    assert.match(plain(await page.innerText("dialog")), /It is scheduled for 2099-01-01 00:00:00 UTC\./);
    await page.click('dialog >> text="Keep it"');
    assert.equal(await page.evaluate(() => document.activeElement.id), "cancel-2");
    await page.click("#cancel-2");
    await page.click("dialog [type=submit]");
    assert.match(await page.innerText("#field-reason-error"), /^Say why/);
    await send(page, { reason: "Too dear" });
    await says(page, "Version 2 will not take effect.");
    assert.equal(plain(await page.innerText(".lead")), "cancelled");
    assert.match(await page.innerText("#figures"), /Cancelled \(UTC\)/);
    await page.click("#apply");
    await send(page, { when: "at", at: `${FAR}:00`, reason: "After all" });
    await says(page, `Version 3 takes effect at ${SHOWN} UTC.`);
    await page.click("#apply");
    await send(page, { reason: "Today" });
    assert.match(await page.innerText("#message"), /^Version 4 takes effect at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.$/);
    await visit(page, "Price versions");
    await page.click("#cancel-4");
    await send(page, { reason: "Not today" });
    await says(page, "Version 4 will not take effect.");
    assert.deepEqual((await list(page)).map(([, status]) => status), ["cancelled", "scheduled", "cancelled", "in force"]);
    await visit(page, "Audit log");
    assert.deepEqual(await newestEntry(page), { action: "catalogue.cancel", reason: "Not today", result: "done" });
    assert.match(plain(await page.innerText(".log")), /Cancelled a price version catalogue done .* Applied a catalogue catalogue done/i);
    await page.locator('.log a[href="#/prices"]').first().click();
    await page.waitForSelector('#view-title:has-text("Price versions")');
  },

  /** A version that another operator cancels, that takes effect, or whose cancellation is lost, while the list is open. */
  async consolePricesMeanwhile(visitor, { token, viewer, files }) {
    const page = await visitor.window({ expected: [404, 409, "ERR_FAILED"] });
    await enter(page, token);
    const other = await visitor.window();
    await enter(other, token);
    const [file] = files;
    for (const number of [2, 3, 4]) {
      await choose(page, files[number - 1]);
      await send(page, { when: "at", at: `2099-0${number}-01 00:00`, reason: "Later" });
      await says(page, `Version ${number} takes effect at 2099-0${number}-01 00:00:00 UTC.`);
    }
    await visit(page, "Price versions");
    const status = async (number) => (await list(page)).find(([name]) => name === `Version ${number}`)[1];

    await visit(other, "Price versions");
    await other.click("#cancel-2");
    await send(other, { reason: "First" });
    assert.equal(await status(2), "scheduled", "the list is old");
    await page.click("#cancel-2");
    await send(page, { reason: "Second" });
    await says(page, "Version 2 will not take effect.");
    assert.equal(await status(2), "cancelled");

    // The service cancels it, and the response is lost.
    await page.route("**/versions/3/cancel", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await page.click("#cancel-3");
    await page.fill("#field-reason", "Lost");
    await refused(page, /may have been taken: look at the audit log/);
    await page.click('dialog >> text="Keep it"');
    await page.waitForFunction(() => !document.querySelector("#cancel-3"));
    await shown(page);
    assert.equal(await status(3), "cancelled", "the list is read again");

    await choose(page, file);
    // It must be at least 15 seconds ahead when it arrives.
    const soon = new Date(Date.now() + 30_000).toISOString().slice(0, 19);
    await send(page, { when: "at", at: `${soon}Z`, reason: "Soon" });
    await visit(page, "Price versions");
    assert.equal(await status(5), "scheduled");
    const reader = await visitor.window({ expected: [404] });
    await enter(reader, viewer, "prices/5");
    assert.deepEqual(await reader.locator("#view button").allInnerTexts(), ["Download", "Copy\nthe catalogue"], "a viewer reads");
    await visit(reader, "Price versions");
    assert.equal(await reader.locator("#view :is(button:not([data-download]), #new-version)").count(), 0);
    await visit(reader, "Catalogue");
    await reader.setInputFiles("#catalogue-file", file);
    await reader.waitForSelector("#check-result .notice-good");
    assert.equal(await reader.locator("#apply").count(), 0);
    await reader.goto(`${reader.base}/console#/prices/9`);
    await reader.waitForSelector('#view-title:has-text("Could not load this page")');
    assert.match(await reader.innerText("#view"), /No price version 9/);
    await checkPage(reader, null);

    await page.waitForTimeout(Math.max(new Date(`${soon}Z`) - Date.now() + 100, 0));
    await page.click("#cancel-5");
    await page.fill("#field-reason", "Too late");
    await refused(page, /Version 5 took effect at .*; apply another catalogue instead/);
    await checkPage(page, null);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("#cancel-5"));
    await shown(page);
    assert.deepEqual([await status(5), await status(1)], ["in force", "past"]);
    assert.equal(await page.evaluate(() => document.activeElement.id), "view-title", "the button is gone");
    // A route with volume tiers in the list of what is served, once the server has switched.
    // `waitForFunction` takes any promise for true.
    const isServed = () => page.evaluate(async () => (await (await fetch("/admin/catalogue")).text()).includes("/mpp/extra"));
    for (let tries = 1; !(await isServed()); tries += 1) {
      assert.ok(tries < 120, "the server switches");
      await page.waitForTimeout(500);
    }
    await visit(page, "Catalogue");
    await page.fill("#route-filter", "extra");
    assert.match(plain(await page.innerText("#routes tbody")), /0 credits up to request 1,000 of a month, 0\.001 up to 100,000, 0\.0005 after that/);
    await checkPage(page, null);
  },

  /** The list, a version and both dialogs, in both schemes, on a phone and a desktop. */
  async consolePricesLooks(visitor, { token, file }) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await enter(page, token, "prices");
      await checkPage(page, `prices-${look(options)}`);
      await page.click("#cancel-2");
      await page.click("dialog [type=submit]");
      await checkPage(page, `price-cancel-${look(options)}`);
      await page.keyboard.press("Escape");
      await page.click('text="Version 2"');
      await page.waitForSelector("#catalogue-text");
      await checkPage(page, `price-${look(options)}`);
      await choose(page, file);
      await page.selectOption("#field-when", "at");
      await page.click("dialog [type=submit]");
      await checkPage(page, `price-apply-${look(options)}`);
    }
  },
};
