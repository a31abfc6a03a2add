// Makes the same request several times with a published client, unchanged, and returns what came of it. Each line has
// `client`, `url`, `payerKey` and `calls`, and perhaps `apiKey`, `method` and `json`, the body of the request.
// A client that ends in `-lower` has a signer that spells its address in lower case, as many wallets do.

import { wrapAxiosWithPayment, x402Client as AxiosX402Client } from "@x402/axios";
import { registerExactEvmScheme } from "@x402/evm/exact/client";
import { UptoEvmScheme } from "@x402/evm/upto/client";
import {
  decodeSignedOffers,
  extractOffersFromPaymentRequired,
  extractReceiptFromResponse,
  findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureEIP712,
  verifyReceiptMatchesOffer,
  verifyReceiptSignatureEIP712,
} from "@x402/extensions/offer-receipt";
import { appendPaymentIdentifierToExtensions } from "@x402/extensions/payment-identifier";
import {
  createSIWxClientExtension,
  createSIWxPayload,
  encodeSIWxHeader,
  wrapFetchWithSIWx,
} from "@x402/extensions/sign-in-with-x";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { decodePaymentRequiredHeader } from "@x402/core/http";
import axios from "axios";
import { privateKeyToAccount } from "viem/accounts";
import { decodeXPaymentResponse, wrapFetchWithPayment as wrapFetchWithPaymentV1 } from "x402-fetch";
import { serve } from "../workers/lines.mjs";

// What the client sent, one entry for each request: whether it carried a key, a payment and a sign-in.
let requests = [];
const sent = (header) => {
  const payment = ["PAYMENT-SIGNATURE", "X-PAYMENT"].find((name) => header(name));
  const signIn = header("SIGN-IN-WITH-X") ?? null;
  requests.push({ key: Boolean(header("Authorization")), payment: payment ?? null, signIn });
};
const countingFetch = async (input, init) => {
  const request = new Request(input, init);
  sent((name) => request.headers.get(name));
  return fetch(request);
};
const configured = (x402, { signer }) => {
  registerExactEvmScheme(x402, { signer });
  return x402;
};

// The body; of a stream of events, the first one.
async function read(body, contentType) {
  let text = "";
  for await (const chunk of body) {
    text += Buffer.from(chunk).toString();
    if (contentType === "text/event-stream" && /^event: [^]*\n\n/m.test(text)) break;
  }
  return text;
}

function clientOfFetch(paying, { url, method, headers, json }) {
  return async () => {
    const body = json === undefined ? undefined : JSON.stringify(json);
    const response = await paying(url, { method, headers, body });
    const header = (name) => response.headers.get(name);
    return { status: response.status, header, body: await read(response.body, header("Content-Type")) };
  };
}

function clientOfAxios(request) {
  const { url, method, headers } = request;
  const instance = axios.create({ responseType: "stream" });
  instance.interceptors.request.use((config) => {
    sent((name) => config.headers.get(name));
    return config;
  });
  const paying = wrapAxiosWithPayment(instance, configured(new AxiosX402Client(), request));
  return async () => {
    const response = await paying.request({ url, method, headers }).catch((error) => {
      if (!error.response) throw error;
      return error.response;
    });
    const header = (name) => response.headers.get(name);
    return { status: response.status, header, body: await read(response.data, header("Content-Type")) };
  };
}

// Signs the most that a request may cost, and nothing else.
function clientOfUpto(request) {
  const x402 = new x402Client().register("eip155:84532", new UptoEvmScheme(request.signer));
  return clientOfFetch(wrapFetchWithPayment(countingFetch, x402), request);
}

// Signs in if it can, and pays otherwise.
function signingClient(request) {
  const x402 = configured(new x402Client(), request);
  x402.registerExtension(createSIWxClientExtension({ signers: [request.signer] }));
  return clientOfFetch(wrapFetchWithPayment(countingFetch, x402), request);
}

