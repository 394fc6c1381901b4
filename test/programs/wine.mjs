/**
 * Tests the prebuilt binary for Windows in Wine: `npm run prebuild -- --target win32-x64`, then `npm run test:wine`. Runs
 * the smoke test and windows.mjs, first as Electron runs the addon: in a program of its name, without buffers that share memory.
 *
 * Wine is no Windows: docs/platforms.md lists what does not show here.
 */
import { spawnSync } from 'node:child_process'
import { closeSync, copyFileSync, cpSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nodeBinary } from '../../scripts/node_binary.mjs'
import { fail, ROOT, seconds } from '../../scripts/toolchain.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { prepareWine, WINE, WINE_ENVIRONMENT } from './wine_prefix.mjs'

const NODE_LINE = '22'
/** What the installed package needs, all of it plain JavaScript. */
const PACKAGES = Object.keys(
  JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')).packages,
).filter((path) => path !== '' && existsSync(join(ROOT, path)))

const prebuilt = join(ROOT, 'prebuilds', 'win32-x64', 'tilework.node')
if (!existsSync(prebuilt)) skip('there is no binary; npm run prebuild -- --target win32-x64 makes it')
const { node, reason } = nodeBinary(NODE_LINE, 'win-x64')
if (node === undefined) skip(reason)

const started = performance.now()
const missing = prepareWine()
if (missing !== undefined) skip(missing)
const root = makeWorkFolder('wine')
preparePackage()
const electron = join(root, 'electron.exe')
copyFileSync(node, electron)
runAll(electron, { TILEWORK_NO_EXTERNAL_BUFFERS: '1' })
runAll(node)
console.log(`wine: passed (${seconds(started)})`)

function preparePackage() {
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(root, name), { recursive: true })
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  for (const path of PACKAGES.filter((path) => !packages[path].dev))
    cpSync(join(ROOT, path), join(root, path), { recursive: true })
  mkdirSync(join(root, 'build', 'Release'), { recursive: true })
  cpSync(prebuilt, join(root, 'build', 'Release', 'tilework.node'))
  for (const name of ['smoke.mjs', 'windows.mjs'])
    cpSync(join(ROOT, 'test', 'programs', name), join(root, name))
}

function runAll(program, env) {
  // An addon sees the environment that its process began with: C's copy of it does not follow that of Node.
  run(program, ['smoke.mjs', '--isa', 'avx2', winPath(root)], { ...env, TILEWORK_MAX_ISA: 'avx2' })
  run(program, ['windows.mjs', '--wine', ...process.argv.slice(2), winPath(root)], env)
}

/** Through files: Node in Wine cannot open a pipe of Unix as its output. */
function run(program, args, env) {
  const path = join(root, 'output.txt')
  const output = openSync(path, 'w')
  const { status, signal } = spawnSync(WINE, [program, ...args], {
    cwd: root,
    env: { ...WINE_ENVIRONMENT, ...env },
    stdio: ['ignore', output, output],
  })
  closeSync(output)
  process.stdout.write(readFileSync(path, 'utf8'))
  if (status !== 0) fail(`${args[0]} failed in Wine (${signal ?? `exit code ${status}`}).`)
}

/** Wine shows the root of Unix as drive Z. */
function winPath(path) {
  return `Z:${path.replaceAll('/', '\\')}`
}

function skip(reason) {
  console.log(`wine: skipped, ${reason}`)
  process.exit(0)
}
