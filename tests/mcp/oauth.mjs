// An agent that signs in with OAuth: the official TypeScript SDK, unchanged. The owner consents over HTTP, in place of a
// browser. Arguments: the URL of the MCP server, the owner's key, and a tool. Prints what it got as JSON.

import assert from 'node:assert/strict'
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [url, ownersKey, tool] = process.argv.slice(2)
const REDIRECT_URI = 'http://127.0.0.1:33418/callback'
const STATE = 'a state & more'

/** Consents as the consent page does. Returns the code. */
async function consent(authorization) {
  const body = { authorization: Object.fromEntries(authorization.searchParams), key: { limit: '0.5', limit_reset: 'monthly' } }
  const headers = { authorization: `Bearer ${ownersKey}`, 'content-type': 'application/json' }
  const response = await fetch(new URL('/oauth/consents', authorization), { method: 'POST', headers, body: JSON.stringify(body) })
  assert.equal(response.status, 200, await response.clone().text())
  const landed = new URL((await response.json()).redirect_to)
  assert.equal(`${landed.origin}${landed.pathname}`, REDIRECT_URI)
  assert.equal(landed.searchParams.get('state'), STATE)
  assert.equal(landed.searchParams.get('iss'), new URL(url).origin)
  return landed.searchParams.get('code')
}

class Provider {
  saved = {}
  redirectUrl = REDIRECT_URI
  clientMetadata = {
    client_name: 'TypeScript agent',
    redirect_uris: [REDIRECT_URI],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  }

  state() {
    return STATE
  }

  clientInformation() {
    return this.saved.client
  }

  saveClientInformation(client) {
    this.saved.client = client
  }

  tokens() {
    return this.saved.tokens
  }

  saveTokens(tokens) {
    this.saved.tokens = tokens
  }

  saveCodeVerifier(verifier) {
    this.saved.verifier = verifier
  }

  codeVerifier() {
    return this.saved.verifier
  }

  async redirectToAuthorization(authorization) {
    this.code = await consent(authorization)
  }
}

const provider = new Provider()

async function connect() {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider })
  const client = new Client({ name: 'metering-tests', version: '1' })
  try {
    await client.connect(transport)
    return client
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || !provider.code) throw error
    await transport.finishAuth(provider.code)
    provider.code = null
    return connect()
  }
}

const client = await connect()
const call = async () => assert.ok(!(await client.callTool({ name: tool, arguments: {} })).isError)
await call()
const first = provider.saved.tokens
// As if it had expired.
provider.saved.tokens = { ...first, access_token: 'sk_live_expired' }
await call()
const second = provider.saved.tokens
await client.close()
console.log(JSON.stringify({ first, second }))
