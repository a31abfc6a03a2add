// Compiles contracts/*.sol into contracts/build/*.json. The output is committed, so the tests need no compiler.
// `--check` writes nothing, and fails if the committed output differs from what the sources compile to.
//
// The output is reproducible: a pinned compiler, one EVM version, and no metadata (a hash over paths and settings) in
// the code.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import solc from 'solc'

const contracts = new URL('contracts/', import.meta.url)
const build = new URL('contracts/build/', import.meta.url)

function compile() {
  const names = readdirSync(contracts).filter((name) => name.endsWith('.sol')).sort()
  const sources = Object.fromEntries(
    names.map((name) => [name, { content: readFileSync(new URL(name, contracts), 'utf8') }]),
  )
  const settings = {
    evmVersion: 'paris',
    metadata: { bytecodeHash: 'none', appendCBOR: false },
    optimizer: { enabled: true, runs: 200 },
    outputSelection: { '*': { '*': ['abi', 'evm.bytecode.object'] } },
  }
  const output = JSON.parse(solc.compile(JSON.stringify({ language: 'Solidity', sources, settings })))
  const problems = output.errors ?? []
  if (problems.length > 0) {
    throw new Error(problems.map((problem) => problem.formattedMessage).join('\n'))
  }
  return names.map((name) => {
    const contract = basename(name, '.sol')
    const { abi, evm } = output.contracts[name][contract]
    const text = `${JSON.stringify({ abi, bytecode: `0x${evm.bytecode.object}` }, null, 2)}\n`
    return { file: `${contract}.json`, text }
  })
}

function committed(file) {
  try {
    return readFileSync(new URL(file, build), 'utf8')
  } catch {
    return null
  }
}

const compiled = compile()
if (process.argv.includes('--check')) {
  const wrong = compiled.filter(({ file, text }) => committed(file) !== text).map(({ file }) => file)
  const files = new Set(compiled.map(({ file }) => file))
  wrong.push(...readdirSync(build).filter((file) => !files.has(file)))
  if (wrong.length > 0) {
    console.error(`out of date: ${wrong.join(', ')}; run \`node build.mjs\``)
    process.exit(1)
  }
  console.log(`${compiled.length} contracts match their sources`)
} else {
  for (const { file, text } of compiled) {
    writeFileSync(new URL(file, build), text)
  }
  console.log(`${compiled.length} contracts written to ${basename(fileURLToPath(build))}`)
}
