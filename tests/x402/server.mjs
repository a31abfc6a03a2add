// A shop with the middleware of the reference implementation:
// PAY_TO=0x… node server.mjs FACILITATOR_URL. Prints its URL, and then a line for each request. Ends with its input.

import { HTTPFacilitatorClient, x402ResourceServer } from "@x402/core/server";
import { registerExactEvmScheme } from "@x402/evm/exact/server";
import { paymentMiddleware } from "@x402/express";
import express from "express";

const network = "eip155:84532";
const resources = new x402ResourceServer(new HTTPFacilitatorClient({ url: process.argv[2] }));
registerExactEvmScheme(resources, { networks: [network] });

const paid = (price) => ({
  accepts: { scheme: "exact", price, network, payTo: process.env.PAY_TO },
  description: "A forecast",
  mimeType: "application/json",
});

// How often the handlers have served.
let served = 0;
const app = express();
app.use(express.json());
app.use((request, response, next) => {
  const payment = Boolean(request.header("PAYMENT-SIGNATURE"));
  response.on("close", () => console.log(`${request.method} ${request.originalUrl} ${payment} ${response.statusCode}`));
  next();
});
app.use(
  paymentMiddleware(
    { "GET /weather": paid("$0.05"), "POST /forecast": paid("$0.2"), "GET /broken": paid("$0.05") },
    resources,
  ),
);
app.get("/weather", (request, response) => response.json({ city: request.query.city, served: ++served }));
app.post("/forecast", (request, response) => response.json({ asked: request.body, served: ++served }));
app.get("/broken", (_, response) => response.status(500).json({ error: "out of order" }));

const server = app.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.resume().on("end", () => process.exit(0));
