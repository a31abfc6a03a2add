// Scenes that begin at the plans on the first page: with the keyboard, and without a key.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { signIn, signUp, tabTo } from "./steps.mjs";

export const plans = {
  /** From the first page to the wallet's request and back, with the keyboard alone. */
  async buyByKeyboard(visitor, { key, node, account }) {
    const page = await visitor.window({ wallet: { node, account } });
    await signIn(page, key);
    await page.goto(`${page.base}/metering`);
    await page.waitForSelector("#plans .offer");
    await tabTo(page, '#plans a[aria-label="Buy Coin on devnet"]');
    await page.keyboard.press("Enter");
    await page.waitForSelector("#purchase");
    assert.match(await page.innerText("#purchase-title"), /^Pay 0\.0025\d+ ETH$/, "the payment of the plan opens at once");
    assert.ok(!page.url().includes("plan="), "a reload does not buy it again");
    await tabTo(page, "[data-action=back]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-action=continue]");
    assert.ok(await page.locator(".offer", { hasText: "Coin" }).locator("input").isChecked(), "the plan of the link is chosen");
    await tabTo(page, "input[name=plan]");
    await page.keyboard.press("ArrowUp");
    assert.match(await page.innerText("[data-action=continue]"), /Starter for 5 USDC on devnet/);
    await tabTo(page, "[data-action=continue]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#purchase");
    assert.equal(await page.evaluate(() => document.activeElement.id), "purchase-title", "the focus is at the quote");
    await tabTo(page, "[data-action=back]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[data-action=continue]");
    await tabTo(page, "[data-action=continue]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#purchase");
    await tabTo(page, "[data-action=pay]");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#topped-up");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Topped up");
    await tabTo(page, "#topped-up a.button");
  },

  /** Without a key: the plan is kept through signing up, and through signing in, up to its payment. On a phone too. */
  async buyBeforeSignUp(visitor, { key }) {
    const opened = async (page) => {
      await page.waitForSelector("#purchase");
      assert.match(await page.innerText("#purchase-title"), /^Pay 5\.00\d+ USDC$/);
      assert.equal(await page.evaluate(() => sessionStorage.getItem("metering.plan")), null, "once is enough");
      const amount = await page.innerText("#purchase-title");
      await page.reload();
      await page.waitForSelector("#purchase");
      assert.equal(await page.innerText("#purchase-title"), amount, "the same amount after a reload");
    };
    for (const viewport of [{ width: 375, height: 812 }, { width: 1280, height: 812 }]) {
      const page = await visitor.window({ viewport });
      await page.goto(`${page.base}/metering`);
      await page.waitForSelector("#plans .offer");
      assert.ok(await page.isHidden("#buying"));
      await tabTo(page, '#plans a[aria-label="Buy Starter on devnet"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector("#buying:not([hidden])");
      assert.match(await page.innerText("#buying"), /^You are buying Starter for 5 USDC on devnet\. Sign in/);
      await checkPage(page, `buying-sign-in-${viewport.width}`);
      await tabTo(page, '#buying a[href^="/metering"]');
      await page.keyboard.press("Enter");
      await page.waitForSelector("#signup #email:visible");
      await page.waitForSelector("#buying:not([hidden])");
      assert.match(await page.innerText("#buying"), /Sign up to continue to the payment/);
      await checkPage(page, `buying-sign-up-${viewport.width}`);
      await signUp(page, `buyer-${viewport.width}@example.com`);
      await page.waitForSelector("#api-key");
      assert.ok(await page.isHidden("#buying"));
      await page.getByRole("link", { name: "Continue to the payment" }).click();
      await opened(page);
      assert.equal(await page.isVisible("[data-action=open-wallet]"), viewport.width === 375, "a phone opens its wallet");
    }

    const page = await visitor.window();
    await page.goto(`${page.base}/metering`);
    await page.getByRole("link", { name: "Buy Starter on devnet" }).click();
    await page.waitForSelector("#buying:not([hidden])");
    await page.fill("#key", key);
    await page.keyboard.press("Enter");
    await opened(page);

    const other = await visitor.window();
    await other.goto(`${other.base}/metering`);
    await other.getByRole("link", { name: "Buy Starter on devnet" }).click();
    await other.click("[data-action=cancel-plan]");
    assert.ok(await other.isHidden("#buying"));
    assert.equal(await other.evaluate(() => document.activeElement.id), "key", "the focus is at what comes next");
    await signIn(other, key);
    assert.ok(await other.isVisible("#panel-usage"), "nothing is bought");
  },
};
