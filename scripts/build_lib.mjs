/**
 * Compiles `lib` to `dist` with tsc: `npm run build:lib`, and `npm ci` in a checkout. What tsc wrote for a source file
 * that no longer exists is removed, because `dist` is packed whole.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fail, ROOT, seconds } from './toolchain.mjs'

const DIST = join(ROOT, 'dist')
const started = performance.now()

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.json'], { cwd: ROOT, stdio: 'inherit' })
if (status !== 0) fail('Compiling lib/ failed; the errors of tsc are above.')
for (const path of readdirSync(DIST, { recursive: true })) removeIfStale(String(path))
console.log(`library: dist/index.js (${seconds(started)})`)

function removeIfStale(path) {
  const source = path.replace(/(\.d\.ts|\.js)$/, '.ts')
  if (source !== path && !existsSync(join(ROOT, 'lib', source))) rmSync(join(DIST, path))
}
