"""Calls a tool with the published MCP client of x402, unchanged, and prints what came of it:
PAYER_KEY=0x… [API_KEY=sk_…] python call_mcp.py TRANSPORT URL TOOL ARGUMENTS [CALLS]
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import httpx
from eth_account import Account
from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from x402 import x402Client
from x402.mcp import create_x402_mcp_client, x402MCPSession
from x402.mechanisms.evm.exact import register_exact_evm_client

transport, url, tool, arguments = sys.argv[1:5]
calls = int(sys.argv[5]) if len(sys.argv) > 5 else 1
key = os.environ.get("API_KEY")
headers = {"Authorization": f"Bearer {key}"} if key else {}


@asynccontextmanager
async def connect(x402):
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


async def main():
    x402 = x402Client()
    register_exact_evm_client(x402, Account.from_key(os.environ["PAYER_KEY"]))
    async with connect(x402) as session:
        tools = (await session.list_tools()).tools
        assert any(listed.name == tool for listed in tools), [listed.name for listed in tools]
        results = [result(await session.call_tool(tool, json.loads(arguments))) for _ in range(calls)]
    print(json.dumps(results))


asyncio.run(main())
