/**
 * Tests the package as users install it: `npm run test:package`. Builds the shipped binary, packs the package, installs
 * the tarball in an empty folder without a compiler and cmake in PATH, and uses it from ES modules, CommonJS and the
 * command line. `-- --keep-prebuilds` packs the binaries of an earlier run.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { ENTRIES } from '../../scripts/entries.mjs'
import { shippedBinaries } from '../../scripts/shipped_binaries.mjs'
import { ROOT } from '../../scripts/toolchain.mjs'
import { bin, pack, run, step as runStep } from './packed.mjs'

/** Programs that a user's machine needs. */
const TOOLS_OF_A_USER = ['node', 'npm', 'npx', 'sh']
/** Files that the package may contain: none that only serve building or testing. */
const PACKED_FILE =
  /^package\/(native\/(dlpack\/(capsule|dlpack)\.h|reorder\/README\.md)|dist\/.*\.(c?js|d\.c?ts)|dist\/view\/(index\.html|page\.css)|deploy\/(Dockerfile|README\.md|kubernetes\/\w+\.yaml)|docs\/(decisions\/)?[^/]+\.(md|svg)|docs\/images\/[^/]+\.png|examples\/(electron\/[^/]+|reorder_file\.mjs)|prebuilds\/[^/]+\/tilework[^/]*\.node|(package\.json|README\.md|CHANGELOG\.md|CONTRIBUTING\.md|LICENSE|SECURITY\.md|THIRD_PARTY_NOTICES))$/
const INSTALL_HOOKS = ['preinstall', 'install', 'postinstall', 'prepare']

const work = mkdtempSync(join(tmpdir(), 'tilework-package-'))
const user = join(work, 'user')
const path = join(work, 'path')
let passed = 0
try {
  const tarball = pack(work, { keepPrebuilds: process.argv.includes('--keep-prebuilds') })
  await step('the tarball holds what it should', () => checkContent(tarball))
  await step('publint has no complaint', () => {
    run(bin('publint'), ['run', tarball, '--strict'], { cwd: work })
  })
  await step('its types resolve in every kind of module', () => {
    run(bin('attw'), ['--profile', 'node16', '--no-emoji', tarball], { cwd: work })
  })
  await step('it installs without compiler, cmake and install scripts', () => install(tarball))
  await step('the packages of the Docker image fit together', () => resolveImage(tarball))
  await step('import and require give the same working module', useAsModule)
  await step('its types compile in both kinds of module', compileTypes)
  await step('the command line works', useCommandLine)
  await step('a binary that cannot be loaded ends in advice', loadNothing)
  await step('an uncaught error prints a short line of source', throwUncaught)
  console.log(`package: ${passed} passed, 0 failed`)
} finally {
  rmSync(work, { recursive: true, force: true })
}

function checkContent(tarball) {
  const files = run('tar', ['-tzf', tarball], { cwd: work }).trim().split('\n')
  assert.deepEqual(
    files.filter((file) => !PACKED_FILE.test(file)),
    [],
    'files that should not be packed',
  )
  const entries = ENTRIES.flatMap((entry) =>
    ['js', 'cjs', 'd.ts', 'd.cts'].map((ending) => `dist/${entry}.${ending}`),
  )
  for (const file of [
    ...entries,
    'dist/cli/main.js',
    'dist/view/index.html',
    'dist/view/page.js',
    'README.md',
    'LICENSE',
  ]) {
    assert.ok(files.includes(`package/${file}`), `${file} is missing`)
  }
  assert.equal(files.filter((file) => file.endsWith('.node')).length, shippedBinaries().length)
}

