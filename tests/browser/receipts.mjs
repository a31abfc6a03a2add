// Scenes in which a user reads and prints a receipt.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage } from "./browser.mjs";
import { LOOKS, look, signIn, tabTo } from "./steps.mjs";

export const receipts = {
  /** A purchase has a receipt that prints correctly. */
  async receipt(visitor, { key, seller }) {
    for (const options of LOOKS) {
      const page = await visitor.window({ ...options, expected: [404] });
      await signIn(page, key);
      const number = page.locator("#purchases a").first();
      const text = await number.innerText();
      assert.match(text, /^R-\d+-[0-9A-F]{16}$/);
      await checkPage(page, null);
      await number.click();
      await page.waitForSelector("#receipt-number");
      assert.equal(await page.innerText("#receipt-number"), text);
      const words = await page.innerText("#receipt");
      for (const part of [seller, "1 High Street", "GB 123", "Starter", "10.5, 0.5 of them as a bonus", "USDC", "0x", "0.8612 EUR per USDC (ECB, 2026-11-27 00:00 UTC)", "0.69 EUR, VAT 19 %"]) assert.ok(words.includes(part), `${part} in ${words}`);
      assert.ok(!/false|null|undefined/.test(words), words);
      // The value is the amount with tax: the sum is there once, and its rate is named.
      const [, sum] = /With tax\s+(4\.3\d EUR)/.exec(words);
      assert.equal(words.split(sum).length, 2, words);
      assert.match(words, /Exchange rate\s+0\.8612 EUR per USDC/);
      assert.equal(await page.title(), `Receipt ${text} · ${seller}`);
      assert.deepEqual(await page.locator("#receipt button").evaluateAll((buttons) => buttons.map((button) => button.textContent)), ["Add billing details", "Copy the transaction", "Copy the payer", "Copy the recipient"]);
      await checkPage(page, `receipt-${look(options)}`);
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
      assert.equal(download.suggestedFilename(), `${text}.json`);
      assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).number, text);
      const [pdf] = await Promise.all([page.waitForEvent("download"), page.click("#download-pdf")]);
      assert.equal(pdf.suggestedFilename(), `${text}.pdf`);
      const file = readFileSync(await pdf.path(), "latin1");
      assert.ok(file.startsWith("%PDF-1.7") && file.includes(`/Title (Receipt ${text})`), file.slice(0, 100));
      await page.emulateMedia({ media: "print" });
      for (const part of [".top", ".foot", "#receipt-actions", "#receipt button >> nth=0"]) assert.ok(await page.isHidden(part), `${part} is not printed`);
      await checkPage(page, options.viewport.width === 1280 && options.colorScheme === "light" ? "receipt-printed" : null);
      await page.emulateMedia({ media: "screen" });
      // Its payment was taken back.
      const note = `${text.replace("R-", "C-")}-1`;
      await page.route(({ pathname, searchParams }) => pathname === "/credits/receipt" && searchParams.get("number") === note, async (route) => {
        const response = await route.fetch({ url: `${page.base}/credits/receipt?number=${text}` });
        const receipt = await response.json();
        const credited = { number: note, reference: note, issued_at: "2026-12-01T12:00:00.000Z", amount: "5", reason: "Ticket 17", cancelled_at: null, tax: receipt.tax };
        await route.fulfill({ response, json: { ...receipt, credit_notes: [credited] } });
      });
      await page.goto(`${page.base}/metering/receipt?number=${note}`);
      await page.waitForSelector("#receipt-number");
      assert.equal(await page.innerText("#receipt-number"), note);
      assert.match(await page.innerText("#receipt"), /Credit note[\s\S]*5 USDC credited on 1 December 2026[\s\S]*R-\d[\s\S]*VAT 19 %[\s\S]*Ticket 17/);
      await checkPage(page, null);
      await page.goto(`${page.base}/metering/receipt?number=R-1-ABABABABABABABAB`);
      await page.waitForFunction(() => /no receipt with this number/.test(document.querySelector("#receipt").innerText));
    }
    const without = await visitor.window();
    await without.goto(`${without.base}/metering/receipt?number=R-1-ABABABABABABABAB`);
    await without.waitForSelector("#receipt a");
    assert.match(await without.innerText("#receipt"), /belongs to an account/);
    await checkPage(without, null);
  },

  /** Billing details are added to the account, and once to a receipt without any; by keyboard and by mouse. */
  async billingDetails(visitor, { key }) {
    const page = await visitor.window({ expected: [400] });
    const press = (name) => page.keyboard.press(name);
    await signIn(page, key);
    const link = await page.locator("#purchases a").first().getAttribute("href");
    await page.click("#tab-settings");
    await page.waitForSelector("#change-billing");
    assert.match(await page.innerText("#billing"), /None yet/);
    await tabTo(page, "#change-billing");
    await press("Enter");
    await page.waitForSelector("dialog");
    await press("Enter");
    assert.match(await page.innerText("#field-name-error"), /Fill in this field/);
    await page.keyboard.type("Acme & Söhne");
    await press("Tab");
    await page.keyboard.type("Weg 1");
    await press("Enter");
    await page.keyboard.type("10115 Berlin");
    await press("Tab");
    await page.keyboard.type("DE 123456789");
    await checkPage(page, null);
    await press("Enter");
    await page.waitForSelector("dialog", { state: "detached" });
    await page.waitForFunction(() => document.querySelector("#billing address")?.innerText === "Acme & Söhne\nWeg 1\n10115 Berlin\nTax number DE 123456789");
    await page.waitForFunction(() => document.activeElement.id === "change-billing");

    // The earlier receipt has no billing details until its owner adds them, and then permanently.
    await page.goto(page.base + link);
    await page.click("#add-buyer");
    await page.waitForSelector("dialog");
    assert.match(await page.innerText("dialog"), /Acme & Söhne[\s\S]*cannot be changed later/);
    await checkPage(page, null);
    await page.click("dialog [type=submit]");
    await page.waitForSelector("#buyer address");
    assert.match(await page.innerText("#receipt-status"), /were added/);
    await page.goto(`${page.base}/metering/account#billing`);
    await page.click("#change-billing");
    await page.fill("#field-name", "x".repeat(20));
    await page.fill("#field-address", "");
    await page.fill("#field-tax_id", "");
    await page.click("dialog [type=submit]");
    await page.waitForFunction(() => document.querySelector("#billing address")?.innerText === "x".repeat(20));
    await page.goto(page.base + link);
    await page.waitForSelector("#buyer address");
    assert.match(await page.innerText("#buyer"), /Acme & Söhne[\s\S]*DE 123456789/);
    assert.equal(await page.locator("#add-buyer").count(), 0);
    await checkPage(page, "receipt-buyer");

    // Nobody in particular again.
    await page.goto(`${page.base}/metering/account#billing`);
    await page.click("#change-billing");
    await page.fill("#field-name", "");
    await page.click("dialog [type=submit]");
    await page.waitForFunction(() => /None yet/.test(document.querySelector("#billing").innerText));
  },
};
