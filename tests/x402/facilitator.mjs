// The facilitator of the reference implementation, in front of a local chain:
// GAS_KEY=0x… node facilitator.mjs RPC_URL. Prints its URL, and then a line for each request. Ends with its input.

import { createServer } from "node:http";

import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { registerExactEvmScheme } from "@x402/evm/exact/facilitator";
import { extractDiscoveryInfo } from "@x402/extensions/bazaar";
import { createWalletClient, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

const account = privateKeyToAccount(process.env.GAS_KEY);
const chain = createWalletClient({
  account,
  chain: baseSepolia,
  transport: http(process.argv[2]),
  pollingInterval: 100,
}).extend(publicActions);

const facilitator = new x402Facilitator();
const signer = toFacilitatorEvmSigner({ ...chain, address: account.address });
registerExactEvmScheme(facilitator, { signer, networks: "eip155:84532" });

async function body(request) {
  let text = "";
  for await (const chunk of request) text += chunk;
  return JSON.parse(text);
}

const routes = {
  "GET /supported": async () => facilitator.getSupported(),
  "POST /verify": async (request) => {
    const { paymentPayload, paymentRequirements } = await body(request);
    return facilitator.verify(paymentPayload, paymentRequirements);
  },
  // Says also what it would list, which must be valid.
  "POST /settle": async (request, response) => {
    const { paymentPayload, paymentRequirements } = await body(request);
    const found = extractDiscoveryInfo(paymentPayload, paymentRequirements);
    const outcome = JSON.stringify({ bazaar: { status: found ? "success" : "rejected" } });
    response.setHeader("EXTENSION-RESPONSES", Buffer.from(outcome).toString("base64"));
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    return { ...settled, listed: found && `${found.method} ${found.resourceUrl}` };
  },
};

const server = createServer(async (request, response) => {
  const name = `${request.method} ${request.url}`;
  const route = routes[name];
  const [status, answer] = !route
    ? [404, { error: "there is no such route" }]
    : await route(request, response).then(
        (answer) => [200, answer],
        (error) => [500, { error: String(error) }],
      );
  const text = JSON.stringify(answer, (_, value) => (typeof value === "bigint" ? value.toString() : value));
  console.log(`${name} ${status} ${text}`);
  response.writeHead(status, { "Content-Type": "application/json" }).end(text);
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit(0));
