// Makes the same request several times with mppx, unchanged, and returns what came of it. Each line has `url`, `payerKey`
// and `calls`, and perhaps `apiKey` and `keyHeader`.

import { Receipt } from "mppx";
import { Mppx, evm } from "mppx/client";
import { assets } from "mppx/evm";
import { privateKeyToAccount } from "viem/accounts";
import { serve } from "../../workers/lines.mjs";

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

await serve(async ({ url, payerKey, calls, apiKey, keyHeader = "Authorization" }) => {
  const headers = apiKey ? { [keyHeader]: keyHeader === "Authorization" ? `Bearer ${apiKey}` : apiKey } : {};
  const methods = [evm({ account: privateKeyToAccount(payerKey), currencies: [assets.baseSepolia.USDC] })];
  const mppx = Mppx.create({ fetch: countingFetch, polyfill: false, methods });
  const results = [];
  for (let count = 0; count < calls; count += 1) {
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
  return results;
});
