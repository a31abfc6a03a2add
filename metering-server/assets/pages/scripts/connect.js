// How to connect an agent (MCP): the text for each client, with URL and key filled in, a check, and a first call. The key
// is in the page only while it is revealed.

import { callApi, sentence } from "/assets/api.js";
import { CLIENTS, serverName } from "/assets/clients.js";
import { busy, h } from "/assets/dom.js";
import { exampleCall, toolOf } from "/assets/firstcall.js";
import { copyButton } from "/assets/secret.js";
import { SESSION, rememberedKey } from "/assets/session.js";

const PLACEHOLDER = "sk_live_YOUR_KEY";
const MASK = "sk_live_••••••••";

/** Fills `place`. `key()` is the signed-in key, or null. */
export function showConnect(place, key) {
  const { apiUrl, brand } = document.body.dataset;
  const origin = apiUrl || location.origin;
  const server = { name: serverName(brand), url: `${origin}/mcp` };
  const visit = { key, server, origin, isHere: origin === location.origin };
  const check = checkConnection(visit);
  place.replaceChildren(
    h("div", { class: "connect" }, h("section", { class: "card", "aria-labelledby": "clients-title" }, h("h2", { id: "clients-title" }, "Your client"), ...clients(visit)), h("section", { class: "card", "aria-labelledby": "first-call-title" }, h("h2", { id: "first-call-title" }, "Your first call"), ...firstCall(visit, check))),
  );
}

function clients({ key, server }) {
  let chosen = CLIENTS[0];
  let revealed = false;
  const panel = h("div", { id: "client-panel" });
  const draw = () => {
    const shownKey = key() ? (revealed ? key() : MASK) : PLACEHOLDER;
    panel.replaceChildren(...instructions(chosen, server, key, shownKey));
  };
  const tabs = h("div", { class: "segments", role: "group", "aria-label": "Client" });
  for (const client of CLIENTS) {
    const button = h("button", { type: "button", "data-client": client.id, "aria-pressed": String(client === chosen), "aria-controls": "client-panel" }, client.name);
    button.addEventListener("click", () => {
      chosen = client;
      for (const other of tabs.children) other.setAttribute("aria-pressed", String(other === button));
      draw();
    });
    tabs.append(button);
  }
  const reveal = h("button", { class: "button button-quiet button-small", type: "button", id: "reveal-key", "aria-pressed": "false" }, "Show key");
  reveal.addEventListener("click", () => {
    revealed = !revealed;
    reveal.setAttribute("aria-pressed", String(revealed));
    reveal.textContent = revealed ? "Hide key" : "Show key";
    draw();
  });
  draw();
  const about = key()
    ? h("p", { class: "soft" }, "The key below is masked. Copy puts the real one into the clipboard. Anyone who has it can spend your credits.")
    : rememberedKey() === SESSION
      ? h("p", { class: "soft" }, `You are signed in without your key: replace ${PLACEHOLDER} with it.`)
      : h("p", { class: "soft" }, h("a", { href: "/metering/account#connect" }, "Open your account"), ` to have your key filled in, or replace ${PLACEHOLDER} with it.`);
  return [
    h("p", {}, "Every metered route is a tool for your agent (MCP). A call costs what its route costs; connecting and listing tools are free. Give each agent ", h("a", { href: "/docs/guides/keys" }, "a key of its own"), ", and tell it ", h("a", { href: "/docs/guides/payments" }, "what to do when credits run out"), "."),
    h("dl", { class: "facts" }, h("div", {}, h("dt", {}, "Server"), h("dd", {}, h("code", {}, server.url), " ", copyButton(server.url, "Copy", "button button-quiet button-small")))),
    tabs,
    h("div", { class: "section-head" }, about, key() && reveal),
    panel,
  ];
}

function instructions(client, server, key, shownKey) {
  const real = () => ({ ...server, key: key() ?? PLACEHOLDER });
  const parts = [
    h("p", { class: "soft", id: "client-where" }, client.where),
    code(client.name, client.text({ ...server, key: shownKey }), () => client.text(real())),
  ];
  if (client.install) {
    const button = h("button", { class: "button", type: "button", "data-install": client.id }, `Add to ${client.name}`);
    // Created on the click and removed immediately, so that no link with a key stays in the page.
    button.addEventListener("click", () => {
      const link = h("a", { href: client.install(real()), rel: "noreferrer", hidden: true });
      document.body.append(link);
      link.click();
      link.remove();
    });
    const warning = client.linkHasKey && key() ? "The link contains your key. It is made when you press the button, and does not leave this computer." : "The link contains no key.";
    parts.push(h("div", { class: "actions install" }, button, h("span", { class: "soft" }, `${warning} ${client.name} asks before it adds the server.`)));
  }
  if (client.note) parts.push(h("p", { class: "soft" }, client.note));
  return parts;
}

/** A text to paste. `copied()` is what the button copies. */
function code(name, text, copied) {
  const pre = h("pre", { tabindex: "0", role: "region", "aria-label": `For ${name}` }, h("code", {}, text));
  const head = h("div", { class: "snippet-head" }, name, copyButton(copied, "Copy", "button button-quiet button-small"));
  return h("div", { class: "snippet" }, head, pre);
}

/** A button that lists the tools with the key, which is free. Resolves `tools` with their names. */
function checkConnection({ key, isHere }) {
  if (!key() || !isHere) return { parts: [], tools: Promise.withResolvers().promise };
  const { promise: tools, resolve } = Promise.withResolvers();
  const status = h("p", { class: "status", role: "status", id: "check-status" });
  const button = h("button", { class: "button button-quiet", type: "button", id: "check-connection" }, "Check the connection");
  button.addEventListener("click", () =>
    busy(button, async () => {
      status.textContent = "Asking for the tools …";
      try {
        const headers = { Accept: "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18" };
        const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
        const { result } = await callApi("/mcp", { method: "POST", key: key(), body, headers });
        const names = result.tools.map((tool) => tool.name);
        status.textContent = `It works: ${names.length} tools, and nothing was charged.`;
        resolve(names);
      } catch (error) {
        status.textContent = sentence(error);
      }
    }),
  );
  return { parts: [h("div", { class: "actions" }, button), status], tools };
}

function firstCall({ key, origin }, { parts, tools }) {
  const place = h("div", { class: "stack-gap" }, h("p", { class: "soft" }, "Loading …"));
  exampleCall().then(
    (call) => {
      const line = (shown) => `curl -H "Authorization: Bearer ${shown}" "${origin}${call.target}"`;
      const ask = h("p", { id: "first-prompt" }, "Then ask your agent: ", h("q", {}, `Call ${call.method} ${call.template}${call.words}.`));
      tools.then((names) => {
        const tool = toolOf(call, names);
        if (tool) ask.replaceChildren("Then ask your agent: ", h("q", {}, "Call the tool ", h("code", {}, tool), `${call.words}.`));
      });
      place.replaceChildren(
        h("p", {}, `${call.description || "A metered route"}. It costs credits like any other call.`),
        code("Shell", line(key() ? MASK : PLACEHOLDER), () => line(key() ?? PLACEHOLDER)),
        ask,
      );
    },
    (error) => place.replaceChildren(h("p", { class: "bad" }, sentence(error))),
  );
  return [place, ...parts];
}
