// Calls a tool several times with mppx's MCP client, unchanged, over a connection that posts each message, and returns what
// came of it. Each line has `url`, `payerKey`, `headers`, `tool`, `arguments` and `calls`.

import { evm } from "mppx/client";
import { assets } from "mppx/evm";
import { McpClient } from "mppx/mcp/client";
import { privateKeyToAccount } from "viem/accounts";
import { serve } from "../../workers/lines.mjs";

// As much of an SDK's client as mppx wraps.
function connect(url, headers) {
  const sent = {
    ...headers,
    Accept: "application/json, text/event-stream",
    "Content-Type": "application/json",
    "MCP-Protocol-Version": "2025-06-18",
  };
  let id = 0;
  return {
    async callTool(params) {
      id += 1;
      const body = JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params });
      const response = await fetch(`${url}/mcp`, { method: "POST", headers: sent, body });
      const { error, result } = await response.json();
      if (error) throw Object.assign(new Error(error.message), error);
      return result;
    },
  };
}

await serve(async ({ url, payerKey, headers, tool, arguments: given, calls }) => {
  const methods = [evm({ account: privateKeyToAccount(payerKey), currencies: [assets.baseSepolia.USDC] })];
  const client = McpClient.wrap(connect(url, headers), { methods });
  const results = [];
  for (let count = 0; count < calls; count += 1) {
    const call = await client.callTool({ name: tool, arguments: given });
    results.push({ error: call.isError, structured: call.structuredContent, receipt: call.receipt ?? null });
  }
  return results;
});
