/** What every binary that is shipped must hold to, whatever system it is for: its size, libraries and exports. */
import { statSync } from 'node:fs'
import { fail } from './toolchain.mjs'

const MAX_BYTES = 4 * 2 ** 20

const EXPORTS = ['napi_register_module_v1', 'node_api_module_get_api_version_v1']

/**
 * Ends this process where the binary may not be shipped.
 *
 * @param {string} path
 * @param {{ libraries: readonly string[], known: RegExp, exported: readonly string[] }} found
 * @returns {{ kib: string, refuse: (why: string) => never }} its size, and the end for further faults
 */
export function checkShipped(path, { libraries, known, exported }) {
  const { size } = statSync(path)
  const refuse = (why) => fail(`${path} may not be shipped: ${why}.`)
  if (size > MAX_BYTES) refuse(`it has ${size} bytes; at most ${MAX_BYTES} are allowed`)
  const foreign = libraries.filter((name) => !known.test(name))
  if (foreign.length > 0) refuse(`it needs ${foreign.join(', ')}`)
  const names = [...exported].sort()
  if (names.join() !== EXPORTS.join()) refuse(`it exports ${names.join(', ') || 'nothing'}`)
  return { kib: `${Math.ceil(size / 1024)} KiB`, refuse }
}

/** A text that ends with a zero. @param {Buffer} bytes @param {number} offset */
export function zeroTerminated(bytes, offset) {
  return bytes.toString('latin1', offset, bytes.indexOf(0, offset))
}
