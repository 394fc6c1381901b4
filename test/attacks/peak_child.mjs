/**
 * `node peak_child.mjs DIST CALL FILE`: prints by how many bytes the peak memory of the process grows in one call of the library, or in
 * one run of the command line whose output goes nowhere.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const [, , dist, call, file] = process.argv
const imported = (name) => import(pathToFileURL(join(dist, name)).href)
const { check, convert, open } = await imported('index.js')
const print = process.stdout.write.bind(process.stdout)

async function runCli(...args) {
  process.argv = [...process.argv.slice(0, 2), ...args]
  process.stdout.write = () => true
  await imported('cli/main.js')
  if (process.exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${process.exitCode}`)
}

const calls = {
  open: () => open(file),
  check: () => check(file),
  convert: () => convert(file, `${file}.onnx`),
  inspect: () => runCli('inspect', file),
  'inspect --json': () => runCli('inspect', file, '--json'),
}
const before = peakBytes()
await calls[call]()
print(String(peakBytes() - before))

/** On Linux `maxRSS` of a process starts with that of its parent, which may be larger than all that is measured here. */
function peakBytes() {
  const status = '/proc/self/status'
  const [, peak] = existsSync(status) ? (/VmHWM:\s+(\d+)/.exec(readFileSync(status, 'latin1')) ?? []) : []
  return 1024 * Number(peak ?? process.resourceUsage().maxRSS)
}
