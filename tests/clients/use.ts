// Calls one metered route through the types that openapi-typescript generated: node use.js BASE KEY.

import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const [baseUrl, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
const { data, response } = await client.GET("/mpp/ethPrice/{block_number}", { params: { path: { block_number: 19_000_001 } } });
if (!data) throw new Error(String(response.status));
const price: string = data.price_usd;
const account = await client.GET("/credits/balance");
const balance: number | undefined = account.data?.credit_balance;
console.log(JSON.stringify({ status: response.status, block: data.block_number, price, charged: response.headers.get("x-bds-credit-charged"), balance }));
