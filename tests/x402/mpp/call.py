"""Makes the same request several times with pympp, unchanged, and returns what came of it. Each line has `url`, `payerKey`
and `calls`, and perhaps `apiKey` and `keyHeader`.
"""

import asyncio
import re

import httpx
from eth_account import Account
from lines import serve
from mpp import Receipt
from mpp.client import PaymentTransport
from mpp.methods.evm import BASE_SEPOLIA_USDC
from mpp.methods.evm import client as evm

# What the client sent, one entry for each request: whether it carried a key and a payment.
sent = []


class CountingTransport(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        def pays(name):
            value = request.headers.get(name, "")
            return value if name != "Authorization" else value.startswith("Payment ")

        payment = next(filter(pays, ("Payment-Authorization", "Authorization", "PAYMENT-SIGNATURE")), None)
        bearer = request.headers.get("Authorization", "").startswith("Bearer ")
        sent.append({"key": bearer or "X-API-Key" in request.headers, "payment": payment})
        return await super().handle_async_request(request)


async def pay(payer, url, headers, calls):
    methods = [evm.charge(currency=BASE_SEPOLIA_USDC, account=payer)]
    transport = PaymentTransport(methods=methods, inner=CountingTransport())
    results = []
    async with httpx.AsyncClient(transport=transport, timeout=60) as session:
        for _ in range(calls):
            sent.clear()
            async with session.stream("GET", url, headers=headers) as response:
                text = ""
                async for part in response.aiter_text():
                    text += part
                    is_stream = response.headers.get("Content-Type") == "text/event-stream"
                    if is_stream and re.search(r"^event: .*\n\n", text, re.MULTILINE | re.DOTALL):
                        break
                header = response.headers.get("Payment-Receipt")
                receipt = Receipt.from_payment_receipt(header) if header else None
                results.append({
                    "status": response.status_code,
                    "body": text,
                    "requests": list(sent),
                    "receipt": receipt and {"status": receipt.status, "method": receipt.method, "reference": receipt.reference},
                    "balance": response.headers.get("X-BDS-Credit-Balance"),
                    "retryAfter": response.headers.get("Retry-After"),
                })
    return results


def run(request):
    key, header = request.get("apiKey"), request.get("keyHeader", "Authorization")
    headers = {header: f"Bearer {key}" if header == "Authorization" else key} if key else {}
    return asyncio.run(pay(Account.from_key(request["payerKey"]), request["url"], headers, request["calls"]))


serve(run)
