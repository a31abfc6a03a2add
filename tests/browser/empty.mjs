// Every page of customers on an empty store: one account, without credits or calls, and no plan on sale.

import { checkPage } from "./browser.mjs";
import { LOOKS, signIn } from "./steps.mjs";

/** Pages that need no key. There is no such receipt, payment or page. */
const PAGES = [
  "/metering",
  "/metering/account",
  "/metering/receipt?number=R-1-ABABABABABABABAB",
  `/metering/complete?account=org_${"a".repeat(20)}&plan=none&chain=1&tx=0x${"ab".repeat(32)}`,
  "/metering/nowhere",
  "/verify",
  "/agents-tos/1",
  "/docs",
  "/docs/mcp",
  "/docs/guides",
];
/** The content of each tab of the account then. */
const TABS = { usage: "#no-activity", keys: "#keys table", webhooks: "#no-webhooks", "top-up": ".card", connect: "#first-prompt", settings: "#change-billing" };

export const empty = {
  async emptyStore(visitor, { key }) {
    for (const options of LOOKS) {
      const page = await visitor.window({ ...options, expected: [400, 403, 404, 409, 503] });
      for (const path of PAGES) {
        await page.goto(page.base + path, { waitUntil: "networkidle" });
        await checkPage(page, null);
      }
      await signIn(page, key);
      for (const [tab, shown] of Object.entries(TABS)) {
        await page.click(`#tab-${tab}`);
        await page.waitForSelector(`#panel-${tab} ${shown}`);
        if (tab === "settings") await page.waitForSelector("text=No browser is kept signed in");
        await checkPage(page, null);
      }
      for (const [open, dialog] of [["usage", "#change-alert"], ["settings", "#change-billing"], ["keys", "#new-key"], ["webhooks", "#new-webhook"]]) {
        await page.click(`#tab-${open}`);
        await page.click(dialog);
        await page.waitForSelector("dialog");
        await checkPage(page, null);
        await page.keyboard.press("Escape");
        await page.waitForSelector("dialog", { state: "detached" });
      }
      await page.goto(page.base + PAGES[2]);
      await page.waitForFunction(() => /no receipt with this number/.test(document.querySelector("#receipt").innerText));
      await checkPage(page, null);
    }
  },
};
