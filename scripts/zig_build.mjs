/**
 * Cross-compiles the binaries that are shipped, with zig's Clang: `npm run prebuild -- --target NAME`, or `--all`.
 *
 * A build for publishing uses one compiler for all targets, because zig brings the C library of each, in the lowest
 * version that is supported. A checkout is built by the system's compiler and needs no zig.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildOrExit } from './build_progress.mjs'
import { checkElf } from './check_elf.mjs'
import { checkMachO } from './check_macho.mjs'
import { checkPe } from './check_pe.mjs'
import { hasSignature, signed } from './sign_macho.mjs'
import { fail, jobs, ROOT } from './toolchain.mjs'

/** Another version may take other options or bring another C++ library. */
export const ZIG_VERSION = '0.17.1'

/** glibc 2.28: Debian 10, RHEL 8, Ubuntu 20.04. */
const GLIBC = '2.28'

/** macOS 11: the first for arm64. */
const MACOS = '11.0'

/** By name: the folder and file are prebuildify's, so that node-gyp-build and Electron's tools find them. */
export const TARGETS = {
  'linux-x64-glibc': { folder: 'linux-x64', libc: 'glibc', zig: `x86_64-linux-gnu.${GLIBC}` },
  'linux-x64-musl': { folder: 'linux-x64', libc: 'musl', zig: 'x86_64-linux-musl' },
  'linux-arm64-glibc': { folder: 'linux-arm64', libc: 'glibc', zig: `aarch64-linux-gnu.${GLIBC}` },
  'linux-arm64-musl': { folder: 'linux-arm64', libc: 'musl', zig: 'aarch64-linux-musl' },
  'darwin-arm64': { folder: 'darwin-arm64', zig: `aarch64-macos.${MACOS}` },
  'darwin-x64': { folder: 'darwin-x64', zig: `x86_64-macos.${MACOS}` },
  'win32-x64': { folder: 'win32-x64', zig: 'x86_64-windows-gnu' },
  'win32-arm64': { folder: 'win32-arm64', zig: 'aarch64-windows-gnu' },
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
  const prebuilt = join('prebuilds', folder, libc === undefined ? 'tilework.node' : `tilework.${libc}.node`)
  mkdirSync(join(ROOT, 'prebuilds', folder), { recursive: true })
  copyFileSync(join(out, 'Release', 'tilework.node'), join(ROOT, prebuilt))
  if (name.startsWith('darwin-')) sign(join(ROOT, prebuilt))
  console.log(`prebuilt: ${prebuilt}, ${check(join(ROOT, prebuilt), name)}`)
}

function sign(path) {
  const bytes = readFileSync(path)
  if (!hasSignature(bytes)) writeFileSync(path, signed(bytes, 'tilework.node'))
}

function check(path, name) {
  if (name.startsWith('darwin-')) return checkMachO(path, MACOS)
  if (name.startsWith('win32-')) return checkPe(path)
  return checkElf(path, TARGETS[name].libc, GLIBC)
}

/** The program zig; ends this process where it is missing or has another version. */
export function findZig() {
  const { zig, reason } = zigOf()
  return zig ?? fail(`${reason}.`)
}

/** @returns {{ zig?: string, reason?: string }} the program, or why it cannot be used and what to do */
export function zigOf() {
  const zig = process.env.TILEWORK_ZIG || 'zig'
  const { status, stdout } = spawnSync(zig, ['version'], { encoding: 'utf8' })
  const advice = `"node scripts/install_zig.mjs FOLDER" installs ${ZIG_VERSION}; set TILEWORK_ZIG to FOLDER/bin/zig`
  if (status !== 0) return { reason: `zig was not found (looked for ${zig}): ${advice}` }
  if (stdout.trim() !== ZIG_VERSION) return { reason: `zig is ${stdout.trim()}: ${advice}` }
  return { zig }
}
