/**
 * Cross-compiles the binaries that are shipped, with zig's Clang: `npm run prebuild -- --target NAME`, or `--all`.
 *
 * A build for publishing uses one compiler for all targets, because zig brings the C library of each, in the lowest
 * version that is supported. A checkout is built by the system's compiler and needs no zig.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildOrExit } from './build_progress.mjs'
import { checkElf } from './check_elf.mjs'
import { fail, jobs, ROOT } from './toolchain.mjs'

/** Another version may take other options or bring another C++ library. */
const ZIG_VERSION = '0.17.1'

/** glibc 2.28: Debian 10, RHEL 8, Ubuntu 20.04. */
const GLIBC = '2.28'

/** By name: the folder and file are prebuildify's, so that node-gyp-build and Electron's tools find them. */
export const TARGETS = {
  'linux-x64-glibc': { folder: 'linux-x64', libc: 'glibc', zig: `x86_64-linux-gnu.${GLIBC}` },
  'linux-x64-musl': { folder: 'linux-x64', libc: 'musl', zig: 'x86_64-linux-musl' },
  'linux-arm64-glibc': { folder: 'linux-arm64', libc: 'glibc', zig: `aarch64-linux-gnu.${GLIBC}` },
  'linux-arm64-musl': { folder: 'linux-arm64', libc: 'musl', zig: 'aarch64-linux-musl' },
}

/** Builds and checks one target; ends this process on failure. */
export async function buildTarget(name, zig) {
  const { folder, libc, zig: triple } = TARGETS[name]
  const out = join(ROOT, `build-${name}`)
  const cmakeJs = join(
    dirname(createRequire(import.meta.url).resolve('cmake-js/package.json')),
    'bin',
    'cmake-js',
  )
  await buildOrExit(`Building for ${name}`, process.execPath, [
    cmakeJs,
    'build',
    ...['--out', out, '--parallel', String(jobs())],
    `--CDCMAKE_TOOLCHAIN_FILE=${join(ROOT, 'cmake', 'zig.cmake')}`,
    `--CDTILEWORK_ZIG=${zig}`,
    `--CDTILEWORK_ZIG_TARGET=${triple}`,
  ])
  const prebuilt = join('prebuilds', folder, `tilework.${libc}.node`)
  mkdirSync(join(ROOT, 'prebuilds', folder), { recursive: true })
  copyFileSync(join(out, 'Release', 'tilework.node'), join(ROOT, prebuilt))
  console.log(`prebuilt: ${prebuilt}, ${checkElf(join(ROOT, prebuilt), libc, GLIBC)}`)
}

/** The program zig; ends this process where it is missing or has another version. */
export function findZig() {
  const zig = process.env.TILEWORK_ZIG || 'zig'
  const { status, stdout } = spawnSync(zig, ['version'], { encoding: 'utf8' })
  const advice = `"pip install ziglang==${ZIG_VERSION}" in a virtual environment, then set TILEWORK_ZIG to lib/python3.*/site-packages/ziglang/zig in it`
  if (status !== 0) fail(`zig was not found (looked for ${zig}): ${advice}.`)
  if (stdout.trim() !== ZIG_VERSION) fail(`zig is ${stdout.trim()}; expected ${ZIG_VERSION}: ${advice}.`)
  return zig
}
