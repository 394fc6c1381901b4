/**
 * Installs the packages per platform in empty folders: `npm run test:packages`. For every binary of `prebuilds/` npm must
 * choose the one package that fits; the binary of this machine must load from it; without one the error must say what to
 * install. Prints what an app ships. `npm run prebuild -- --all` makes the binaries; those that are missing are left out.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { builtTargets, makePackages } from '../../scripts/platform_packages.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { TARGETS } from '../../scripts/zig_build.mjs'
import { run, step } from './packed.mjs'

const SCRIPT = `import('tilework').then(({ planReorder }) => {
  const to = new Uint8Array(4)
  planReorder({ dtype: 'uint8', shape: [1, 2, 1, 2], from: 'bfyx', to: 'byxf' }).runSync(Uint8Array.of(1, 2, 3, 4), to)
  console.log(to.join())
}).catch((error) => console.log(error.code, error.message))`

const names = builtTargets()
const missing = Object.keys(TARGETS).filter((name) => !names.includes(name))
if (missing.length > 0) console.log(`packages: skipped, prebuilds/ has no binaries for ${missing.join(', ')}`)
const own = names.find((name) => isOwn(TARGETS[name]))
const work = makeWorkFolder('packages')
const folders = makePackages(join(work, 'packages'), names)
const tarballs = Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, pack(folder)]))

await step('the main package holds what links of its pages name', checkLinks)
for (const name of names) await step(`npm installs ${name} alone where it fits`, () => installFor(name))
if (own !== undefined) await step('the binary of this machine loads', () => load(own))
await step('without a binary the error says what to install', loadNothing)
console.log('packages: passed')

function isOwn({ folder, libc }) {
  const isGlibc = process.report.getReport().header.glibcVersionRuntime !== undefined
  return (
    folder === `${process.platform}-${process.arch}` && (libc === undefined || (libc === 'glibc') === isGlibc)
  )
}

function pack(folder) {
  const [name] = JSON.parse(run('npm', ['pack', '--json', '--pack-destination', work], { cwd: folder })).map(
    ({ filename }) => filename,
  )
  return join(work, name)
}

/** Relative links of README.md and docs/ to files that the package lacks would be dead for whoever installs it. */
function checkLinks() {
  const listed = run('tar', ['-tzf', tarballs.tilework]).trim().split('\n')
  const files = new Set(listed.map((path) => path.replace(/^package\//, '')))
  const dead = [...files]
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      linksOf(path)
        .filter((target) => !files.has(target))
        .map((target) => `${path}: ${target}`),
    )
  assert.deepEqual(dead, [])
  return `${files.size} files`
}

function linksOf(page) {
  const text = readFileSync(join(folders.tilework, page), 'utf8')
  const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, link]) => link)
  return links.filter((link) => !/^[a-z]+:/.test(link)).map((link) => posix.join(posix.dirname(page), link))
}

function installFor(name) {
  const user = install(name, flagsOf(TARGETS[name]))
  const modules = join(user, 'node_modules')
  assert.deepEqual(readdirSync(join(modules, '@tilework')), [name])
  const shipped = readFileSync(join(modules, '@tilework', name, 'tilework.node'))
  assert.ok(shipped.equals(readFileSync(join(folders[`@tilework/${name}`], 'tilework.node'))))
  return `node_modules has ${(bytesOf(modules) / 1e6).toFixed(1)} MB`
}

function flagsOf({ folder, libc }) {
  const [os, cpu] = folder.split('-')
  return [`--os=${os}`, `--cpu=${cpu}`, ...(libc === undefined ? [] : [`--libc=${libc}`])]
}

/** The tarballs stand in for the registry: npm chooses among them as among published packages. */
function install(name, flags) {
  const user = join(work, name)
  mkdirSync(user)
  const { tilework, ...platforms } = Object.fromEntries(
    Object.entries(tarballs).map(([key, path]) => [key, `file:${path}`]),
  )
  const manifest = { private: true, dependencies: { tilework }, optionalDependencies: platforms }
  writeFileSync(join(user, 'package.json'), JSON.stringify(manifest))
  run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', ...flags], { cwd: user })
  return user
}

function load(name) {
  assert.equal(answerIn(join(work, name)), '1,3,2,4')
}

function loadNothing() {
  const answer = answerIn(install('nothing', ['--omit=optional']))
  assert.match(answer, /^ERR_NATIVE_LOAD .*@tilework\/.* is not installed/s)
  assert.match(answer, /npm install --include=optional --os=\w+ --cpu=\w+/)
}

function answerIn(cwd) {
  return spawnSync(process.execPath, ['-e', SCRIPT], { cwd, encoding: 'utf8' }).stdout.trim()
}

function bytesOf(folder) {
  const files = readdirSync(folder, { withFileTypes: true, recursive: true }).filter((entry) =>
    entry.isFile(),
  )
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}
