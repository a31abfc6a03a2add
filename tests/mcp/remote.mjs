// `mcp-remote`, unchanged, between a client that starts programs and the server. It would open a browser; here, the owner
// consents over HTTP at the URL that it prints. Arguments: the URL of the MCP server, the owner's key, and a tool. Prints
// what the owner was asked as JSON.

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport, getDefaultEnvironment } from '@modelcontextprotocol/sdk/client/stdio.js'

const [url, ownersKey, tool] = process.argv.slice(2)
const TIMEOUT_MS = 60_000
const PROXY = fileURLToPath(new URL('node_modules/mcp-remote/dist/proxy.js', import.meta.url))

const folder = await mkdtemp(join(tmpdir(), 'mcp-remote-'))
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [PROXY, url, '--transport', 'http-only'],
  env: { ...getDefaultEnvironment(), MCP_REMOTE_CONFIG_DIR: folder, BROWSER: '/bin/true' },
  stderr: 'pipe',
})

let said = ''
let asked = null
transport.stderr.on('data', (chunk) => {
  said += chunk
  const authorization = asked ? null : /visiting:\n(\S+)\n/.exec(said)?.[1]
  if (!authorization) return
  asked = Object.fromEntries(new URL(authorization).searchParams)
  consent(new URL(authorization)).catch((error) => {
    console.error(error, said)
    process.exit(1)
  })
})

/** Consents as the consent page does, and goes where the browser would go. */
async function consent(authorization) {
  const body = JSON.stringify({ authorization: asked, key: { limit: '0.5' } })
  const headers = { authorization: `Bearer ${ownersKey}`, 'content-type': 'application/json' }
  const response = await fetch(new URL('/oauth/consents', authorization), { method: 'POST', headers, body })
  assert.equal(response.status, 200, await response.clone().text())
  const { redirect_to: landing } = await response.json()
  assert.equal((await fetch(landing)).status, 200)
}

const client = new Client({ name: 'metering-tests', version: '1' })
try {
  await client.connect(transport, { timeout: TIMEOUT_MS })
  const result = await client.callTool({ name: tool, arguments: {} }, undefined, { timeout: TIMEOUT_MS })
  assert.ok(!result.isError, JSON.stringify(result))
} finally {
  await client.close()
  await rm(folder, { recursive: true, force: true })
}
console.log(JSON.stringify({ asked }))
