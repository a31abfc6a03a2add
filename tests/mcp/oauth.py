"""An agent that signs in with OAuth: the official Python SDK, unchanged. The owner consents over HTTP, in place of a browser.

Arguments: the URL of the MCP server, the owner's key, and a tool. Prints what it got as JSON.
"""

import asyncio
import json
import sys
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

TIMEOUT = 60.0
REDIRECT_URI = "http://localhost:33418/callback"


class Storage:
    """What the agent keeps."""

    def __init__(self):
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


class Owner:
    """Consents as the consent page does."""

    def __init__(self, key):
        self.key = key
        self.landed = {}

    async def consent(self, authorization):
        page = urlsplit(authorization)
        body = {"authorization": dict(parse_qsl(page.query)), "key": {"limit": "0.5", "limit_reset": "monthly"}}
        headers = {"authorization": f"Bearer {self.key}"}
        async with httpx2.AsyncClient(trust_env=False, timeout=TIMEOUT) as http:
            response = await http.post(f"{page.scheme}://{page.netloc}/oauth/consents", headers=headers, json=body)
        assert response.status_code == 200, response.text
        redirect_to = response.json()["redirect_to"]
        assert redirect_to.startswith(f"{REDIRECT_URI}?"), redirect_to
        self.landed = dict(parse_qsl(urlsplit(redirect_to).query))

    async def landing(self):
        return AuthorizationCodeResult(code=self.landed["code"], state=self.landed["state"], iss=self.landed["iss"])


async def main():
    url, key, tool = sys.argv[1:]
    storage, owner = Storage(), Owner(key)
    metadata = OAuthClientMetadata(
        client_name="Python agent", redirect_uris=[REDIRECT_URI], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=metadata,
        storage=storage,
        redirect_handler=owner.consent,
        callback_handler=owner.landing,
    )
    async with httpx2.AsyncClient(auth=auth, timeout=TIMEOUT, trust_env=False) as http:
        async with Client(streamable_http_client(url, http_client=http), read_timeout_seconds=TIMEOUT) as client:
            await call(client, tool)
            first = storage.tokens
            # As if it had expired.
            auth.context.token_expiry_time = 1.0
            await call(client, tool)
            second = storage.tokens
    print(json.dumps({name: tokens.model_dump(mode="json") for name, tokens in (("first", first), ("second", second))}))


async def call(client, tool):
    result = await client.call_tool(tool, {})
    assert not result.model_dump(by_alias=True).get("isError"), result


asyncio.run(main())
