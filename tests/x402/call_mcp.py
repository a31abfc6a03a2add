"""Calls a tool several times with the published MCP client of x402, unchanged, and returns what came of it. Each line has
`transport`, `url`, `payerKey`, `tool`, `arguments` and `calls`, and perhaps `apiKey`.
"""

import asyncio
from contextlib import asynccontextmanager

import httpx
from eth_account import Account
from lines import serve
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from x402 import x402Client
from x402.mcp import create_x402_mcp_client, x402MCPSession
from x402.mechanisms.evm.exact import register_exact_evm_client


@asynccontextmanager
async def connect(x402, transport, url, key):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if transport == "stock":
        # It connects to URL/sse, and has no way to send a key.
        async with create_x402_mcp_client(x402, url) as session:
            yield session
    elif transport == "sse":
        async with sse_client(f"{url}/sse", headers=headers) as streams, ClientSession(*streams) as session:
            await session.initialize()
            yield x402MCPSession(session, x402)
    else:
        async with httpx.AsyncClient(headers=headers, timeout=60) as http:
            async with streamable_http_client(f"{url}/mcp", http_client=http) as (reader, writer, _):
                async with ClientSession(reader, writer) as session:
                    await session.initialize()
                    yield x402MCPSession(session, x402)


def result(call):
    receipt = call.payment_response
    return {
        "error": call.is_error,
        "paid": call.payment_made,
        "structured": call.raw_result.structuredContent,
        "text": call.content[0].text,
        "receipt": receipt.model_dump(by_alias=True, exclude_none=True) if receipt else None,
    }


async def call(request):
    x402 = x402Client()
    register_exact_evm_client(x402, Account.from_key(request["payerKey"]))
    tool, arguments = request["tool"], request["arguments"]
    async with connect(x402, request["transport"], request["url"], request["apiKey"]) as session:
        tools = (await session.list_tools()).tools
        assert any(listed.name == tool for listed in tools), [listed.name for listed in tools]
        return [result(await session.call_tool(tool, arguments)) for _ in range(request["calls"])]


serve(lambda request: asyncio.run(call(request)))
