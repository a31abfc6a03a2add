// A wallet for the tests: viem makes its signatures and transactions, independently of the code under test.
//
// One JSON object per line: `{id, method, params}` on standard input, `{id, result}` or `{id, error}` on standard
// output, one at a time. Amounts are decimal strings both ways. A payment returns its transaction hash without waiting
// for a block; the test decides when it is mined.
//
// Usage: node wallet.mjs RPC_URL NODE_PROCESS_ID
// If standard input ends without this process having been killed, the test was killed: this process then ends the node.

import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import {
  createClient,
  createPublicClient,
  createWalletClient,
  defineChain,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  http,
  toHex,
} from 'viem'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import { tempoModerato } from 'viem/chains'
import { Account, tempoActions } from 'viem/tempo'

// The node's default mnemonic: its accounts are rich on the node, and publicly known.
const MNEMONIC = 'test test test test test test test test test test test junk'

const [url, nodeProcess] = process.argv.slice(2)
const transport = http(url, { retryCount: 0 })
const reader = createPublicClient({ transport })
let chain

function artifact(contract) {
  return JSON.parse(readFileSync(new URL(`contracts/build/${contract}.json`, import.meta.url), 'utf8'))
}

// JSON has no 256-bit integers, so they are decimal strings.
function typed(input, value) {
  if (/^u?int\d*$/.test(input.type)) {
    return BigInt(value)
  }
  return value
}

function arguments_(inputs, values) {
  if (inputs.length !== values.length) {
    throw new Error(`expected ${inputs.length} arguments, got ${values.length}`)
  }
  return inputs.map((input, index) => typed(input, values[index]))
}

function functionArguments(abi, name, values) {
  const found = abi.find((entry) => entry.type === 'function' && entry.name === name)
  if (!found) {
    throw new Error(`the contract has no function ${name}`)
  }
  return arguments_(found.inputs, values)
}

// Signed here and sent raw; the node never sees a key. With `gas` there is no simulation, so a transaction that will
// fail is still sent.
async function send(privateKey, { to, data, value, gas }) {
  const account = privateKeyToAccount(privateKey)
  chain ??= defineChain({
    id: await reader.getChainId(),
    name: 'test',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [url] } },
  })
  const amount = BigInt(value ?? 0)
  const limit = gas ?? (await reader.estimateGas({ account, to, data, value: amount, blockTag: 'pending' }))
  const nonce = await reader.getTransactionCount({ address: account.address, blockTag: 'pending' })
  const wallet = createWalletClient({ account, chain, transport })
  const hash = await wallet.sendTransaction({ to, data, value: amount, gas: BigInt(limit), nonce })
  return { hash, nonce, from: account.address }
}

const methods = {
  account({ index }) {
    const account = mnemonicToAccount(MNEMONIC, { addressIndex: index })
    return { address: account.address, privateKey: toHex(account.getHdKey().privateKey) }
  },

  newAccount() {
    const privateKey = generatePrivateKey()
    return { address: privateKeyToAccount(privateKey).address, privateKey }
  },

  async deploy({ privateKey, contract, args }) {
    const { abi, bytecode } = artifact(contract)
    const inputs = abi.find((entry) => entry.type === 'constructor')?.inputs ?? []
    const data = encodeDeployData({ abi, bytecode, args: arguments_(inputs, args) })
    const { hash, nonce, from } = await send(privateKey, { data })
    return { hash, address: getContractAddress({ from, nonce: BigInt(nonce) }) }
  },

  async write({ privateKey, contract, address, function: functionName, args, value, gas }) {
    const { abi } = artifact(contract)
    const data = encodeFunctionData({ abi, functionName, args: functionArguments(abi, functionName, args) })
    return (await send(privateKey, { to: address, data, value, gas })).hash
  },

  async read({ contract, address, function: functionName, args }) {
    const { abi } = artifact(contract)
    return reader.readContract({ abi, address, functionName, args: functionArguments(abi, functionName, args) })
  },

  encode({ contract, function: functionName, args }) {
    const { abi } = artifact(contract)
    return encodeFunctionData({ abi, functionName, args: functionArguments(abi, functionName, args) })
  },

  async sendNative({ privateKey, to, value, data, gas }) {
    return (await send(privateKey, { to, value, data, gas })).hash
  },

  // Tempo's own transaction type, 0x76: a list of calls, with the fee paid in the token.
  async transferByCalls({ privateKey, token, to, amount }) {
    const account = Account.fromSecp256k1(privateKey)
    const client = createClient({ account, chain: { ...tempoModerato, feeToken: token }, transport })
    return client.extend(tempoActions()).token.transfer({ token, to, amount: BigInt(amount) })
  },

  // `type` is the name of the message's type (EIP-712), and `fields` are its fields.
  signTypedData({ privateKey, domain, type, fields, message }) {
    const values = fields.map((field) => [field.name, typed(field, message[field.name])])
    const data = { domain, types: { [type]: fields }, primaryType: type, message: Object.fromEntries(values) }
    return privateKeyToAccount(privateKey).signTypedData(data)
  },

  signMessage({ privateKey, message }) {
    return privateKeyToAccount(privateKey).signMessage({ message })
  },
}

async function respond(line) {
  const { id, method, params } = JSON.parse(line)
  try {
    if (!Object.hasOwn(methods, method)) {
      throw new Error(`unknown method ${method}`)
    }
    return { id, result: await methods[method](params) }
  } catch (error) {
    return { id, error: String(error?.message ?? error) }
  }
}

const plain = (_, value) => (typeof value === 'bigint' ? value.toString() : value)

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await respond(line), plain)}\n`)
}
try {
  process.kill(Number(nodeProcess), 'SIGKILL')
} catch {
  // It has already ended.
}
