/**
 * Checks the C++ sources, as part of `npm run lint`: `native/` includes no Node header, headers include each other in
 * no cycle, and clang-format finds nothing to change (`--write` formats instead). The npm package pins the version of
 * clang-format, which decides about the format; where it has no binary for the processor, the system's one is used.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fail, ROOT } from './toolchain.mjs'

const FOLDERS = ['native', 'binding', 'test/native', 'fuzz/native']
const CXX_FILE = /\.(cc|h|def)$/

const files = FOLDERS.flatMap(sources)
const includes = new Map(files.map((file) => [file, includesOf(file)]))
checkNodeHeaders()
checkCycles()
const mode = process.argv.includes('--write') ? ['-i'] : ['--dry-run', '-Werror']
const { status, error } = spawnSync(clangFormat(), [...mode, ...files], { cwd: ROOT, stdio: 'inherit' })
if (error)
  fail(`clang-format could not be started (${error.message}); install it with your system's package manager.`)
if (status !== 0) fail('The C++ sources are not formatted; "npm run format" does it.')
console.log(`clang-format: ${files.length} files`)

function includesOf(file) {
  return [...readFileSync(join(ROOT, file), 'utf8').matchAll(/^#include [<"](.+)[>"]/gm)].map(
    ([, name]) => name,
  )
}

/** The kernels are built, tested and fuzzed without Node; only `binding/` knows it. */
function checkNodeHeaders() {
  for (const [file, names] of includes) {
    const header = names.find((name) => /^(napi|node_api|node|v8|uv)\b.*\.h$/.test(name))
    if (header && file.startsWith('native/'))
      fail(`${file} includes <${header}>; only binding/ may include Node headers.`)
  }
}

/** Depth first over the includes; `path` holds the files from the first one to `file`. */
function checkCycles() {
  const finished = new Set()
  const visit = (file, path) => {
    if (finished.has(file)) return
    if (path.includes(file)) fail(`Include cycle: ${[...path.slice(path.indexOf(file)), file].join(' -> ')}`)
    for (const name of includes.get(file)) {
      const folders = ['native', dirname(file), 'binding']
      const found = folders.map((folder) => join(folder, name)).find((candidate) => includes.has(candidate))
      if (found) visit(found, [...path, file])
    }
    finished.add(file)
  }
  for (const file of files) visit(file, [])
}

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
