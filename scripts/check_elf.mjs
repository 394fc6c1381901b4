/** Checks a Linux binary that is to be shipped, wherever it was built for: what it needs, what it exports and its size. */
import { spawnSync } from 'node:child_process'
import { checkShipped } from './check_shipped.mjs'
import { fail } from './toolchain.mjs'

/** Libraries of the C library; the C++ runtime is linked statically. */
const LIBRARIES = {
  glibc: /^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d)$/,
  musl: /^libc\.(so|musl-(x86_64|aarch64)\.so\.1)$/,
}

/**
 * Ends this process where the binary may not be shipped.
 *
 * @param {string} path
 * @param {'glibc' | 'musl'} libc
 * @param {string} maxGlibc - the version that users have at least
 * @returns {string} what was found
 */
export function checkElf(path, libc, maxGlibc) {
  const libraries = [...readelf('-d', path).matchAll(/\(NEEDED\).*\[(.*)\]/g)].map(([, name]) => name)
  const symbols = dynamicSymbols(path)
  const exported = symbols.filter(({ isDefined }) => isDefined).map(({ name }) => name)
  const { kib, refuse } = checkShipped(path, { libraries, known: LIBRARIES[libc], exported })

  const imported = symbols.filter(({ isDefined }) => !isDefined)
  const isNodeApi = ({ name }) => /^(napi|node_api)_/.test(name)
  // Symbols of musl have no version; those of C++ are defined inside.
  const isUndefined = ({ name, version }) => (libc === 'glibc' ? !version : name.startsWith('_Z'))
  const missing = imported.filter((symbol) => !isNodeApi(symbol) && !symbol.isWeak && isUndefined(symbol))
  if (missing.length > 0) refuse(`nothing defines ${missing.map(({ name }) => name).join(', ')}`)
  const versions = imported.flatMap(({ version }) => version?.match(/^GLIBC_([\d.]+)$/)?.[1] ?? [])
  const glibc = versions.sort(compareVersions).at(-1)
  if (glibc !== undefined && compareVersions(glibc, maxGlibc) > 0) {
    refuse(`it needs glibc ${glibc}; at most ${maxGlibc} is allowed`)
  }
  return [
    kib,
    ...(glibc === undefined ? [] : [`glibc ${glibc}`]),
    `needs ${libraries.join(' ')}`,
    `${imported.filter(isNodeApi).length} functions of Node-API and ${imported.length - imported.filter(isNodeApi).length} others`,
  ].join(', ')
}

/** Rows such as `12: 0000000000000000 0 FUNC GLOBAL DEFAULT UND memcpy@GLIBC_2.14 (3)`. */
function dynamicSymbols(path) {
  const row = /^ *\d+: +[\da-f]+ +\d+ +\w+ +(\w+) +\w+ +(\w+) +(\S+)/gm
  return [...readelf('--dyn-syms', path).matchAll(row)].map(([, bind, section, text]) => {
    const [name, version] = text.split(/@+/)
    return { name, version, isDefined: section !== 'UND', isWeak: bind === 'WEAK' }
  })
}

function readelf(what, path) {
  const { status, stdout } = spawnSync('readelf', ['--wide', what, path], {
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  if (status !== 0) fail('readelf was not found or failed; it is part of binutils.')
  return stdout
}

function compareVersions(one, other) {
  return one.localeCompare(other, 'en', { numeric: true })
}
