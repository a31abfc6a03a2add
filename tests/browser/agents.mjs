// Scenes in which a user connects an agent.

import assert from "node:assert/strict";
import { checkPage, shows } from "./browser.mjs";
import { LOOKS, call, copied, look, signIn, watchClipboard } from "./steps.mjs";

export const agents = {
  /** Instructions for every client; the key is on the page only while it is revealed. */
  async connect(visitor, { key, tools }) {
    const page = await visitor.window();
    await watchClipboard(page);
    await page.addInitScript(() => {
      globalThis.__links = [];
      addEventListener("click", (event) => {
        const link = event.target.closest?.("a[href^='cursor:'], a[href^='vscode:']");
        if (!link) return;
        event.preventDefault();
        globalThis.__links.push(link.href);
      }, true);
    });
    await signIn(page, key);
    await page.click("#tab-connect");
    await page.waitForSelector("#first-prompt");
    const url = `${page.base}/mcp`;
    const texts = {};
    for (const client of ["claude-code", "claude-desktop", "cursor", "vs-code", "codex", "json"]) {
      await page.click(`[data-client=${client}]`);
      assert.ok(!(await shows(page, key)), `${client}: the key is masked`);
      await page.click("#client-panel .snippet button");
      texts[client] = await copied(page);
      assert.ok(texts[client].includes(url), client);
      assert.equal(texts[client].includes(key), client !== "vs-code", client);
    }
    assert.equal(texts["claude-code"], `claude mcp add --transport http metering ${url} --header "Authorization: Bearer ${key}"`);
    const desktop = JSON.parse(texts["claude-desktop"]).mcpServers.metering;
    assert.deepEqual(desktop, { command: "npx", args: ["-y", "mcp-remote", url, "--allow-http", "--header", "Authorization:${AUTH_HEADER}"], env: { AUTH_HEADER: `Bearer ${key}` } });
    assert.deepEqual(JSON.parse(texts.cursor), { mcpServers: { metering: { url, headers: { Authorization: `Bearer ${key}` } } } });
    assert.equal(JSON.parse(texts["vs-code"]).servers.metering.headers.Authorization, "Bearer ${input:metering-key}");
    assert.match(texts.codex, /bearer_token_env_var = "METERING_API_KEY"$/);
    assert.equal(JSON.parse(texts.json).mcpServers.metering.type, "http");

    for (const client of ["cursor", "vs-code"]) {
      await page.click(`[data-client=${client}]`);
      assert.ok(!(await page.content()).includes("mcp/install"), "a link is made only when it is pressed");
      assert.match(await page.innerText(".install"), client === "cursor" ? /contains your key/ : /contains no key/);
      await page.click(`[data-install=${client}]`);
    }
    const [cursor, code] = (await page.evaluate(() => globalThis.__links)).map((link) => new URL(link));
    assert.equal(cursor.href.split("?")[0], "cursor://anysphere.cursor-deeplink/mcp/install");
    assert.equal(cursor.searchParams.get("name"), "metering");
    assert.deepEqual(JSON.parse(atob(cursor.searchParams.get("config"))), { url, headers: { Authorization: `Bearer ${key}` } });
    assert.equal(code.href.split("?")[0], "vscode:mcp/install");
    const install = JSON.parse(decodeURIComponent(code.search.slice(1)));
    assert.deepEqual([install.name, install.type, install.url, install.inputs[0].password], ["metering", "http", url, true]);
    assert.ok(!code.href.includes(key));

    await page.click("[data-client=json]");
    await page.click("#reveal-key");
    assert.ok((await page.innerText("#client-panel")).includes(key));
    await page.click("#reveal-key");
    assert.ok(!(await shows(page, key)));

    await page.click("#check-connection");
    await page.waitForFunction(() => /It works/.test(document.querySelector("#check-status").textContent));
    assert.match(await page.innerText("#check-status"), new RegExp(`It works: ${tools} tools`));
    assert.match(await page.innerText("#first-prompt"), /Call the tool \w+ with \w+ \w+/);
    await page.click("[aria-labelledby=first-call-title] .snippet button");
    const [, target] = (await copied(page)).match(/^curl -H "Authorization: Bearer sk_live_\w+" "(.*)"$/);
    assert.equal((await call(page, target.slice(page.base.length), key)).status, 200, "the example works");
    await checkPage(page, "connect");
    await page.goto(`${page.base}/docs/mcp`);
    await page.waitForSelector("#first-prompt");
    assert.ok(!(await shows(page, key)));
    await page.click("#client-panel .snippet button");
    assert.ok((await copied(page)).includes(key), "signed in, the page about MCP knows the key");

    for (const options of LOOKS) {
      const other = await visitor.window(options);
      await other.goto(`${other.base}/docs/mcp`);
      await other.waitForSelector("#first-prompt");
      assert.match(await other.innerText("#client-panel"), /sk_live_YOUR_KEY/);
      await checkPage(other, `mcp-${look(options)}`);
      await signIn(other, key);
      await other.click("#tab-connect");
      await other.waitForSelector("#first-prompt");
      await other.click("[data-client=cursor]");
      await checkPage(other, `connect-${look(options)}`);
    }
  },
};
