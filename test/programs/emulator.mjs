/** 64-bit ARM on another processor: Debian's cross compiler, and qemu to run its programs. */
import { spawnSync } from 'node:child_process'

/** Tools that cmake/aarch64-linux-gnu.cmake uses, and their Debian packages. */
const TOOLS = { 'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu', 'qemu-aarch64-static': 'qemu-user-static' }

/** Prefix of the command line of a 64-bit ARM program. */
export const EMULATOR = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu']

/** Prints the reason and exits with 0 where a tool is missing. */
export function skipWithoutEmulator() {
  for (const [tool, name] of Object.entries(TOOLS)) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0) continue
    console.log(`64-bit ARM: skipped, ${tool} was not found; install Debian's package ${name}`)
    process.exit(0)
  }
}
