"""Makes the same request several times with a published client, unchanged, and returns what came of it. Each line has
`client`, `url`, `payerKey` and `calls`, and perhaps `apiKey`.
"""

import asyncio
import re

import httpx
import requests
from eth_account import Account
from lines import serve
from requests.adapters import HTTPAdapter
from x402 import x402Client, x402ClientSync
from x402.http import decode_payment_response_header
from x402.http.clients.httpx import x402AsyncTransport
from x402.http.clients.requests import x402HTTPAdapter
from x402.mechanisms.evm.exact import register_exact_evm_client

# What the client sent, one entry for each request: whether it carried a key and a payment.
sent = []


def record(request):
    payment = next((name for name in ("PAYMENT-SIGNATURE", "X-PAYMENT") if name in request.headers), None)
    sent.append({"key": "Authorization" in request.headers, "payment": payment})


def is_complete(response, text):
    """Whether this is enough of the body: of a stream of events, the first one is."""
    return response.headers.get("Content-Type") == "text/event-stream" and re.search(r"^event: .*\n\n", text, re.MULTILINE | re.DOTALL)


def result(response, body):
    header = response.headers.get("PAYMENT-RESPONSE") or response.headers.get("X-PAYMENT-RESPONSE")
    receipt = decode_payment_response_header(header) if header else None
    return {
        "status": response.status_code,
        "body": body,
        "requests": list(sent),
        "receipt": receipt.model_dump(by_alias=True, exclude_none=True) if receipt else None,
        "balance": response.headers.get("X-BDS-Credit-Balance"),
        "retryAfter": response.headers.get("Retry-After"),
    }


class CountingTransport(httpx.AsyncHTTPTransport):
    async def handle_async_request(self, request):
        record(request)
        return await super().handle_async_request(request)


async def with_httpx(signer, url, headers, calls):
    x402 = x402Client()
    register_exact_evm_client(x402, signer)
    transport = x402AsyncTransport(x402, transport=CountingTransport())
    results = []
    async with httpx.AsyncClient(transport=transport, timeout=60) as session:
        for _ in range(calls):
            sent.clear()
            async with session.stream("GET", url, headers=headers) as response:
                text = ""
                async for part in response.aiter_text():
                    text += part
                    if is_complete(response, text):
                        break
                results.append(result(response, text))
    return results


# The paying adapter extends the plain one.
plain = HTTPAdapter.send


def counting(self, request, **options):
    record(request)
    return plain(self, request, **options)


HTTPAdapter.send = counting


def with_requests(signer, url, headers, calls):
    x402 = x402ClientSync()
    register_exact_evm_client(x402, signer)
    session = requests.Session()
    session.mount("http://", x402HTTPAdapter(x402))
    results = []
    for _ in range(calls):
        sent.clear()
        with session.get(url, headers=headers, timeout=60, stream=True) as response:
            text = ""
            for part in response.iter_content(chunk_size=None):
                text += part.decode()
                if is_complete(response, text):
                    break
            results.append(result(response, text))
    return results


def run(request):
    headers = {"Authorization": f"Bearer {request['apiKey']}"} if request["apiKey"] else {}
    arguments = Account.from_key(request["payerKey"]), request["url"], headers, request["calls"]
    return asyncio.run(with_httpx(*arguments)) if request["client"] == "httpx" else with_requests(*arguments)


serve(run)
