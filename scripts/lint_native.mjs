/**
 * Checks the format of the C++ sources with clang-format: part of `npm run lint`; `--write` formats them instead.
 * The npm package pins the version, which decides about the format; on a processor for which it has no binary, the
 * system's clang-format is taken.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fail, ROOT } from './toolchain.mjs'

const FOLDERS = ['native', 'binding', 'test/native']
const CXX_FILE = /\.(cc|h|def)$/

const files = FOLDERS.flatMap(sources)
const mode = process.argv.includes('--write') ? ['-i'] : ['--dry-run', '-Werror']
const { status, error } = spawnSync(clangFormat(), [...mode, ...files], { cwd: ROOT, stdio: 'inherit' })
if (error)
  fail(`clang-format could not be started (${error.message}); install it with your system's package manager.`)
if (status !== 0) fail('The C++ sources are not formatted; "npm run format" does it.')
console.log(`clang-format: ${files.length} files`)

function sources(folder) {
  if (!existsSync(join(ROOT, folder))) return []
  const names = readdirSync(join(ROOT, folder), { recursive: true }).map(String)
  return names.filter((name) => CXX_FILE.test(name)).map((name) => join(folder, name))
}

function clangFormat() {
  const root = join(createRequire(import.meta.url).resolve('clang-format/package.json'), '..')
  const pinned = join(root, 'bin', `${process.platform}_${process.arch}`, 'clang-format')
  return existsSync(pinned) ? pinned : 'clang-format'
}
