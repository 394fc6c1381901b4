/** Runs scripts in a new process, for calls that would end the test process. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { createRequire } from 'node:module'

/** With slashes on Windows too, so that scripts in scripts need no escapes. */
export const ADDON = createRequire(import.meta.url)
  .resolve('../../build/Release/tilework.node')
  .replaceAll('\\', '/')

/** Runs a CommonJS script in which `addon`, `fs` and `folder` are defined. */
export function runScript(folder: string, script: string, flags: string[] = []): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [...flags, '-e', scriptHead(folder) + script], { encoding: 'utf8' })
}

/** Number of descriptors of this process that are open on `path`; 0 on systems without /proc. */
export function descriptorsOn(path: string): number {
  return openFiles().filter((file) => file === path).length
}

/** As `descriptorsOn`, for all files of a folder, unnamed files included. */
export function descriptorsIn(folder: string): number {
  return openFiles().filter((file) => file.startsWith(`${folder}/`)).length
}

function openFiles(): string[] {
  if (!existsSync('/proc/self/fd')) return []
  return readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return ''
    }
  })
}

export function scriptHead(folder: string): string {
  return `const addon = require(${JSON.stringify(ADDON)}), fs = require('node:fs');
    const folder = ${JSON.stringify(folder)};`
}
