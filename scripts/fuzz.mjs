/**
 * `npm run fuzz`: bundles `fuzz/main.ts` and runs it on `dist`; `--native` runs the C++ targets, `--differential` compares with
 * other readers, `--compositions` operations of tensors with a reference. See fuzz/README.md.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { ROOT } from './toolchain.mjs'

// Does not return.
if (process.argv.includes('--native')) await import('./fuzz_native.mjs')

const folder = ['differential', 'compositions'].find((name) => process.argv.includes(`--${name}`))
const main = folder ? join(folder, 'main.ts') : 'main.ts'
const outfile = join(ROOT, 'build', 'fuzz.mjs')
await build({
  ...{ entryPoints: [join(ROOT, 'fuzz', main)], outfile, bundle: true },
  ...{ format: 'esm', platform: 'node', target: 'node20', logLevel: 'error' },
})
const entry = pathToFileURL(join(ROOT, 'dist', 'index.js')).href
const env = { ...process.env, TILEWORK_ENTRY: entry }
const { status } = spawnSync(process.execPath, [outfile, ...process.argv.slice(2)], {
  cwd: ROOT,
  env,
  stdio: 'inherit',
})
process.exit(status ?? 1)
