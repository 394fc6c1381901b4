/**
 * Installs zig, the compiler of the binaries that are shipped, in a virtual environment of Python: `install_zig.mjs FOLDER`.
 * The program is FOLDER/bin/zig then. Exits with 0 where it is there already.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fail } from './toolchain.mjs'
import { ZIG_VERSION } from './zig_build.mjs'

const folder = resolve(process.argv[2] ?? 'zig')
const zig = join(folder, 'bin', 'zig')
if (!existsSync(zig)) {
  run('python3', ['-m', 'venv', folder])
  run(join(folder, 'bin', 'pip'), ['install', '--quiet', `ziglang==${ZIG_VERSION}`])
  const [version] = readdirSync(join(folder, 'lib')).filter((name) => name.startsWith('python3'))
  symlinkSync(join('..', 'lib', version, 'site-packages', 'ziglang', 'zig'), zig)
}
console.log(zig)

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: ['ignore', process.stderr, process.stderr] })
  if (status !== 0) fail(`zig could not be installed: ${command} ${args.join(' ')} failed.`)
}
