// A webhook receiver for tests that verifies with the official JavaScript library. `receiver.py` describes its argument,
// its output and its input, which are the same.

import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

// The packages of all clients are installed in tests/clients.
const { Webhook } = createRequire(new URL("../clients/package.json", import.meta.url))("standardwebhooks");

const options = JSON.parse(process.argv[2]);
let secrets = [];
let responses = [];

const say = (document) => process.stdout.write(`${JSON.stringify(document)}\n`);

/** What the library makes of a request: which secret it is signed with, and the error if it is none of them. */
function verify(body, headers) {
  let error = "no secret is set";
  for (const [index, secret] of secrets.entries()) {
    try {
      new Webhook(secret).verify(body, headers);
      return { verified: true, secret: index, error: null };
    } catch (failure) {
      error = failure.message;
    }
  }
  return { verified: false, secret: null, error };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function nextResponse(verified) {
  const response = responses.shift() ?? (verified ? 204 : 400);
  return typeof response === "number" ? { status: response, headers: {} } : response;
}

async function receive(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { method, url: path, headers } = request;
  const outcome = verify(body, headers);
  const text = body.toString();
  say({
    method,
    path,
    id: headers["webhook-id"] ?? null,
    timestamp: headers["webhook-timestamp"] ?? null,
    headers,
    ...outcome,
    body: parsed(text),
    text,
  });
  const next = nextResponse(outcome.verified);
  // Otherwise the connection stays open until the client closes it.
  if (next !== "hang") response.writeHead(next.status, next.headers).end();
}

function handle(request, response) {
  // Clients may break the connection.
  receive(request, response).catch((error) => {
    if (error.code !== "ECONNRESET") throw error;
  });
}

const server =
  "certificate" in options
    ? https.createServer({ cert: readFileSync(options.certificate), key: readFileSync(options.key) }, handle)
    : http.createServer(handle);
server.listen(0, "127.0.0.1", () => say({ port: server.address().port }));

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const control = JSON.parse(line);
    secrets = control.secrets ?? secrets;
    responses = control.respond ?? responses;
    say({ applied: true });
  })
  .on("close", () => process.exit(0));
