/**
 * Sets a checkout up to test the binary of `prebuilds/` for this machine instead of building one: installs the tools
 * without their builds, bundles the library, and puts the binary where the tests look for it.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const { platform, arch } = process
const isMusl = platform === 'linux' && process.report.getReport().header.glibcVersionRuntime === undefined
const libc = platform === 'linux' ? (isMusl ? '.musl' : '.glibc') : ''
const prebuilt = join(ROOT, 'prebuilds', `${platform}-${arch}`, `tilework${libc}.node`)
if (!existsSync(prebuilt)) {
  console.error(`${prebuilt} does not exist; "npm run prebuild" makes it.`)
  process.exit(1)
}
run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
mkdirSync(join(ROOT, 'build', 'Release'), { recursive: true })
copyFileSync(prebuilt, join(ROOT, 'build', 'Release', 'tilework.node'))
run('node', [join('scripts', 'build_lib.mjs')])

function run(command, args) {
  // npm is a script of the shell on Windows.
  const { status } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', shell: platform === 'win32' })
  if (status !== 0) process.exit(status ?? 1)
}
