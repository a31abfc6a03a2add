// Scenes of the page that verifies a signed receipt of a request.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { LOOKS } from "./steps.mjs";

export const verifyReceipt = {
  /** A receipt is valid or not, by the keys of this service or by pasted ones, and is sent nowhere. */
  async verifyReceipt(visitor, { receipt, tampered, keys, account }) {
    const page = await visitor.window(LOOKS[1]);
    const sent = [];
    page.on("request", (request) => sent.push(`${request.url()} ${request.postData()}`));
    await page.goto(`${page.base}/docs/guides`);
    await page.click('footer a:text-is("Verify a receipt")');
    await page.waitForURL(`${page.base}/verify-receipt`);
    const verify = async (text) => {
      await page.fill("#receipt", text);
      await page.click("#receipt-button");
      await page.waitForSelector("#receipt-result .notice, .field-error:not([hidden])");
      return page.innerText("#receipt-result");
    };
    const valid = await verify(`\n${receipt}\n`);
    assert.ok(valid.includes("This receipt is valid.") && valid.includes(account) && valid.includes("with a key of this service"), valid);
    await checkPage(page, null);
    assert.match(await verify(tampered), /^This receipt is not valid\. It was changed/);
    await checkPage(page, null);
    assert.match(await verify(receipt.slice(0, 40)), /complete receipt has six/);
    assert.ok(sent.every((request) => !request.includes(receipt.slice(0, 30))), sent.join("\n"));

    await page.click("summary");
    await page.fill("#keys", keys);
    assert.match(await verify(receipt), /is valid\. .* with one of the keys that you pasted/);
    await page.fill("#keys", '{"keys": []}');
    assert.match(await verify(receipt), /not among these keys/);
    await page.fill("#keys", "keys");
    assert.equal(await verify(receipt), "");
    assert.match(await page.innerText("#keys-error"), /not a JSON Web Key set/);
    await checkPage(page, null);

    const old = await visitor.window();
    await old.addInitScript(() => (SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException("", "NotSupportedError"))));
    await old.goto(`${old.base}/verify-receipt`);
    await old.waitForSelector("#receipt-unable:not([hidden])");
    assert.match(await old.innerText("#receipt-unable"), /has no Ed25519/);
    assert.ok(await old.isDisabled("#receipt-button"));
    await checkPage(old, null);
  },
};
