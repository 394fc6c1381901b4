/**
 * Cross-compiles the C++ code for 64-bit ARM and tests it under qemu: `npm run test:arm64`. Runs the C++ tests, then loads
 * the addon in a Node for that processor. `--quick` runs only the C++ tests of reorders, with fewer random rounds. Prints
 * the reason and exits with 0 where Debian's cross compiler or qemu is missing.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { nodeBinary } from '../../scripts/node_binary.mjs'
import { fail, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { EMULATOR, skipWithoutEmulator } from './emulator.mjs'
import { buildNativeTests, runNativeTests } from './native_tests.mjs'

const NODE_LINE = '22'
/** Random layouts of the quick run; the test's default takes a minute under emulation. */
const QUICK_ROUNDS = '3000'

const quick = process.argv.includes('--quick')
skipWithoutEmulator()
const started = performance.now()
const folder = await build()
console.log(`arm64: built (${seconds(started)})`)
testCore()
testAddon()
console.log(`arm64: passed (${seconds(started)})`)

/** Builds the addon without cmake-js, which can only build for the host. */
function build() {
  const require = createRequire(import.meta.url)
  const headers = ['node-api-headers', 'node-addon-api'].map((name) => require(name).include_dir)
  return buildNativeTests('arm64', {
    targets: [quick ? 'reorder_test' : 'native_tests', 'tilework'],
    options: [`-DCMAKE_JS_INC=${headers.join(';')}`],
  })
}

function testCore() {
  if (quick) {
    emulate([join(folder, 'test', 'native', 'reorder_test'), QUICK_ROUNDS])
    console.log(`arm64: reorder_test passed with ${QUICK_ROUNDS} rounds (${seconds(started)})`)
    return
  }
  if (!runNativeTests(folder)) fail('C++ tests failed on arm64.')
}

/** Tests a copy of the installed package with an arm64 binary. */
function testAddon() {
  const { node, reason } = nodeBinary(NODE_LINE, 'linux-arm64')
  if (node === undefined) return console.log(`arm64: the addon was not tested, ${reason}`)
  const root = makeWorkFolder('arm64')
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(root, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  mkdirSync(join(root, 'build', 'Release'), { recursive: true })
  cpSync(join(folder, 'tilework.node'), join(root, 'build', 'Release', 'tilework.node'))
  emulate([node, join(ROOT, 'test', 'programs', 'smoke.mjs'), '--isa', 'neon', root])
}

function emulate(command) {
  const [program, ...args] = [...EMULATOR, ...command]
  const { status, signal } = spawnSync(program, args, { stdio: 'inherit' })
  if (status !== 0) fail(`${command.join(' ')} failed on arm64 (${signal ?? `exit code ${status}`}).`)
}
