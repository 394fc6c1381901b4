/**
 * The package.json that is packed has no script `prepare`: it builds a checkout, the package lacks what it needs, and npm warns
 * a user of scripts that it would not run. npm packs the file as it is on disk, so `prepack` takes the script out and
 * `postpack` (`node scripts/packed_manifest.mjs`) puts it back.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from './toolchain.mjs'

const MANIFEST = join(ROOT, 'package.json')
const START = '  "scripts": {\n'
const PREPARE = '    "prepare": "node scripts/build_all.mjs",\n'

/** @param {string} text - of a package.json */
export function withoutPrepare(text) {
  return text.replace(PREPARE, '')
}

/** @param {string} text - of a package.json */
export function withPrepare(text) {
  return withoutPrepare(text).replace(START, START + PREPARE)
}

/** @param {(text: string) => string} change */
export function changeManifest(change) {
  writeFileSync(MANIFEST, change(readFileSync(MANIFEST, 'utf8')))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) changeManifest(withPrepare)