// Gives its payment an id. Each later call sends the same payment again, as after a response that was lost.
function clientOfIdentified(request) {
  const x402 = configured(new x402Client(), request);
  x402.onBeforePaymentCreation(async ({ paymentRequired }) => {
    appendPaymentIdentifierToExtensions(paymentRequired.extensions);
  });
  let payment = null;
  const keeping = async (input, init) => {
    const sent = new Request(input, init);
    payment ??= sent.headers.get("PAYMENT-SIGNATURE");
    return countingFetch(sent);
  };
  const pay = clientOfFetch(wrapFetchWithPayment(keeping, x402), request);
  const again = () => {
    const headers = { ...request.headers, "PAYMENT-SIGNATURE": payment };
    return clientOfFetch(countingFetch, { ...request, headers })();
  };
  return () => (payment ? again() : pay());
}

// Pays, and checks what the service signed: its offers, and the receipt. The body says what was found.
function clientOfReceipts(request) {
  const { url, method, headers, signer } = request;
  const pay = wrapFetchWithPayment(countingFetch, configured(new x402Client(), request));
  return async () => {
    const refused = await fetch(url, { method, headers });
    const required = decodePaymentRequiredHeader(refused.headers.get("PAYMENT-REQUIRED"));
    const offers = decodeSignedOffers(extractOffersFromPaymentRequired(required));
    const verified = await Promise.all(offers.map(({ signedOffer }) => verifyOfferSignatureEIP712(signedOffer)));
    const response = await pay(url, { method, headers });
    const receipt = extractReceiptFromResponse(response);
    verified.push(await verifyReceiptSignatureEIP712(receipt));
    const body = JSON.stringify({
      signers: verified.map(({ signer }) => signer),
      offered: offers.every((offer) => findAcceptsObjectFromSignedOffer(offer, required.accepts)),
      matches: verifyReceiptMatchesOffer(receipt, offers[0], [signer.address]),
    });
    return { status: response.status, header: (name) => response.headers.get(name), body };
  };
}

// Gets a key for the account of the wallet.
function clientOfKeys({ url, signer }) {
  return async () => {
    const refused = await fetch(url);
    const { extensions } = decodePaymentRequiredHeader(refused.headers.get("PAYMENT-REQUIRED"));
    const { info, supportedChains } = extensions["sign-in-with-x"];
    const payload = await createSIWxPayload({ ...info, ...supportedChains[0] }, signer, url);
    const headers = { "SIGN-IN-WITH-X": encodeSIWxHeader(payload), "Content-Type": "application/json" };
    const body = JSON.stringify({ name: "agent" });
    const response = await countingFetch(new URL("/keys", url), { method: "POST", headers, body });
    const header = (name) => response.headers.get(name);
    return { status: response.status, header, body: await response.text() };
  };
}

const clients = {
  fetch: (request) => clientOfFetch(wrapFetchWithPayment(countingFetch, configured(new x402Client(), request)), request),
  "fetch-signing": signingClient,
  "fetch-signing-only": (request) => clientOfFetch(wrapFetchWithSIWx(countingFetch, request.signer), request),
  "key-for-wallet": clientOfKeys,
  "fetch-identified": clientOfIdentified,
  "fetch-receipts": clientOfReceipts,
  "fetch-upto": clientOfUpto,
  axios: clientOfAxios,
  "fetch-v1": (request) => clientOfFetch(wrapFetchWithPaymentV1(countingFetch, request.signer), request),
};

await serve(async ({ client: name, url, payerKey, calls, apiKey, method = "GET", json }) => {
  const client = name.replace(/-lower$/, "");
  const account = privateKeyToAccount(payerKey);
  const signer = name === client ? account : { ...account, address: account.address.toLowerCase() };
  const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
  if (json !== undefined) headers["Content-Type"] = "application/json";
  const call = clients[client]({ url, method, headers, signer, json });
  const results = [];
  for (let count = 0; count < calls; count += 1) {
    requests = [];
    const { status, header, body } = await call();
    const [receipt, receiptV1] = [header("PAYMENT-RESPONSE"), header("X-PAYMENT-RESPONSE")];
    results.push({
      status,
      body,
      requests,
      receipt: receipt ? decodePaymentResponseHeader(receipt) : receiptV1 ? decodeXPaymentResponse(receiptV1) : null,
      balance: header("X-BDS-Credit-Balance") ?? null,
      retryAfter: header("Retry-After") ?? null,
      replayed: header("X-BDS-Replayed") ?? null,
    });
  }
  return results;
});
