/**
 * Makes the packages that are published, from `prebuilds/`: `npm run packages`. One per platform, which npm installs where
 * `os`, `cpu` and `libc` fit, and the main package, which names them as optional dependencies and holds no binary:
 *
 *     packages/tilework, packages/@tilework/linux-x64-glibc, packages/@tilework/win32-x64, …
 *
 * A user downloads one binary of 1 MB instead of eight. Publish the platforms first. The tarball of `npm pack` in the
 * checkout holds all binaries of `prebuilds/` instead, and needs no other package.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { repositoryFields } from './repository.mjs'
import { notices } from './third_party_notices.mjs'
import { fail, ROOT } from './toolchain.mjs'
import { TARGETS } from './zig_build.mjs'

const SCOPE = '@tilework'
/** Made for each package. */
const NOTICES = 'THIRD_PARTY_NOTICES'

/**
 * @param {string} out - the folder that is replaced
 * @param {readonly string[]} names - of targets
 * @returns {Record<string, string>} folder of each package
 */
export function makePackages(out, names) {
  rmSync(out, { recursive: true, force: true })
  const manifest = { ...JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')), ...repositoryFields() }
  const folders = { tilework: join(out, 'tilework') }
  for (const name of names) {
    folders[`${SCOPE}/${name}`] = join(out, SCOPE, name)
    makePlatformPackage(join(out, SCOPE, name), name, manifest)
  }
  makeMainPackage(folders.tilework, names, manifest)
  return folders
}

/** Targets whose binaries exist. */
export function builtTargets() {
  return Object.keys(TARGETS).filter((name) => existsSync(binaryOf(name)))
}

function binaryOf(name) {
  const { folder, libc } = TARGETS[name]
  return join(ROOT, 'prebuilds', folder, libc === undefined ? 'tilework.node' : `tilework.${libc}.node`)
}

function makePlatformPackage(folder, name, { version, license, engines, repository, homepage, bugs }) {
  const { folder: platform, libc } = TARGETS[name]
  const [os, cpu] = platform.split('-')
  mkdirSync(folder, { recursive: true })
  cpSync(binaryOf(name), join(folder, 'tilework.node'))
  cpSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(join(folder, NOTICES), notices())
  writeJson(join(folder, 'package.json'), {
    name: `${SCOPE}/${name}`,
    version,
    description: `The binary of tilework for ${name}`,
    license,
    ...(repository && { repository, homepage, bugs }),
    engines,
    os: [os],
    cpu: [cpu],
    ...(libc && { libc: [libc] }),
    files: ['tilework.node', NOTICES],
    preferUnplugged: true,
  })
}

function makeMainPackage(folder, names, manifest) {
  const { scripts: _, devDependencies: __, ...kept } = manifest
  const files = kept.files.filter((file) => file !== 'prebuilds')
  const patterns = files.filter((pattern) => !pattern.startsWith('!') && pattern !== NOTICES)
  // Of a pattern its folder, once: npm takes what fits.
  for (const path of new Set(patterns.map((file) => (file.includes('*') ? dirname(file) : file)))) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    cpSync(join(ROOT, path), join(folder, path), { recursive: true })
  }
  writeFileSync(join(folder, NOTICES), notices({ hasBinaries: false }))
  const optionalDependencies = Object.fromEntries(names.map((name) => [`${SCOPE}/${name}`, manifest.version]))
  writeJson(join(folder, 'package.json'), { ...kept, files, optionalDependencies })
}

function writeJson(path, value) {
  writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = builtTargets()
  const missing = Object.keys(TARGETS).filter((name) => !names.includes(name))
  if (missing.length > 0 && !process.argv.includes('--partial')) {
    fail(`prebuilds/ lacks ${missing.join(', ')}: run "npm run prebuild -- --all", or pass --partial.`)
  }
  for (const [name, folder] of Object.entries(makePackages(join(ROOT, 'packages'), names))) {
    const binary = join(folder, 'tilework.node')
    console.log(existsSync(binary) ? `${name}: ${Math.ceil(statSync(binary).size / 1024)} KiB` : name)
  }
}
