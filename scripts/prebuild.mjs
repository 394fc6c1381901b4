/**
 * Builds binaries that are shipped, `prebuilds/<platform>-<arch>/tilework[.<libc>].node`: `npm run prebuild` for this
 * machine with its own compiler, `npm run prebuild -- --target NAME` (repeatable) or `--all` with zig for other machines.
 *
 * One Node-API binary serves every version of Node and Electron. On Linux its name contains the C library, taken from the
 * process report: prebuildify detects musl by Alpine's release file alone.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { Steps } from './steps.mjs'
import { fail, ROOT, requireTools, seconds } from './toolchain.mjs'
import { buildTarget, findZig, TARGETS } from './zig_build.mjs'

const NODE_GYP = join(ROOT, 'scripts', 'cmake_as_node_gyp.mjs')

const { values } = parseArgs({
  options: { all: { type: 'boolean' }, target: { type: 'string', multiple: true } },
})
const known = Object.keys(TARGETS)
const names = values.all ? known : (values.target ?? [])
const unknown = names.find((name) => !known.includes(name))
if (unknown !== undefined) fail(`Unknown target "${unknown}"; expected one of: ${known.join(', ')}.`)
const started = performance.now()
requireTools()
if (names.length === 0) await prebuildForThisMachine()
else await prebuildFor(names)

async function prebuildFor(names) {
  const zig = findZig()
  const steps = new Steps(
    'npm run prebuild',
    names.map((name) => ({ name: `compile for ${name} and check`, usualSeconds: 200 })),
  )
  for (const name of names) {
    steps.next()
    await buildTarget(name, zig)
  }
  steps.done()
}

async function prebuildForThisMachine() {
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
}

function libcTag() {
  if (process.platform !== 'linux') return {}
  const glibc = process.report.getReport().header.glibcVersionRuntime
  return { libc: glibc === undefined ? 'musl' : 'glibc', tagLibc: true }
}
