// Scenes in which a signed-in user tops up: with one of two wallets in the browser, with a phone, and with the keyboard.

import assert from "node:assert/strict";
import jsQR from "jsqr";
import { checkPage, storedData } from "./browser.mjs";
import { LOOKS, call, signIn } from "./steps.mjs";

const ICON = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' width='8' height='8'%3E%3Crect width='8' height='8' fill='teal'/%3E%3C/svg%3E";

export async function rpc(node, method, ...params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await (await fetch(node, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  assert.ok(!response.error, JSON.stringify(response.error));
  return response.result;
}

const bought = async (page, key) => (await (await call(page, "/credits/balance", key)).json()).total_credits_purchased;

/** Waits until a step is in a state, and returns its words. */
export async function step(page, name, state) {
  const item = page.locator(`[data-step=${name}][data-state=${state}]`);
  await item.waitFor();
  return item.innerText();
}

async function openTopUp(page, key) {
  await signIn(page, key);
  await page.click("#tab-top-up");
  await page.waitForSelector("[data-action=continue]");
}

/** Chooses the plan with this label, and continues to its quote. */
async function choosePlan(page, label) {
  await page.locator(".offer", { hasText: label }).locator("input").check();
  await page.click("[data-action=continue]");
  await page.waitForSelector("#purchase");
}

/** A payment was seen: nothing on the page asks for another one, before and after a reload. */
async function asksForNothing(page, recipient, confirmations) {
  for (const reloads of [true, false]) {
    await page.waitForSelector('#purchase[data-state="seen"]');
    assert.equal(await page.innerText("#purchase-title"), "Payment seen");
    for (const hidden of ["#other-wallet", "#why-exact", "[data-action=pay]", "[data-action=back]", "[data-action=renew]", "#purchase [data-needs=wallet]"]) {
      for (const part of await page.locator(hidden).all()) assert.ok(await part.isHidden(), `${hidden} asks to pay again`);
    }
    const words = await page.innerText("main");
    assert.ok(!words.toLowerCase().includes(recipient.toLowerCase()), `the address is still there: ${words}`);
    assert.match(words, confirmations);
    assert.ok(!words.includes("shares its address"), `a finished step says what it will do: ${words}`);
    assert.match(words, /Seen: 0x[0-9a-f]{8}…/);
    if (reloads) await page.reload();
  }
}

/** The heights of the halves of the addresses that can be seen, in lines. */
const halves = (page) =>
  page.locator("#purchase .half").evaluateAll((all) => {
    const seen = all.filter((half) => half.checkVisibility());
    return seen.map((half) => Math.round(half.offsetHeight / parseFloat(getComputedStyle(half).lineHeight)));
  });

/** The content of the QR code on the page, read from a screenshot as a phone would. */
async function scan(page) {
  const shot = (await page.locator("#other-wallet .qr").screenshot()).toString("base64");
  const { pixels, width, height } = await page.evaluate(async (png) => {
    const image = new Image();
    image.src = `data:image/png;base64,${png}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    return { pixels: [...canvas.getImageData(0, 0, image.width, image.height).data], width: image.width, height: image.height };
  }, shot);
  const code = jsQR(Uint8ClampedArray.from(pixels), width, height);
  assert.ok(code, "the code can be read");
  return code.data;
}

/** The transaction that a wallet makes of a payment URI (EIP-681). */
function transactionOf(uri) {
  const native = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\?value=(\d+)$/.exec(uri);
  if (native) return { to: native[1], value: `0x${BigInt(native[3]).toString(16)}` };
  const [, token, , recipient, amount] = /^ethereum:(0x[0-9a-fA-F]{40})@(\d+)\/transfer\?address=(0x[0-9a-fA-F]{40})&uint256=(\d+)$/.exec(uri);
  const word = (number) => BigInt(number).toString(16).padStart(64, "0");
  return { to: token, data: `0xa9059cbb${word(recipient)}${word(amount)}` };
}

export const buying = {
  /** The payer, without the account's key, signs on the page that a refused top-up names. */
  async complete(visitor, { url, node, payer, other }) {
    const named = [
      { name: "Payer", rdns: "com.payer.example", icon: ICON, account: payer },
      { name: "Other", rdns: "com.other.example", icon: ICON, account: other },
    ];
    const wrong = await visitor.window({ wallet: { node, account: other }, expected: [403] });
    await wrong.goto(url);
    await wrong.waitForSelector("#complete-sign:visible");
    await wrong.click("#complete-sign");
    await wrong.waitForSelector("#complete-error:visible");
    assert.match(await wrong.innerText("#complete-error"), /In your wallet, choose that address/);
    assert.ok(!wrong.walletCalls.includes("personal_sign"), "a wallet that did not pay is not asked to sign");

    const page = await visitor.window({ wallet: { node, named: named.slice(0, 1) }, expected: [403] });
    await page.goto(url);
    await page.waitForSelector("#complete-sign:visible");
    assert.equal((await page.innerText("#complete-payer")).toLowerCase(), payer.toLowerCase());
    assert.match(await page.textContent("#complete-message"), /Purpose: top-up/);
    await checkPage(page, "complete");
    await page.click("#complete-sign");
    await page.waitForSelector("#done-step:visible");
    assert.match(await page.innerText("#done-step"), /\+10\.5 credits for account org_/);
    assert.equal(await storedData(page), JSON.stringify({ session: {}, local: {}, cookie: "" }), "the page remembers nothing");
    // Opened again, it asks for nothing.
    await page.reload();
    await page.waitForSelector("#done-step:visible");
    assert.match(await page.innerText("#done-step"), /already credited/);
    assert.equal(page.walletCalls.filter((method) => method === "personal_sign").length, 1);

    const broken = await visitor.window();
    await broken.goto(url.replace(/&tx=.*/, ""));
    await broken.waitForSelector("#complete-error:visible");
    assert.match(await broken.innerText("#complete-error"), /not complete/);
  },

  /** Two wallets announce themselves; the user declines, then pays with the second one. */
  async buy(visitor, { key, node, accounts, explorer }) {
    let declines = true;
    const named = [
      { name: "First Wallet", rdns: "com.first.example", icon: ICON, account: accounts[0] },
      { name: "Second\u202e Wallet", rdns: "com.second.example", icon: "https://elsewhere.example/icon.png", account: accounts[1] },
    ];
    const wallet = { node, named, refuse: (method) => declines && method === "eth_sendTransaction" };
    const page = await visitor.window({ wallet });
    await openTopUp(page, key);
    const offers = await page.locator(".offer").allInnerTexts();
    assert.match(offers.join("\n"), /Starter\s+5 USDC\s+10 credits \+ 0\.5 bonus\s+Buys 75,600 calls to “Metadata of one pool” or 15,120 calls to “ETH price at the latest finalized block” or 7,560 calls to “ETH price at a block”/);
    assert.ok(!/weight/i.test(await page.innerText("main")), "nobody knows what a weight is");
    await checkPage(page, "top-up");
    await choosePlan(page, "Starter");
    // Everything is explained before anything is asked.
    const words = await page.innerText("#payment-progress");
    const amount = /exactly (5\.00\d+) USDC/.exec(words)?.[1];
    assert.ok(amount && BigInt(amount.replace(".", "").padEnd(7, "0")) % 4n === 0n, words);
    for (const part of ["shares its address", "Nothing to sign", "not a round amount because its last digits identify your payment. Pay exactly this amount", "on devnet, once", "Wait for 3 confirmations", "You get 10.5 credits and a receipt", "Price held for "]) assert.ok(words.includes(part), `${part} in ${words}`);
    assert.deepEqual(page.walletCalls, []);
    assert.deepEqual(await page.locator(".wallet-choice").allInnerTexts(), ["First Wallet", "Second Wallet"]);
    assert.equal(await page.locator(".wallet-choice img").count(), 1, "only data URIs are icons");
    await page.getByRole("radio", { name: "Second Wallet" }).check();
    await checkPage(page, "purchase");
    const pay = page.getByRole("button", { name: "Pay with Second Wallet" });
    await pay.click();
    await page.waitForSelector("#payment-progress [role=alert]:not([hidden])");
    assert.match(await page.innerText("#payment-progress [role=alert]"), /declined/);
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute("role")), "alert");
    assert.ok(await page.isVisible("#other-wallet"));
    await checkPage(page, "purchase-declined");

    declines = false;
    const before = await bought(page, key);
    await pay.click();
    const sent = await step(page, "send", "done");
    assert.match(sent, /(Sent|Seen): 0x[0-9a-f]{8}…[0-9a-f]{8}/);
    const from = accounts[1].toLowerCase();
    assert.equal((await step(page, "wallet", "done")).trim(), `Wallet ${from.slice(0, 6)}…${from.slice(-4)} connected.`, "a finished step says what happened");
    const link = page.locator("[data-step=send] a");
    assert.match(await link.getAttribute("href"), new RegExp(`^${explorer}/tx/0x[0-9a-f]{64}$`));
    assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
    assert.ok(await page.isHidden("#other-wallet"), "nobody is asked to pay twice");
    assert.match(page.walletAsked.at(-1), /^com\.second\.example /);
    assert.equal(page.walletSent.at(-1).from, accounts[1].toLowerCase());
    await page.waitForFunction(() => /1 of 3 confirmations/.test(document.querySelector("[data-step=confirm]").textContent));
    await checkPage(page, "purchase-confirming");
    assert.equal(await bought(page, key), before);
    await asksForNothing(page, page.walletSent.at(-1).data.slice(34, 74), /1 of 3 confirmations/);
    await rpc(node, "anvil_mine", "0x1");
    await page.waitForFunction(() => /2 of 3 confirmations/.test(document.querySelector("[data-step=confirm]").textContent));
    await rpc(node, "anvil_mine", "0x1");
    await page.waitForSelector("#topped-up");
    assert.match(await page.innerText("#topped-up"), /\+10\.5 credits\. The balance is [\d.]+\.[\s\d.]+Receipt R-\d+-[0-9A-F]{16}, transaction 0x/);
    assert.equal(await bought(page, key), before + 10.5);
    const balance = (await (await call(page, "/credits/balance", key)).json()).credit_balance;
    assert.equal(await page.getAttribute("#new-balance", "data-exact"), String(balance));
    await page.waitForSelector("#new-balance:not([data-rolling])");
    assert.ok((await page.innerText("#new-balance")).replace(/\s/g, "").startsWith(String(balance)), "the meter has rolled up");
    await page.waitForFunction((amount) => document.querySelector("#nav-balance").textContent === `Balance: ${amount} credits`, String(balance));
    assert.ok(!page.walletCalls.includes("personal_sign"), "nothing is signed");
    assert.ok(!/metering\.(payment|quote)/.test(await storedData(page)));
    const [receipt] = (await page.innerText("#topped-up")).match(/R-\d+-[0-9A-F]{16}/);
    await page.waitForFunction((number) => document.querySelector("#purchases").textContent.includes(number), receipt);
    assert.equal(await page.locator("#load-error").count(), 0, "the account was loaded again");
    await checkPage(page, "top-up-done");
    await page.getByRole("link", { name: "Open the receipt" }).click();
    await page.waitForSelector("#receipt-number");
    assert.ok((await page.innerText("#receipt")).includes(`${amount} USDC`));
    await page.goBack();
    await page.waitForSelector("[data-action=continue]");
    await choosePlan(page, "Coin");
    assert.ok(await page.getByRole("radio", { name: "Second Wallet" }).isChecked(), "the tab remembers the wallet");
  },

  /** A phone pays the QR code's amount, from an unknown wallet, while the page waits; then with a reload. */
  async phone(visitor, { key, node, payer }) {
    const page = await visitor.window({ expected: ["ERR_FAILED"] });
    await openTopUp(page, key);
    await choosePlan(page, "Starter");
    assert.match(await page.innerText("#purchase [data-needs=wallet]"), /no wallet in this browser/);
    const uri = await scan(page);
    const facts = await page.innerText(".pay-facts");
    assert.equal(uri, await page.getAttribute(".qr-frame", "href"));
    const [, recipient, units] = /address=(0x\w+)&uint256=(\d+)$/.exec(uri);
    assert.ok(facts.includes(recipient) && facts.includes(`${units[0]}.${units.slice(1)}`.replace(/0+$/, "")), facts);
    // The network has a name; its id is for those who look for it.
    assert.match(facts, /Network\s+devnet\s*$/);
    const details = page.locator("#other-wallet details");
    assert.ok(await details.locator("dl").isHidden());
    await checkPage(page, "purchase-phone");
    await details.locator("summary").click();
    assert.match(await details.innerText(), /Chain id\s+31337\s+Copy[\s\S]*Token contract\s+0x[0-9a-f]{40}\s+Copy/);
    assert.deepEqual(await page.locator("#other-wallet dl button").allTextContents(), ["Copy amount", "Copy to", "Copy chain id", "Copy token contract"]);
    await checkPage(page, null);
    // The watcher credits it: this page does not register it.
    await page.route("**/credits/topup", (route) => route.abort());
    const before = await bought(page, key);
    await rpc(node, "eth_sendTransaction", { from: payer, ...transactionOf(uri) });
    await page.waitForFunction(() => /[12] of 2 confirmations/.test(document.querySelector("[data-step=confirm]")?.textContent));
    await checkPage(page, "purchase-seen");
    await asksForNothing(page, recipient, /1 of 2 confirmations/);
    await rpc(node, "anvil_mine", "0x3");
    await page.waitForSelector("#topped-up");
    assert.equal(await bought(page, key), before + 10.5);
    await page.unroute("**/credits/topup");

    await page.getByRole("button", { name: "Top up again" }).click();
    await page.waitForSelector("[data-action=continue]");
    await choosePlan(page, "Coin");
    const native = await scan(page);
    assert.match(native, /^ethereum:0x[0-9a-fA-F]{40}@31337\?value=25\d{14}$/);
    await page.reload();
    await page.waitForSelector("#other-wallet .qr");
    assert.equal(await scan(page), native, "the same amount after a reload");
    await rpc(node, "eth_sendTransaction", { from: payer, ...transactionOf(native) });
    await rpc(node, "anvil_mine", "0x2");
    await page.waitForSelector("#topped-up");
    assert.equal(await bought(page, key), before + 14.5);

    // Paid while the page was closed.
    await page.getByRole("button", { name: "Top up again" }).click();
    await page.waitForSelector("[data-action=continue]");
    await choosePlan(page, "Starter");
    const third = await scan(page);
    await page.goto(`${page.base}/metering`);
    await rpc(node, "eth_sendTransaction", { from: payer, ...transactionOf(third) });
    await rpc(node, "anvil_mine", "0x3");
    for (let tries = 0; tries < 100 && (await bought(page, key)) < before + 25; tries += 1) await page.waitForTimeout(200);
    await page.goto(`${page.base}/metering/account#top-up`);
    await page.waitForSelector("#topped-up");
    await checkPage(page, null);
  },

  /** A payment is in a block that a reorganisation replaces: nothing is credited, and the page waits. */
  async dropped(visitor, { key, node, payer }) {
    const page = await visitor.window();
    await openTopUp(page, key);
    await choosePlan(page, "Starter");
    const transaction = { from: payer, ...transactionOf(await scan(page)) };
    const before = await bought(page, key);
    await rpc(node, "eth_sendTransaction", transaction);
    await rpc(node, "anvil_mine", "0x1");
    await page.waitForFunction(() => /1 of 3 confirmations/.test(document.querySelector("[data-step=confirm]").textContent));
    assert.ok(await page.isHidden("#other-wallet"));
    await rpc(node, "anvil_reorg", 1, []);
    await page.waitForFunction(() => /no longer in a block/.test(document.querySelector("[data-step=confirm]").textContent));
    assert.ok((await page.isVisible("#other-wallet")) && (await page.isHidden("#payment-reversed")), "it can be paid again, and nothing was credited");
    await checkPage(page, "purchase-dropped");
    await rpc(node, "anvil_mine", "0x6");
    assert.equal(await bought(page, key), before);
    await rpc(node, "eth_sendTransaction", transaction);
    await rpc(node, "anvil_mine", "0x3");
    await page.waitForSelector("#topped-up");
    assert.equal(await bought(page, key), before + 10.5);
  },

  /** A credited payment is removed by a reorganisation: the page says so, also after a reload, until it is paid again. */
  async reversal(visitor, { key, node, payer }) {
    const page = await visitor.window();
    await openTopUp(page, key);
    await choosePlan(page, "Starter");
    const transaction = { from: payer, ...transactionOf(await scan(page)) };
    const before = await bought(page, key);
    await rpc(node, "eth_sendTransaction", transaction);
    await rpc(node, "anvil_mine", "0x3");
    await page.waitForSelector("#topped-up");
    assert.equal(await bought(page, key), before + 10.5);
    await rpc(node, "anvil_reorg", 4, []);
    // Missing for as many blocks as crediting takes, in more than one check.
    for (let tries = 0; tries < 50 && (await bought(page, key)) !== before; tries += 1) {
      await rpc(node, "anvil_mine", "0x1");
      await page.waitForTimeout(300);
    }
    assert.equal(await bought(page, key), before, "the credits are taken back");
    await page.waitForSelector("#payment-reversed:not([hidden])");
    assert.match(await page.innerText("#payment-reversed"), /removed the payment, and its credits were taken back/);
    await step(page, "confirm", "now");
    await checkPage(page, "purchase-reversed");
    await page.reload();
    await page.waitForSelector("#payment-reversed:not([hidden])");
    // The wallet sends it again: another transaction with the same amount.
    await rpc(node, "eth_sendTransaction", transaction);
    await rpc(node, "anvil_mine", "0x3");
    await page.waitForSelector("#topped-up");
    assert.equal(await bought(page, key), before + 10.5);
  },

  /** The price expires on the page; a new amount is one press away. */
  async expiry(visitor, { key }) {
    const page = await visitor.window();
    await page.route("**/credits/topup/quote", async (route) => {
      const response = await route.fetch();
      const quote = await response.json();
      await route.fulfill({ response, json: { ...quote, expires_at: new Date(Date.now() + 3_000).toISOString() } });
    }, { times: 1 });
    await openTopUp(page, key);
    await choosePlan(page, "Starter");
    assert.match(await page.innerText("#time-left"), /^Price held for 0:0[0-4]\.$/);
    await page.waitForSelector("#quote-expired:not([hidden])");
    assert.ok((await page.isHidden("#other-wallet")) && (await page.isHidden("[data-action=pay]")), "an expired amount is not offered");
    await checkPage(page, "purchase-expired");
    await page.click("[data-action=renew]");
    await page.waitForSelector("#other-wallet:not([hidden]) .qr");
    assert.match(await page.innerText("#time-left"), /^Price held for (29|30):/);
    await page.click("[data-action=back]");
    await page.waitForSelector("[data-action=continue]");
    assert.ok(await page.locator(".offer", { hasText: "Starter" }).locator("input").isChecked());
  },

  /** A contract learns before any money moves that its coin cannot be credited; a delegation (EIP-7702) is no contract. */
  async contractWallet(visitor, { key, node, account }) {
    const wallet = { node, account, refuse: (method) => method === "eth_sendTransaction" };
    const page = await visitor.window({ wallet });
    await openTopUp(page, key);
    await choosePlan(page, "Coin");
    const said = async (code) => {
      await rpc(node, "anvil_setCode", account, code);
      const asked = page.walletCalls.length;
      await page.click("[data-action=pay]");
      await page.waitForSelector("#payment-progress [role=alert]:not([hidden])");
      return [await page.innerText("#payment-progress [role=alert]"), page.walletCalls.slice(asked)];
    };
    const [stopped, calls] = await said("0x6001600155");
    assert.match(stopped, /^Nothing was sent\. 0x\w{40} is a smart-contract wallet.*a plan that is paid in a token/);
    assert.ok(!calls.includes("eth_sendTransaction") && !calls.includes("personal_sign"), calls.join());
    assert.ok(await page.isVisible("#other-wallet .qr"), "what works is still there");
    assert.equal(await page.evaluate(() => sessionStorage.getItem("metering.payment")), null);
    await checkPage(page, "purchase-contract");
    const [declined, delegated] = await said(`0xef0100${"12".repeat(20)}`);
    assert.match(declined, /declined/);
    assert.ok(delegated.includes("eth_sendTransaction"));
    await page.click("[data-action=back]");
    await choosePlan(page, "Starter");
    const [inToken, asked] = await said("0x6001600155");
    assert.match(inToken, /declined/);
    assert.ok(asked.includes("eth_sendTransaction"), "a contract may pay in a token");
  },

  /** Every state of a purchase in both schemes, on a phone and a desktop. */
  async buyingLooks(visitor, { key, node, account }) {
    for (const options of [...LOOKS, { viewport: { width: 320, height: 700 } }]) {
      const name = (state) => `${state}-${options.viewport.width}-${options.colorScheme ?? "narrow"}`;
      const page = await visitor.window({ ...options, wallet: { node, account } });
      await page.goto(`${page.base}/metering`);
      await page.waitForSelector("#plans .offer");
      await checkPage(page, name("plans"));
      await openTopUp(page, key);
      await checkPage(page, name("top-up"));
      for (const label of ["Coin", "Starter"]) {
        await choosePlan(page, label);
        assert.deepEqual(await halves(page), [1, 1, 1, 1], "addresses break in their middle at most");
        await checkPage(page, label === "Starter" ? name("purchase") : null);
        if (label === "Coin") await page.click("[data-action=back]");
      }
      await page.click("[data-action=pay]");
      await page.waitForSelector("#topped-up #new-balance:not([data-rolling])");
      await checkPage(page, name("top-up-done"));
    }
  },
};
