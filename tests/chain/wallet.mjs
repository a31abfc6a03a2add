// A wallet for the tests: viem makes its signatures and transactions, independently of the code under test.
//
// Each line is `{url, method, params}`: the node's URL, and one of the methods below. Amounts are decimal strings both
// ways. A payment returns its transaction hash without waiting for a block; the test decides when it is mined.

import { readFileSync } from 'node:fs'
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
import { serve } from '../workers/lines.mjs'

// The node's default mnemonic: its accounts are rich on the node, and publicly known.
const MNEMONIC = 'test test test test test test test test test test test junk'

function connect(url) {
  const transport = http(url, { retryCount: 0 })
  return { url, transport, reader: createPublicClient({ transport }) }
}

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
async function send({ url, transport, reader }, privateKey, { to, data, value, gas }) {
  const account = privateKeyToAccount(privateKey)
  const chain = defineChain({
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

  async deploy({ privateKey, contract, args }, node) {
    const { abi, bytecode } = artifact(contract)
    const inputs = abi.find((entry) => entry.type === 'constructor')?.inputs ?? []
    const data = encodeDeployData({ abi, bytecode, args: arguments_(inputs, args) })
    const { hash, nonce, from } = await send(node, privateKey, { data })
    return { hash, address: getContractAddress({ from, nonce: BigInt(nonce) }) }
  },

  async write({ privateKey, contract, address, function: functionName, args, value, gas }, node) {
    const { abi } = artifact(contract)
    const data = encodeFunctionData({ abi, functionName, args: functionArguments(abi, functionName, args) })
    return (await send(node, privateKey, { to: address, data, value, gas })).hash
  },

  async read({ contract, address, function: functionName, args }, { reader }) {
    const { abi } = artifact(contract)
    return reader.readContract({ abi, address, functionName, args: functionArguments(abi, functionName, args) })
  },

  encode({ contract, function: functionName, args }) {
    const { abi } = artifact(contract)
    return encodeFunctionData({ abi, functionName, args: functionArguments(abi, functionName, args) })
  },

  async sendNative({ privateKey, to, value, data, gas }, node) {
    return (await send(node, privateKey, { to, value, data, gas })).hash
  },

  // Tempo's own transaction type, 0x76: a list of calls, with the fee paid in the token. Its modules take long to load.
  async transferByCalls({ privateKey, token, to, amount }, { transport }) {
    const [{ tempoModerato }, { Account, tempoActions }] = await Promise.all([import('viem/chains'), import('viem/tempo')])
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

const plain = (_, value) => (typeof value === 'bigint' ? value.toString() : value)

await serve(async ({ url, method, params }) => {
  if (!Object.hasOwn(methods, method)) {
    throw new Error(`unknown method ${method}`)
  }
  return methods[method](params, connect(url))
}, plain)
