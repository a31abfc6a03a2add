// The weight of the pages: the requests and bytes until each can be used, and the time that takes on a slow connection.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { enter } from "./console-steps.mjs";
import { signIn } from "./steps.mjs";

/** The selector that appears when a page can be used. */
const READY = { front: "#plans :is(.offer, .empty)", account: "#balance", docs: ".operation", guide: ".snippet-head button" };
/** A slow connection: milliseconds until a response begins, and bytes per second. */
const SLOW = { latency: 400, throughput: 50_000 };

/** Counts the requests of a page and their bytes as they are sent, from now on. */
async function weigh(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  await session.send("Network.setCacheDisabled", { cacheDisabled: true });
  const requests = new Map();
  // The browser's own icons, such as that of a date field, have `data:` URLs and are not sent.
  session.on("Network.requestWillBeSent", ({ requestId, request }) => request.url.startsWith("data:") || requests.set(requestId, { path: new URL(request.url).pathname, bytes: 0 }));
  session.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => requests.has(requestId) && (requests.get(requestId).bytes = encodedDataLength));
  const weight = () => {
    // Whether and when it asks for the icon is the browser's choice: it counts as one request.
    const all = [...requests.values()].filter(({ path }) => !/^\/assets\/(icon|mark)\./.test(path));
    return { requests: all.length + 1, bytes: all.reduce((sum, { bytes }) => sum + bytes, 0), list: all.map(({ path, bytes }) => `${path} ${bytes}`).join("\n") };
  };
  return { session, weight };
}

function assertLight(name, { requests, bytes, list }, most) {
  assert.ok(requests <= most.requests, `${name}: ${requests} requests:\n${list}`);
  assert.ok(bytes <= most.bytes, `${name}: ${bytes} bytes:\n${list}`);
  console.log(`${name}: ${requests} requests, ${(bytes / 1000).toFixed(1)} kB`);
}

export const weights = {
  /** The pages of customers, each from an empty cache. */
  async weights(visitor, { key, most }) {
    for (const [name, path] of [["front", "/metering"], ["docs", "/docs"], ["guide", "/docs/guides/webhooks"], ["account", "/metering/account"]]) {
      const page = await visitor.window();
      if (name === "account") await signIn(page, key);
      const { weight } = await weigh(page);
      await page.goto(page.base + path, { waitUntil: "networkidle" });
      await page.waitForSelector(READY[name]);
      const names = await page.evaluate(() => document.fonts.ready.then((fonts) => [...fonts].filter(({ status }) => status === "loaded").map(({ family }) => family)));
      assert.deepEqual(names, ["Inter"], `${name} has its font`);
      assertLight(name, weight(), most[name]);
      await checkPage(page, null);
    }
  },

  /** The console, from an empty cache to the overview. */
  async consoleWeights(visitor, { token, most }) {
    const page = await visitor.window();
    const { weight } = await weigh(page);
    await enter(page, token);
    await page.waitForLoadState("networkidle");
    assertLight("console", weight(), most);
  },

  /**
   * How long a signed-in user waits for the account on a slow connection. Only printed, because it depends on this
   * machine as well.
   */
  async slowAccount(visitor, { key }) {
    const page = await visitor.window();
    await signIn(page, key);
    const { session } = await weigh(page);
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: SLOW.latency, downloadThroughput: SLOW.throughput, uploadThroughput: SLOW.throughput });
    const started = Date.now();
    await page.goto(`${page.base}/metering/account`, { waitUntil: "commit" });
    await page.waitForSelector(READY.account);
    console.log(`usable after ${((Date.now() - started) / 1000).toFixed(1)} s at ${SLOW.latency} ms and ${SLOW.throughput / 1000} kB/s`);
    // The script of the other tabs is requested when one is opened.
    await page.click("#tab-keys");
    await page.waitForSelector("#panel-keys table");
    console.log(`the tab of keys after ${((Date.now() - started) / 1000).toFixed(1)} s`);
    await checkPage(page, null);
  },
};
