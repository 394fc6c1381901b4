/**
 * `node peak_child.mjs DIST CALL FILE`: prints by how many bytes the peak memory of the process grows in one call of the library, or in
 * one run of the command line whose output goes nowhere.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { peakBytes } from '../../scripts/peak_memory.mjs'

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
  'convert to npz': () => convert(file, `${file}.npz`),
  'convert to float32': () => convert(file, `${file}.onnx`, { dtype: 'float32' }),
  inspect: () => runCli('inspect', file),
  'inspect --json': () => runCli('inspect', file, '--json'),
}
const before = peakBytes()
await calls[call]()
print(String(peakBytes() - before))
