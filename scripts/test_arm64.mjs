/**
 * Builds the C++ half for 64-bit ARM and tests it under emulation: `npm run test:arm64`. First the C++ tests, then the
 * addon, loaded by a Node for that processor. With `--quick` the C++ tests of reorders alone, with fewer random rounds.
 * Skipped, with the reason, where Debian's cross compiler or qemu is missing.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { nodeBinary } from './node_binary.mjs'
import { fail, jobs, ROOT, requireTools, runOrExit, seconds } from './toolchain.mjs'
import { makeWorkFolder } from './work_folder.mjs'

const FOLDER = join(ROOT, 'build-native-arm64')
const TOOLCHAIN = join(ROOT, 'cmake', 'aarch64-linux-gnu.cmake')
/** What that toolchain file names, and the package that has it. */
const TOOLS = { 'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu', 'qemu-aarch64-static': 'qemu-user-static' }
const SYSROOT = '/usr/aarch64-linux-gnu'
const NODE_LINE = '22'
/** Rounds of random layouts of the quick run; the test's own number takes a minute under emulation. */
const QUICK_ROUNDS = '3000'

const quick = process.argv.includes('--quick')
for (const [tool, name] of Object.entries(TOOLS)) {
  if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0) continue
  console.log(`arm64: skipped, ${tool} was not found (Debian's package ${name} has it)`)
  process.exit(0)
}
requireTools()
const started = performance.now()
build()
testCore()
testAddon()
console.log(`arm64: passed (${seconds(started)})`)

/** Core, tests and addon in one folder, without cmake-js, which builds for the machine it runs on. */
function build() {
  const require = createRequire(import.meta.url)
  const headers = ['node-api-headers', 'node-addon-api'].map((name) => require(name).include_dir)
  const options = [
    `-DCMAKE_TOOLCHAIN_FILE=${TOOLCHAIN}`,
    `-DCMAKE_JS_INC=${headers.join(';')}`,
    '-DTILEWORK_BUILD_TESTS=ON',
    // As it is shipped. GCC 12 warns of the inside of std::string then; the builds for this machine are strict.
    '-DCMAKE_BUILD_TYPE=Release',
    '-DTILEWORK_WARNINGS_AS_ERRORS=OFF',
  ]
  runOrExit('Configuring for arm64', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  const targets = quick ? ['--target', 'reorder_test', 'tilework'] : []
  runOrExit('Building for arm64', 'cmake', ['--build', FOLDER, '--parallel', String(jobs()), ...targets])
  console.log(`arm64: built (${seconds(started)})`)
}

function testCore() {
  if (quick) {
    emulate([join(FOLDER, 'test', 'native', 'reorder_test'), QUICK_ROUNDS])
    console.log(`arm64: reorder_test passed with ${QUICK_ROUNDS} rounds (${seconds(started)})`)
    return
  }
  const args = ['--test-dir', FOLDER, '--output-on-failure', '--no-tests=error', '--parallel', String(jobs())]
  if (spawnSync('ctest', args, { stdio: 'inherit' }).status !== 0) fail('C++ tests failed on arm64.')
}

/** The package as it is installed, with a binary for arm64 in place of this machine's. */
function testAddon() {
  const { node, reason } = nodeBinary(NODE_LINE, 'linux-arm64')
  if (node === undefined) return console.log(`arm64: the addon was not tested, ${reason}`)
  const root = makeWorkFolder('arm64')
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(root, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  mkdirSync(join(root, 'build', 'Release'), { recursive: true })
  cpSync(join(FOLDER, 'tilework.node'), join(root, 'build', 'Release', 'tilework.node'))
  emulate([node, join(ROOT, 'scripts', 'smoke_arm64.mjs'), root])
}

function emulate(command) {
  const { status, signal } = spawnSync('qemu-aarch64-static', ['-L', SYSROOT, ...command], {
    stdio: 'inherit',
  })
  if (status !== 0) fail(`${command.join(' ')} failed on arm64 (${signal ?? `exit code ${status}`}).`)
}
