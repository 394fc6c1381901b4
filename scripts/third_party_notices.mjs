/**
 * The licences of everything by others that the packages ship: `THIRD_PARTY_NOTICES`, made when a package is packed. A
 * licence that is not in the list below ends the packing.
 *
 * Dependencies that npm installs bring their own licence files, and only their licences are checked.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './toolchain.mjs'

/** Licences that allow to ship the code in a package under Apache-2.0. */
const ALLOWED = [
  '0BSD',
  'Apache-2.0',
  'Apache-2.0 WITH LLVM-exception',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'ZPL-2.1',
]

/** Compiled into the binaries: headers of npm packages, declarations by specifications, and what zig links statically. */
const IN_BINARIES = [
  { name: 'node-addon-api', used: 'headers, in every binary', npm: true },
  { name: 'node-api-headers', used: 'headers, in every binary', npm: true },
  {
    name: 'DLPack',
    license: 'Apache-2.0',
    used: 'declarations, in every binary and in native/dlpack',
    isInPackage: true,
  },
  {
    name: 'OpenCL headers of Khronos',
    license: 'Apache-2.0',
    used: 'names, in every binary',
  },
  {
    name: 'vector tables of ggml',
    license: 'MIT',
    used: 'data of the IQ block types, in every binary',
    text: 'ggml.txt',
  },
  {
    name: 'libc++, libc++abi and libunwind of LLVM',
    license: 'Apache-2.0 WITH LLVM-exception',
    used: 'linked statically into cross-compiled binaries',
    text: 'llvm.txt',
  },
  {
    name: 'compiler runtime of zig',
    license: 'MIT',
    used: 'linked statically into cross-compiled binaries',
    text: 'zig.txt',
  },
  {
    name: 'mingw-w64',
    license: 'ZPL-2.1',
    used: 'linked statically into binaries for Windows',
    text: 'mingw-w64.txt',
  },
]

/**
 * The text of the file.
 *
 * @param {{ hasBinaries?: boolean }} [holds] - whether the package holds binaries, with what is compiled into them
 * @throws Error for a licence that is not allowed
 */
export function notices({ hasBinaries = true } = {}) {
  const faults = licenceFaults()
  if (faults.length > 0)
    throw new Error(`These licences are not in the list of allowed ones: ${faults.join(', ')}.`)
  const parts = shipped({ hasBinaries }).map(({ name, version, license, used, text }) =>
    [`${name}${version ? ` ${version}` : ''}: ${license}`, used, '', text.trim()].join('\n'),
  )
  const line = '-'.repeat(78)
  return `tilework contains the following work of others.\n\n${parts.map((part) => `${line}\n${part}\n`).join('\n')}`
}

/** `NAME (LICENCE)` of everything shipped, or installed with it, whose licence is not allowed. */
export function licenceFaults(packages = [...shipped(), ...dependencies()]) {
  return packages
    .filter(({ license }) => !ALLOWED.includes(license))
    .map(({ name, license }) => `${name} (${license ?? 'none'})`)
}

function shipped({ hasBinaries = true } = {}) {
  const compiled = IN_BINARIES.filter(({ isInPackage }) => hasBinaries || isInPackage).map(
    ({ npm, text, ...entry }) =>
      npm ? { ...entry, ...fromNpm(entry.name) } : { ...entry, text: textOf(text) },
  )
  const bundled = bundledPackages().map((name) => ({ name, used: 'bundled JavaScript', ...fromNpm(name) }))
  return [...compiled, ...bundled]
}

/** @param file - in scripts/licenses; undefined for the licence of tilework itself, which is in every package */
function textOf(file) {
  if (file === undefined) return 'Its text is that of the file LICENSE.'
  return readFileSync(join(ROOT, 'scripts', 'licenses', file), 'utf8')
}

function fromNpm(name) {
  const folder = join(ROOT, 'node_modules', name)
  const { version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
  return {
    version,
    license,
    text: file === undefined ? `License: ${license}` : readFileSync(join(folder, file), 'utf8'),
  }
}

/** Packages whose code is in `dist`, by its source maps. */
export function bundledPackages(dist = join(ROOT, 'dist')) {
  const names = new Set()
  if (!existsSync(dist)) return []
  for (const path of readdirSync(dist, { recursive: true }).map(String)) {
    if (!path.endsWith('.map')) continue
    for (const source of JSON.parse(readFileSync(join(dist, path), 'utf8')).sources) {
      const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
      if (name !== undefined) names.add(name)
    }
  }
  return [...names].sort()
}

/** What npm installs with the package. */
function dependencies() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return Object.entries(packages)
    .filter(([path, { dev, optional }]) => path !== '' && !dev && !optional)
    .map(([path, { license }]) => ({ name: path.replace(/^.*node_modules\//, ''), license }))
}
