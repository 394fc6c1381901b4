/** Scripts that run in a process of their own, for what would end the process of the test. */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { createRequire } from 'node:module'

export const ADDON = createRequire(import.meta.url).resolve('../../build/Release/tilework.node')

/** Runs a CommonJS script in which `addon`, `fs` and `folder` are defined. */
export function runScript(folder: string, script: string, flags: string[] = []): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, [...flags, '-e', scriptHead(folder) + script], { encoding: 'utf8' })
}

/** How many descriptors of this process are open on `path`; 0 where the system does not say (it has no /proc). */
export function descriptorsOn(path: string): number {
  return openFiles().filter((file) => file === path).length
}

/** As `descriptorsOn`, for all files of a folder, those without a name too. */
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
