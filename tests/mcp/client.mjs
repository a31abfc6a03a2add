// MCP client for the tests: the official TypeScript SDK, independent of the code under test.
//
// One JSON object per line: `{id, method, params}` on standard input, `{id, result}` or `{id, error}` on standard
// output, in the order in which responses arrive. One process holds many sessions, named by the caller. It records
// every HTTP status of a session, because the SDK exposes only some. The process ends when its standard input does.

import { createInterface } from 'node:readline'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const TIMEOUT_MS = 60_000

const sessions = new Map()

function transportOf({ transport, url, headers, program, environment }, statuses) {
  if (transport === 'stdio') {
    const [command, ...args] = program
    return new StdioClientTransport({ command, args, env: environment, stderr: 'inherit' })
  }
  const counting = async (target, init) => {
    const response = await fetch(target, init)
    statuses.push(response.status)
    return response
  }
  const Transport = { sse: SSEClientTransport, streamable: StreamableHTTPClientTransport }[transport]
  return new Transport(new URL(url), { requestInit: { headers }, fetch: counting })
}

function find(name) {
  const session = sessions.get(name)
  if (!session) {
    throw new Error(`unknown session ${name}`)
  }
  return session
}

const methods = {
  async connect(params) {
    const statuses = []
    const client = new Client({ name: 'metering-tests', version: '1' })
    const session = { client, statuses, calls: new Set() }
    sessions.set(params.session, session)
    await client.connect(transportOf(params, statuses), { timeout: TIMEOUT_MS })
    return { server: client.getServerVersion(), capabilities: client.getServerCapabilities() }
  },

  async tools({ session }) {
    const { client } = find(session)
    const tools = []
    let cursor
    do {
      const page = await client.listTools({ cursor })
      tools.push(...page.tools)
      cursor = page.nextCursor
    } while (cursor)
    return tools
  },

  async call({ session, tool, arguments: given }) {
    const { client, calls } = find(session)
    const controller = new AbortController()
    calls.add(controller)
    try {
      const options = { timeout: TIMEOUT_MS, signal: controller.signal }
      return await client.callTool({ name: tool, arguments: given }, undefined, options)
    } finally {
      calls.delete(controller)
    }
  },

  abort({ session }) {
    const { calls } = find(session)
    const aborted = calls.size
    calls.forEach((controller) => controller.abort())
    return aborted
  },

  statuses({ session }) {
    return find(session).statuses
  },

  async close({ session }) {
    const { client } = find(session)
    // Ends the session as the protocol specifies, where the transport supports it.
    await client.transport?.terminateSession?.()
    await client.close()
    sessions.delete(session)
    return null
  },
}

async function respond(line) {
  const { id, method, params } = JSON.parse(line)
  let response
  try {
    if (!Object.hasOwn(methods, method)) {
      throw new Error(`unknown method ${method}`)
    }
    response = { id, result: await methods[method](params) }
  } catch (error) {
    const code = Number.isInteger(error?.code) ? error.code : null
    response = { id, error: { message: String(error?.message ?? error), code } }
  }
  process.stdout.write(`${JSON.stringify(response)}\n`)
}

for await (const line of createInterface({ input: process.stdin })) {
  void respond(line)
}
process.exit(0)
