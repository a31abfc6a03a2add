// Scenes on the guides: from the side bar and from the search, code in several languages, and the operator's own pages.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { LOOKS, copied, look, tabTo, watchClipboard } from "./steps.mjs";

const title = (page) => page.locator("#guide h1").innerText();
/** The section about deliveries, which has "retries" only in its text, among what the search found. */
const DELIVERY = "#guides [data-heading]:not([hidden]) a[href='/docs/guides/webhooks#delivery']";
const shownCode = (page) => page.locator(".code-choices").first().locator("[role=tabpanel]:visible code").innerText();

async function openReference(page) {
  await page.goto(`${page.base}/docs`);
  await page.waitForSelector(".operation");
}

export const guides = {
  /** A reader opens a guide from the side bar, and finds others with the search. */
  async guides(visitor) {
    const page = await visitor.window({ viewport: { width: 1280, height: 900 } });
    await watchClipboard(page);
    await openReference(page);
    const titles = await page.locator("#contents > div").first().locator("a").allInnerTexts();
    assert.deepEqual([titles.length, titles[0], titles.at(-1)], [9, "Quickstart", "Our data"]);
    await page.click("#contents a:text-is('Webhooks and events')");
    await page.waitForURL("**/docs/guides/webhooks");
    assert.equal(await title(page), "Webhooks and events");
    assert.equal(await page.locator(".contents a[aria-current=page]").innerText(), "Webhooks and events");
    await checkPage(page, "guide-webhooks");

    // Three languages as tabs; the chosen one is copied.
    const languages = page.locator(".code-choices").first().locator("[role=tab]");
    assert.deepEqual(await languages.allInnerTexts(), ["Python", "TypeScript", "Go"]);
    assert.match(await shownCode(page), /from standardwebhooks import Webhook/);
    await languages.nth(2).click();
    assert.match(await shownCode(page), /standardwebhooks\.NewWebhook/);
    await page.locator(".code-choices [role=tabpanel]:visible button").first().click();
    assert.equal(await copied(page), await page.locator(".code-choices [role=tabpanel]:visible code").first().textContent());
    await page.click(".contents a:text-is('Delivery')");
    assert.ok(page.url().endsWith("#delivery"));
    assert.ok(await page.locator(".contents a:text-is('Delivery')").evaluate((link) => link.getBoundingClientRect().top >= 0 && link.getBoundingClientRect().bottom <= innerHeight), "the list stays in view");

    // With the keyboard: to the tabs, along them, and on to the next guide.
    await page.goto(`${page.base}/docs/guides/quickstart`);
    await page.waitForSelector("[role=tab]");
    await tabTo(page, "[role=tab]");
    await page.keyboard.press("End");
    assert.match(await shownCode(page), /await fetch\(/);
    await tabTo(page, ".guide-next a");
    await page.keyboard.press("Enter");
    await page.waitForURL("**/docs/guides/errors");

    // The search finds a guide by a heading, and leads there.
    await openReference(page);
    assert.ok(await page.isHidden("#guides"), "the side bar has the list");
    await page.fill("#filter", "verify signature");
    assert.match(await page.textContent("#docs-status"), /^1 guide\b/);
    const found = page.locator("#guides [data-heading]:visible");
    assert.deepEqual(await found.allInnerTexts(), ["Verify the signature"]);
    await checkPage(page, "guides-found");
    await found.first().locator("a").click();
    await page.waitForURL("**/docs/guides/webhooks#verify-the-signature");
    await openReference(page);
    await page.fill("#filter", "nosuchword");
    assert.equal(await page.textContent("#docs-status"), "0 endpoints");
    assert.ok(await page.isHidden("#guides"));
    // The text is searched, too.
    await page.fill("#filter", "webhook-timestamp");
    await page.waitForSelector("#guides [data-heading]:not([hidden]) a[href^='/docs/guides/webhooks#']");
    assert.match(await page.textContent("#docs-status"), /^1 guide\b/);
    // Titles come first, then guides that have the word in their text.
    const shown = () => page.locator("#guides [data-guide]:visible > a").allInnerTexts();
    await page.fill("#filter", "retries");
    await page.waitForSelector(DELIVERY);
    const [first, ...others] = await shown();
    assert.equal(first, "Rate limits and retries");
    assert.ok(others.includes("Webhooks and events") && others.includes("Errors and refusals"), others.join());
    assert.ok((await page.textContent("#docs-status")).startsWith(`${others.length + 1} guides`));
    await page.fill("#filter", "");
    const order = await page.locator("#guides [data-guide] > a").allTextContents();
    assert.deepEqual(order, titles, "without words, the guides are in their own order");
    await page.fill("#filter", "retries");
    await page.waitForSelector(DELIVERY);
    await checkPage(page, null);
  },

  /** The operator's name, URL and routes are in the guides, and their own pages are next to them. */
  async ownGuides(visitor, { brand }) {
    const page = await visitor.window();
    await page.goto(`${page.base}/docs/guides/quickstart`);
    const text = await page.locator("#guide").innerText();
    assert.ok(text.includes(brand) && text.includes(`${page.base}/mpp/`) && !text.includes("{{"), text);
    await page.goto(`${page.base}/docs/guides`);
    await checkPage(page, "guides");
    await page.click(".guide-cards a:text-is('Our data')");
    await page.waitForURL("**/docs/guides/our-data");
    assert.match(await page.locator("#guide").innerText(), /^All guides\s+Our data\s+From Acme Data\. <b>Bold<\/b>/);
    await checkPage(page, "guide-own");
    // Ours was replaced.
    await page.goto(`${page.base}/docs/guides/tokens`);
    assert.equal(await title(page), "Our prices");
  },

  /** Without scripts, a guide is there in full, with all languages in sequence. */
  async guideWithoutScripts(visitor) {
    const page = await visitor.window({ javaScriptEnabled: false, axe: false });
    await page.goto(`${page.base}/docs/guides/webhooks`);
    assert.equal(await page.locator(".code-choices .snippet:visible").count(), 3);
    assert.equal(await page.locator("noscript").count(), 0, "nothing says that the page needs scripts");
  },

  /** Each guide, in both schemes, on a phone and a desktop. */
  async guideLooks(visitor) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      await page.goto(`${page.base}/docs/guides`);
      const paths = await page.locator(".guide-cards a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      await checkPage(page, `guides-${look(options)}`);
      for (const path of paths) {
        await page.goto(page.base + path);
        const cutOff = await page.locator(":is([data-language=JSON], [data-language=HTTP]) pre").evaluateAll((all) => all.filter((code) => code.scrollWidth > code.clientWidth).map((code) => code.textContent));
        assert.deepEqual(cutOff, [], `${path}: examples are shown in full`);
        await checkPage(page, `guide-${path.split("/").at(-1)}-${look(options)}`);
      }
      await openReference(page);
      await page.fill("#filter", "retry");
      await page.waitForSelector(DELIVERY);
      await checkPage(page, `guides-found-${look(options)}`);
    }
  },
};
