// Scenes of an account whose credits are held for requests in progress.

import assert from "node:assert/strict";
import { checkPage } from "./browser.mjs";
import { LOOKS, look, signIn } from "./steps.mjs";

/** A service that serves requests itself: it holds, captures and releases credits. */
const resolver = (page, { key, secret }) => async (action, body) => {
  const headers = { "content-type": "application/json", authorization: `Bearer ${key}`, "x-bds-internal-billing-secret": secret };
  const response = await fetch(`${page.base}/internal/billing/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
};

const chat = (amount, path = "/v1/chat/completions") => ({ path, method: "POST", route_template: "/v1/chat/completions", amount });

async function refresh(page) {
  await page.click("#refresh");
  await page.waitForFunction(() => !document.querySelector("#refresh").hasAttribute("aria-busy"));
}

export const held = {
  /** Held credits are shown while there are any, with the requests that hold them. */
  async heldRequests(visitor, settings) {
    const page = await visitor.window();
    const bill = resolver(page, settings);
    const asked = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await signIn(page, settings.key);
    assert.equal(await page.locator("#held, #held-requests").count(), 0, "nothing is held");
    assert.ok(!asked.includes("/requests"), "an account that holds nothing is not asked for requests");

    const first = await bill("hold", chat("0.5"));
    const second = await bill("hold", chat("0.25", "/v1/chat/completions/7"));
    await refresh(page);
    assert.equal((await page.innerText("#held")).replaceAll(/\s+/g, " "), "0.75 more credits held for requests in progress");
    assert.equal(await page.getAttribute("#balance", "data-exact"), "1.25");
    const rows = page.locator("#held-requests tbody tr");
    assert.equal(await rows.count(), 2);
    for (const [place, { request }] of [second, first].entries()) {
      const text = await rows.nth(place).innerText();
      assert.ok(text.includes(request.id) && text.includes(`POST ${request.request_path}`), text);
    }
    await page.focus("#held a");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "held-requests" || location.hash === "#held-requests");
    assert.ok(await page.isVisible("#panel-usage"), "the link stays in the tab");
    await checkPage(page, "held");

    await bill("capture", { id: first.request.id, amount: "0.02" });
    await bill("release", { id: second.request.id });
    await refresh(page);
    await page.waitForFunction(() => !document.querySelector("#held, #held-requests"));
    assert.equal(await page.getAttribute("#balance", "data-exact"), "1.98");
    const kinds = await page.locator("[aria-labelledby=activity-title] tbody tr").allInnerTexts();
    assert.match(kinds.find((row) => row.includes("Released")) ?? "", /POST \/v1\/chat\/completions\/7/, kinds.join("\n"));
    assert.match(kinds.find((row) => row.includes("Usage")) ?? "", /-0\.02/, kinds.join("\n"));
    await checkPage(page, null);
  },

  /** The list is late, missing or long, and the rest of the page works. */
  async heldFailures(visitor, settings) {
    const page = await visitor.window({ expected: [503] });
    const bill = resolver(page, settings);
    const { request } = await bill("hold", chat("1"));
    let reply = { status: 503, json: { error: "storage_unavailable", message: "The database is busy." } };
    await page.route("**/requests", (route) => route.fulfill(reply));
    await signIn(page, settings.key);
    assert.equal((await page.innerText("#held")).replaceAll(/\s+/g, " "), "1 more credit held for requests in progress");
    assert.equal(await page.innerText("#held-requests [role=alert]"), "The database is busy.");
    await checkPage(page, null);
    // It was settled between the two responses.
    reply = { json: { data: [] } };
    await refresh(page);
    assert.match(await page.innerText("#held-requests"), /They have just been charged/);
    reply = { json: { data: Array.from({ length: 100 }, () => request) } };
    await refresh(page);
    assert.match(await page.innerText("#held-requests"), /These are the newest 100; there may be more\./);
    assert.equal(await page.locator("#held-requests tbody tr").count(), 5);
    await page.click("#held-requests .table-more");
    assert.equal(await page.locator("#held-requests tbody tr").count(), 100);
    // Entries of expired holds, which take longer to make than a test should.
    await page.route("**/credits/usage?*", async (route) => {
      const text = await (await route.fetch()).text();
      const entry = { id: "x", amount: -0.1, type: "hold_expired", http_method: "POST", route_template: "/v1/chat", request_path: "/v1/chat", client_source: "direct", calls: 1, created_at: "2026-11-21T08:00:00.000Z" };
      await route.fulfill({ json: { ...JSON.parse(text), transactions: [entry] } });
    });
    await refresh(page);
    await page.waitForSelector("[data-type=hold_expired]");
    assert.equal(await page.innerText("[data-type=hold_expired]"), "Charged on expiry");
    await bill("release", { id: request.id });
  },

  /** Phones and desktops, light and dark, with the longest path. */
  async heldLooks(visitor, settings) {
    for (const options of LOOKS) {
      const page = await visitor.window(options);
      const bill = resolver(page, settings);
      const long = `/v1/chat/completions/${"a-very-long-name-".repeat(8)}`;
      const holds = [await bill("hold", chat("0.25")), await bill("hold", chat("0.5", long))];
      await signIn(page, settings.key);
      await page.waitForSelector("#held-requests");
      await checkPage(page, `held-${look(options)}`);
      for (const { request } of holds) await bill("release", { id: request.id });
    }
  },
};
