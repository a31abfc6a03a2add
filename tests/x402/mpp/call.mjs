// Makes the same request with mppx, unchanged, and prints what came of it:
// PAYER_KEY=0x… [API_KEY=sk_… [API_KEY_HEADER=X-API-Key]] node call.mjs mppx URL [CALLS]

import { Receipt } from "mppx";
import { Mppx, evm } from "mppx/client";
import { assets } from "mppx/evm";
import { privateKeyToAccount } from "viem/accounts";

const [, url, calls = "1"] = process.argv.slice(2);
const account = privateKeyToAccount(process.env.PAYER_KEY);
const { API_KEY: key, API_KEY_HEADER: keyHeader = "Authorization" } = process.env;
const headers = key ? { [keyHeader]: keyHeader === "Authorization" ? `Bearer ${key}` : key } : {};

// What the client sent, one entry for each request: whether it carried a key and a payment.
let requests = [];
const countingFetch = async (input, init) => {
  const request = new Request(input, init);
  const payment = ["Payment-Authorization", "Authorization", "PAYMENT-SIGNATURE"].find((name) => {
    const value = request.headers.get(name);
    return value && (name !== "Authorization" || value.startsWith("Payment "));
  });
  const bearer = request.headers.get("Authorization")?.startsWith("Bearer ");
  requests.push({ key: Boolean(bearer || request.headers.get("X-API-Key")), payment: payment ?? null });
  return fetch(request);
};

// The body; of a stream of events, the first one.
async function read(response) {
  let text = "";
  for await (const chunk of response.body) {
    text += Buffer.from(chunk).toString();
    if (response.headers.get("Content-Type") === "text/event-stream" && /^event: [^]*\n\n/m.test(text)) break;
  }
  return text;
}

const methods = [evm({ account, currencies: [assets.baseSepolia.USDC] })];
const mppx = Mppx.create({ fetch: countingFetch, polyfill: false, methods });
const results = [];
for (let count = 0; count < Number(calls); count += 1) {
  requests = [];
  const response = await mppx.fetch(url, { headers });
  const header = (name) => response.headers.get(name);
  results.push({
    status: response.status,
    body: await read(response),
    requests,
    receipt: header("Payment-Receipt") ? Receipt.fromResponse(response) : null,
    balance: header("X-BDS-Credit-Balance"),
    retryAfter: header("Retry-After"),
  });
}
console.log(JSON.stringify(results));
process.exit(0);
