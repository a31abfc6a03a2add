"""MCP client for the tests: the official Python SDK, independent of the code under test.

One JSON object per line: `{id, method, params}` on standard input, `{id, result}` or `{id, error}` on standard output,
in the order in which responses arrive. One process holds many sessions, named by the caller. It records every HTTP
status of a session, because the SDK exposes only some. The process ends when its standard input does.
"""

import asyncio
import json
import logging
import os
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

TIMEOUT = 60.0

# Errors that the SDK logs are also reported in the responses.
logging.disable(logging.CRITICAL)


class Session:
    """A client in its own task, because contexts must be exited in the task that entered them."""

    def __init__(self, params):
        self.params = params
        self.statuses = []
        self.client = None
        self.change = None
        self.leave = asyncio.Event()
        self.ready = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self.live())

    async def note(self, response):
        self.statuses.append(response.status_code)

    def http(self, headers=None, timeout=None, auth=None):
        hooks = {"response": [self.note]}
        limits = httpx2.Timeout(TIMEOUT, read=300.0)
        return httpx2.AsyncClient(headers=headers, timeout=limits, auth=auth, event_hooks=hooks, trust_env=False)

    def server(self, http):
        given = self.params
        if given["transport"] == "stdio":
            command, *arguments = given["program"]
            return StdioServerParameters(command=command, args=arguments, env=given["environment"])
        if given["transport"] == "sse":
            return sse_client(given["url"], headers=given["headers"], httpx_client_factory=self.http)
        return streamable_http_client(given["url"], http_client=http)

    async def live(self):
        try:
            async with self.http(headers=self.params.get("headers")) as http:
                async with Client(self.server(http), mode=self.params["mode"], read_timeout_seconds=TIMEOUT) as client:
                    self.client = client
                    if not self.ready.done():
                        self.ready.set_result(None)
                    await self.leave.wait()
        except BaseException as error:
            # After that, callers of the session see the error.
            if not self.ready.done():
                self.ready.set_exception(innermost(error))
        finally:
            self.client = None


    async def subscribe(self, acknowledged):
        """Returns the first change of the tools, by its name in the SDK."""
        async with self.client.listen(tools_list_changed=True) as changes:
            acknowledged.set_result(plain(changes.honored))
            async for change in changes:
                return type(change).__name__


def innermost(error):
    """The innermost cause of nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Exception) else RuntimeError(repr(error))


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Driver:
    def __init__(self):
        self.sessions = {}

    def client(self, name):
        session = self.sessions.get(name)
        if session is None:
            raise RuntimeError(f"unknown session {name}")
        if session.client is None:
            raise RuntimeError("the session has ended")
        return session.client

    async def connect(self, params):
        session = self.sessions[params["session"]] = Session(params)
        await session.ready
        client = session.client
        return {
            "server": plain(client.server_info) if client.server_info else None,
            "capabilities": plain(client.server_capabilities),
            "protocol": client.protocol_version,
        }

    async def tools(self, params):
        client, tools, cursor = self.client(params["session"]), [], None
        while True:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
            tools.extend(plain(tool) for tool in page.tools)
            cursor = page.next_cursor
            if not cursor:
                return tools

    async def call(self, params):
        client = self.client(params["session"])
        return plain(await client.call_tool(params["tool"], params["arguments"]))

    async def listen(self, params):
        """Subscribes to changes of the tools, and lists them: what the server will send, and how long the list is fresh."""
        client, session = self.client(params["session"]), self.sessions[params["session"]]
        acknowledged = asyncio.get_running_loop().create_future()
        session.change = asyncio.create_task(session.subscribe(acknowledged))
        await asyncio.wait({session.change, acknowledged}, return_when=asyncio.FIRST_COMPLETED)
        if not acknowledged.done():
            return session.change.result()
        page = await client.list_tools()
        return {"acknowledged": acknowledged.result(), "ttl_ms": page.ttl_ms, "cache_scope": page.cache_scope}

    async def changed(self, params):
        return await self.sessions[params["session"]].change

    async def statuses(self, params):
        return self.sessions[params["session"]].statuses

    async def close(self, params):
        session = self.sessions.pop(params["session"])
        session.leave.set()
        await session.task
        return None

    async def respond(self, line):
        request = json.loads(line)
        try:
            method = {"connect": self.connect, "tools": self.tools, "call": self.call}
            method |= {"statuses": self.statuses, "close": self.close, "listen": self.listen, "changed": self.changed}
            response = {"result": await method[request["method"]](request["params"])}
        except BaseException as error:
            error = innermost(error)
            code = error.error.code if isinstance(error, MCPError) else None
            response = {"error": {"message": str(error) or repr(error), "code": code}}
        sys.stdout.write(json.dumps({"id": request["id"], **response}) + "\n")
        sys.stdout.flush()


async def main():
    loop, driver, running = asyncio.get_running_loop(), Driver(), set()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        task = asyncio.create_task(driver.respond(line))
        running.add(task)
        task.add_done_callback(running.discard)
    # Sessions are left as they are: the caller that closed the input no longer needs them.
    os._exit(0)


asyncio.run(main())
