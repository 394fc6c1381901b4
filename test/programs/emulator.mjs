/** 64-bit ARM on another processor: Debian's cross compiler, and qemu to run what it builds. */
import { spawnSync } from 'node:child_process'

/** What cmake/aarch64-linux-gnu.cmake names, and the package that has it. */
const TOOLS = { 'aarch64-linux-gnu-g++': 'g++-aarch64-linux-gnu', 'qemu-aarch64-static': 'qemu-user-static' }

/** Begins the command line of a program for 64-bit ARM. */
export const EMULATOR = ['qemu-aarch64-static', '-L', '/usr/aarch64-linux-gnu']

/** Says so and ends this process, without failure, where a tool is missing. */
export function skipWithoutEmulator() {
  for (const [tool, name] of Object.entries(TOOLS)) {
    if (spawnSync(tool, ['--version'], { stdio: 'ignore' }).status === 0) continue
    console.log(`64-bit ARM: skipped, ${tool} was not found (Debian's package ${name} has it)`)
    process.exit(0)
  }
}
