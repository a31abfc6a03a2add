// Scenes in which a signed-in user pays by signature: the wallet signs, and the service sends the transaction.

import assert from "node:assert/strict";
import { checkPage, storedData } from "./browser.mjs";
import { rpc, step } from "./buying.mjs";
import { LOOKS, call, signIn, tabTo } from "./steps.mjs";

const SIGN = "eth_signTypedData_v4";
const balance = async (page, key) => (await (await call(page, "/credits/balance", key)).json()).credit_balance;
const signatures = (page) => page.walletCalls.filter((method) => method === SIGN).length;

async function openForm(page, key) {
  await signIn(page, key);
  await page.click("#tab-top-up");
  await page.waitForSelector("#sign-form [data-action=sign]");
}

/** Waits until the service has said that the payment is not in a block yet. */
const untilPending = (page) => page.waitForFunction(() => /not in a block yet/.test(document.querySelector("[data-step=settle]")?.textContent));

async function problem(page) {
  const alert = page.locator("#sign-form [role=alert]");
  await alert.waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "alert");
  return alert.innerText();
}

export const signing = {
  /** The wallet is on another chain, has too few tokens, and declines; then it signs, and the page shows the credits. */
  async signature(visitor, { key, node, account, poor }) {
    let declines = true;
    const named = [{ name: "Wallet", rdns: "com.wallet.example", account: poor }];
    const page = await visitor.window({ wallet: { node, named, chain: { id: "0x1" }, refuse: (method) => declines && method === SIGN } });
    await openForm(page, key);
    const offers = await page.locator("#sign-form .offer").allInnerTexts();
    assert.deepEqual(offers.map((words) => words.replace(/\s+/g, " ")), ["0.05 USDC on base-sepolia 0.05 credits", "0.5 USDC on base-sepolia 0.5 credits"]);
    assert.match(await page.innerText("#sign-form"), /you pay no gas/);
    assert.deepEqual(page.walletCalls, []);
    await page.click("[data-action=sign]");
    assert.match(await problem(page), /less than 0\.05 USDC/);
    assert.ok(page.walletCalls.includes("wallet_switchEthereumChain"), "the wallet was on another chain");
    assert.equal(signatures(page), 0);
    named[0].account = account;
    await page.click("[data-action=sign]");
    assert.match(await problem(page), /declined/);
    await checkPage(page, "sign-declined");
    declines = false;
    await tabTo(page, "[data-action=sign]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#topped-up");
    assert.match(await page.innerText("#topped-up"), /\+0\.05 credits\. The balance is 0\.05\.[\s\d.]+Receipt R-84532-[0-9A-F]{16}, transaction 0x[0-9a-f]{8}…/);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Topped up");
    assert.equal(await balance(page, key), 0.05);
    assert.equal(signatures(page), 2, "one was declined");
    assert.ok(!page.walletCalls.includes("eth_sendTransaction"), "the wallet sends nothing");
    assert.ok(!(await storedData(page)).includes("metering.signed"));
    await checkPage(page, "sign-done");
    await page.getByRole("link", { name: "Open the receipt" }).click();
    await page.waitForSelector("#receipt-number");
    assert.match(await page.innerText("#receipt"), /0\.05/);
    await page.goBack();
    // Another amount, and another payment.
    await page.waitForSelector("#sign-form [data-action=sign]");
    await page.locator("#sign-form .offer", { hasText: "0.5 USDC" }).locator("input").check();
    assert.equal(await page.innerText("[data-action=sign]"), "Sign to pay 0.5 USDC");
    await page.click("[data-action=sign]");
    await page.waitForSelector("#topped-up");
    assert.equal(await balance(page, key), 0.55);
  },

  /** The payment is not in a block for a while: two clicks, a lost response, a reload and leaving the tab pay once. */
  async pendingSignature(visitor, { key, node, account }) {
    const page = await visitor.window({ wallet: { node, account }, expected: [503, "ERR_FAILED"] });
    await rpc(node, "evm_setAutomine", false);
    const headers = new Set();
    page.on("request", (request) => request.url().endsWith("/credits/pay") && headers.add(request.headers()["payment-signature"]));
    // The first response is lost.
    await page.route("**/credits/pay", async (route) => {
      await route.fetch();
      await route.abort();
    }, { times: 1 });
    await openForm(page, key);
    await page.dblclick("[data-action=sign]");
    await page.waitForFunction(() => /Could not reach the service/.test(document.querySelector("[data-step=settle]")?.textContent));
    await untilPending(page);
    for (const [name, words] of [["wallet", /^Wallet 0x[0-9a-f]{4}…[0-9a-f]{4} connected\.\s*$/], ["sign", /^You signed a payment of 0\.05 USDC on base-sepolia\.\s*$/]]) assert.match(await step(page, name, "done"), words);
    await checkPage(page, "sign-pending");
    await page.reload();
    await page.click("#tab-top-up");
    await untilPending(page);
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await page.waitForSelector("#signed-pending");
    assert.match(await page.innerText("#signed-pending"), /0\.05 USDC is not confirmed yet\. .*Do not pay again/);
    assert.equal(await page.locator("#sign-form").count(), 0, "no other payment is offered meanwhile");
    await checkPage(page, "sign-waits");
    await page.click("[data-action=resume]");
    await untilPending(page);
    assert.equal(await balance(page, key), 0);
    await rpc(node, "anvil_mine", "0x1");
    await rpc(node, "evm_setAutomine", true);
    await page.waitForSelector("#topped-up");
    assert.equal(await balance(page, key), 0.05);
    assert.equal(signatures(page), 1);
    assert.equal(headers.size, 1, "the same signature every time");
    await checkPage(page, null);
  },

  /**
   * The payment is refused permanently: nothing was taken, and the form returns. A payment of another account is not
   * sent.
   */
  async refusedSignature(visitor, { key, other, node, account }) {
    const page = await visitor.window({ wallet: { node, account }, expected: [402, 404] });
    await openForm(page, key);
    await page.route("**/credits/pay", async (route) => {
      // As if it had been changed in transit: the signature is another one.
      const headers = route.request().headers();
      const payment = JSON.parse(atob(headers["payment-signature"]));
      payment.payload.signature = `0x${"11".repeat(65)}`;
      await route.continue({ headers: { ...headers, "payment-signature": btoa(JSON.stringify(payment)) } });
    }, { times: 1 });
    await page.click("[data-action=sign]");
    assert.match(await problem(page), /signature is not that of .*Nothing was taken/);
    assert.ok(!(await storedData(page)).includes("metering.signed"));
    // The service stops selling while a payment is in progress: it is kept, and can be sent again or forgotten.
    await page.route("**/credits/pay", (route) => route.fulfill({ status: 404, json: { error: "not_found", message: "Nothing is at this path." } }), { times: 1 });
    await page.click("[data-action=sign]");
    await page.waitForSelector("#signed-payment [role=alert]:not([hidden])");
    assert.match(await page.innerText("#signed-payment"), /Nothing is at this path\. Whether the payment was taken is not known yet/);
    await checkPage(page, "sign-kept");
    // Another account in this tab does not get it.
    await page.evaluate((other) => sessionStorage.setItem("metering.key", other), other);
    await page.reload();
    await page.click("#tab-top-up");
    await page.waitForSelector("#signed-payment [role=alert]:not([hidden])");
    assert.match(await page.innerText("#signed-payment"), /A signed payment for account org_\w+ has not been confirmed yet/);
    assert.equal(await balance(page, other), 0);
    await page.evaluate((key) => sessionStorage.setItem("metering.key", key), key);
    await page.reload();
    await page.click("#tab-top-up");
    await page.waitForSelector("#topped-up");
    assert.equal(await balance(page, key), 0.05);
    assert.equal(await balance(page, other), 0);
    assert.equal(signatures(page), 2);
  },

  /** The form beside the plans, without a wallet too, and a payment that waits for the wallet; in both schemes and widths. */
  async signingLooks(visitor, { key, node, account }) {
    for (const options of [...LOOKS, { viewport: { width: 320, height: 700 } }]) {
      const name = (state) => `${state}-${options.viewport.width}-${options.colorScheme ?? "narrow"}`;
      let signs;
      const hold = (method) => method === SIGN && new Promise((done) => (signs = done));
      const page = await visitor.window({ ...options, wallet: { node, account, hold } });
      await openForm(page, key);
      await page.waitForSelector("[data-action=continue]");
      await checkPage(page, name("sign-form"));
      await page.click("[data-action=sign]");
      await step(page, "sign", "now");
      await checkPage(page, name("sign"));
      await page.getByRole("button", { name: "Stop waiting for the wallet" }).click();
      assert.match(await problem(page), /stopped waiting/);
      signs();
      const without = await visitor.window(options);
      await openWithout(without, key);
      await checkPage(without, name("sign-no-wallet"));
    }
  },
};

async function openWithout(page, key) {
  await signIn(page, key);
  await page.click("#tab-top-up");
  await page.waitForSelector("#sign-form [data-needs=wallet]:not([hidden])");
  assert.ok(await page.isHidden("[data-action=sign]"));
}
