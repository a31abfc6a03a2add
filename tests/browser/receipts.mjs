// Scenes in which a user reads and prints a receipt.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { checkPage } from "./browser.mjs";
import { LOOKS, look, signIn } from "./steps.mjs";

export const receipts = {
  /** A purchase has a receipt, which prints well. */
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
      for (const part of [seller, "1 High Street", "GB 123", "Starter", "10.5, 0.5 of them as a bonus", "USDC", "0x"]) assert.ok(words.includes(part), `${part} in ${words}`);
      assert.ok(!/false|null|undefined/.test(words), words);
      assert.equal(await page.title(), `Receipt ${text} · ${seller}`);
      assert.deepEqual(await page.locator("#receipt button").evaluateAll((buttons) => buttons.map((button) => button.textContent)), ["Copy the transaction", "Copy the payer", "Copy the recipient"]);
      await checkPage(page, `receipt-${look(options)}`);
      const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
      assert.equal(download.suggestedFilename(), `${text}.json`);
      assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).number, text);
      await page.emulateMedia({ media: "print" });
      for (const part of [".top", ".foot", "#receipt-actions", "#receipt button >> nth=0"]) assert.ok(await page.isHidden(part), `${part} is not printed`);
      await checkPage(page, options.viewport.width === 1280 && options.colorScheme === "light" ? "receipt-printed" : null);
      await page.emulateMedia({ media: "screen" });
      await page.goto(`${page.base}/metering/receipt?number=R-1-ABABABABABABABAB`);
      await page.waitForFunction(() => /no receipt with this number/.test(document.querySelector("#receipt").innerText));
    }
    const without = await visitor.window();
    await without.goto(`${without.base}/metering/receipt?number=R-1-ABABABABABABABAB`);
    await without.waitForSelector("#receipt a");
    assert.match(await without.innerText("#receipt"), /belongs to an account/);
    await checkPage(without, null);
  },
};
