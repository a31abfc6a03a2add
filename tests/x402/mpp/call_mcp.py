"""Calls a tool several times with pympp's MCP client, unchanged, and returns what came of it. Each line has `transport`, `url`,
`payerKey`, `headers`, `tool`, `arguments` and `calls`.
"""

import asyncio
from contextlib import asynccontextmanager

import httpx
from eth_account import Account
from lines import serve
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mpp.extensions.mcp import McpClient, PaymentOutcomeUnknownError
from mpp.methods.evm import BASE_SEPOLIA_USDC
from mpp.methods.evm import client as evm


@asynccontextmanager
async def connect(transport, url, headers):
    if transport == "sse":
        async with sse_client(f"{url}/sse", headers=headers) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield session
    else:
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            async with streamable_http_client(f"{url}/mcp", http_client=http) as (reader, writer, _):
                async with ClientSession(reader, writer) as session:
                    await session.initialize()
                    yield session


async def pay(client, tool, arguments):
    try:
        call = await client.call_tool(tool, arguments)
    except PaymentOutcomeUnknownError as failed:
        # What the client says whenever the call with its payment fails. The reason is the error that it got.
        error = failed.__cause__.error
        return {"code": error.code, "data": error.data}
    return {
        "error": call.result.isError,
        "structured": call.result.structuredContent,
        "receipt": call.receipt and call.receipt.to_dict(),
    }


async def run(request):
    payer = Account.from_key(request["payerKey"])
    methods = [evm.charge(currency=BASE_SEPOLIA_USDC, account=payer)]
    async with connect(request["transport"], request["url"], request["headers"]) as session:
        client = McpClient(session, methods=methods)
        return [await pay(client, request["tool"], request["arguments"]) for _ in range(request["calls"])]


serve(lambda request: asyncio.run(run(request)))
