/**
 * Builds the binary that is shipped, `prebuilds/<platform>-<arch>/tilework[.<libc>].node`: `npm run prebuild`.
 *
 * One Node-API binary serves every version of Node and Electron. On Linux its name contains the C library, taken from the
 * process report: prebuildify detects musl by Alpine's release file alone.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Steps } from './steps.mjs'
import { fail, ROOT, requireTools, seconds } from './toolchain.mjs'

const NODE_GYP = join(ROOT, 'scripts', 'cmake_as_node_gyp.mjs')
const started = performance.now()
requireTools()

const steps = new Steps('npm run prebuild', [
  { name: `compile for ${process.platform}-${process.arch} and strip`, usualSeconds: 100 },
  { name: 'name and measure', usualSeconds: 0.1 },
])
steps.next()
const folder = join(ROOT, 'prebuilds', `${process.platform}-${process.arch}`)
rmSync(folder, { recursive: true, force: true })
const prebuildify = promisify(createRequire(import.meta.url)('prebuildify'))
try {
  await prebuildify({ cwd: ROOT, napi: true, strip: true, quiet: false, nodeGyp: NODE_GYP, ...libcTag() })
} catch (error) {
  fail(`Building the binary to ship failed (${error.message}); "npm run build:native" shows the reason.`)
}
steps.next()
const [name] = readdirSync(folder)
const kib = Math.ceil(statSync(join(folder, name)).size / 1024)
console.log(
  `prebuilt: prebuilds/${process.platform}-${process.arch}/${name}, ${kib} KiB (${seconds(started)})`,
)
steps.done()

function libcTag() {
  if (process.platform !== 'linux') return {}
  const glibc = process.report.getReport().header.glibcVersionRuntime
  return { libc: glibc === undefined ? 'musl' : 'glibc', tagLibc: true }
}