/** What the Dockerfile installs, without its download: ranges that contradict each other are an error of npm. */
function resolveImage(tarball) {
  const file = readFileSync(join(ROOT, 'deploy', 'Dockerfile'), 'utf8')
  const packages = file.match(/npm install --omit=dev[^&]*/)[0].match(/\S+@[\^~]\S+/g)
  const folder = join(work, 'image')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  const flags = ['--package-lock-only', '--omit=dev', '--prefer-offline', '--no-audit', '--no-fund']
  run('npm', ['install', ...flags, tarball, ...packages], { cwd: folder })
  const { packages: locked } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'))
  const { devDependencies, peerDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  // Pixels of images and runs of models are no work of a worker.
  const needed = Object.keys(peerDependencies).filter(
    (name) => name !== 'sharp' && name !== 'onnxruntime-node',
  )
  assert.deepEqual(packages.map((each) => each.slice(0, each.lastIndexOf('@'))).sort(), needed.sort())
  for (const name of needed) {
    assert.ok(locked[`node_modules/${name}`], `${name} is not installed`)
    const range = devDependencies[name]
    if (range !== undefined)
      assert.ok(packages.includes(`${name}@${range}`), `${name} is not tested as ${range}`)
  }
}

function install(tarball) {
  mkdirSync(path)
  mkdirSync(user)
  for (const tool of TOOLS_OF_A_USER) symlinkSync(which(tool), join(path, tool))
  writeFileSync(join(user, 'package.json'), '{ "private": true }\n')
  const flags = ['--omit=dev', '--prefer-offline', '--no-audit', '--no-fund', '--foreground-scripts']
  runAsUser('npm', ['install', ...flags, tarball])
  const lock = JSON.parse(readFileSync(join(user, 'node_modules', '.package-lock.json'), 'utf8'))
  for (const [name, entry] of Object.entries(lock.packages)) {
    assert.ok(!entry.hasInstallScript, `${name} has an install script`)
  }
  const manifest = JSON.parse(readFileSync(join(user, 'node_modules', 'tilework', 'package.json'), 'utf8'))
  for (const hook of INSTALL_HOOKS) assert.ok(!(hook in manifest.scripts), `the package has a script ${hook}`)
}

function useAsModule() {
  writeFileSync(
    join(user, 'use.mjs'),
    `import assert from 'node:assert/strict'
    import { createRequire } from 'node:module'
    import { planReorder, TileworkError } from 'tilework'
    import { drawLayoutText, parseLayout } from 'tilework/layout'
    import { OnnxModel } from 'tilework/onnx'
    import { TmfileModel } from 'tilework/tmfile'
    const require = createRequire(import.meta.url)
    const required = require('tilework')
    assert.equal(require('tilework/onnx').OnnxModel, OnnxModel)
    assert.equal(require('tilework/tmfile').TmfileModel, TmfileModel)
    for (const make of [() => parseLayout('none'), () => drawLayoutText(1), () => OnnxModel.create(1)]) {
      assert.throws(make, TileworkError)
    }
    assert.equal(required.TileworkError, TileworkError)
    assert.equal(required.planReorder, planReorder)
    const plan = planReorder({ dtype: 'uint8', shape: [1, 2, 1, 2], from: 'bfyx', to: 'byxf' })
    const bytes = new Uint8Array(4)
    plan.runSync(Uint8Array.of(1, 2, 3, 4), bytes)
    assert.deepEqual([...bytes], [1, 3, 2, 4])`,
  )
  runAsUser('node', ['use.mjs'])
  writeFileSync(
    join(user, 'use.cjs'),
    `const { parseLayout, TileworkError } = require('tilework')
    const assert = require('node:assert/strict')
    assert.equal(parseLayout('b_fs_yx_fsv16').storage([1, 3, 2, 2]).elements, 64)
    assert.throws(() => parseLayout('no such layout'), TileworkError)
    import('tilework').then((imported) => assert.equal(imported.TileworkError, TileworkError))`,
  )
  runAsUser('node', ['use.cjs'])
}

function compileTypes() {
  const source = `import { open, parseLayout, TileworkError, type OpenFile } from 'tilework'
    import { describeLayout } from 'tilework/layout'
    import { Graph, OnnxModel } from 'tilework/onnx'
    import { TmfileModel } from 'tilework/tmfile'
    export const file: Promise<OpenFile> = open('x.btf')
    export const elements: number = parseLayout('bfyx').storage([1, 2, 3, 4]).elements
    export const lines: string[] = describeLayout(parseLayout('bfyx'))
    export const graph = (model: OnnxModel | TmfileModel): Graph | undefined =>
      model instanceof OnnxModel ? model.graph : undefined
    export const code = (error: unknown) => (error instanceof TileworkError ? error.code : undefined)\n`
  for (const name of ['types.mts', 'types.cts']) writeFileSync(join(user, name), source)
  const types = ['--types', 'node', '--typeRoots', join(ROOT, 'node_modules', '@types')]
  const options = ['--noEmit', '--strict', '--target', 'es2022', '--lib', 'es2023,esnext.disposable']
  for (const kind of ['node16', 'nodenext']) {
    run(bin('tsc'), [...options, '--module', kind, ...types, 'types.mts', 'types.cts'], { cwd: user })
  }
}

function useCommandLine() {
  const shape = ['--shape', '2,2,2,2']
  const answer = JSON.parse(
    runAsUser('npx', ['--no-install', 'tilework', 'layout', 'b_fs_yx_fsv16', ...shape, '--json']),
  )
  assert.equal(answer.name, 'b_fs_yx_fsv16')
  assert.equal(answer.elements, 2 * 16 * 2 * 2)
  assert.match(runAsUser('npx', ['--no-install', 'tilework', '--help']), /inspect.*check.*convert.*layout/s)
}

function loadNothing() {
  const script = `import('tilework').then(({ planReorder }) =>
    planReorder({ dtype: 'uint8', shape: [4], from: 'row_major', to: 'row_major' })).catch((error) =>
    console.log(error.code, error.message))`
  const answer = runAsUser('node', ['-e', script], { TILEWORK_PREBUILD: join(work, 'nothing') })
  assert.match(answer, /^ERR_NATIVE_LOAD .*nothing does not exist\.\n.*TILEWORK_PREBUILD/)
}

/** Node prints the line that threw; of a minified file that is the whole file. */
function throwUncaught() {
  const script = `import('tilework').then(({ cast }) => cast(1, 'float16'))`
  const { stderr } = spawnSync(process.execPath, ['-e', script], { cwd: user, encoding: 'utf8' })
  assert.match(stderr, /TileworkError: /)
  const longest = Math.max(...stderr.split('\n').map((line) => line.length))
  assert.ok(longest < 300, `a line of stderr has ${longest} characters`)
}

async function step(name, test) {
  await runStep(name, test)
  passed++
}

function runAsUser(command, args, env = {}) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|NODE_|PATH$|CXX$|CC$)/.test(name))
  return run(join(path, command), args, {
    cwd: user,
    env: { ...Object.fromEntries(inherited), ...env, PATH: path },
  })
}

function which(command) {
  if (command === 'node') return process.execPath
  const folders = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
  const found = folders.find((folder) => readdirQuietly(folder).includes(command))
  assert.ok(found, `${command} is not on PATH`)
  return join(found, command)
}

function readdirQuietly(folder) {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
