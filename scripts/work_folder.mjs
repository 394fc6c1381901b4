/** A temporary folder for a test program, removed when the process ends in any way but SIGKILL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * @param {string} name - part of the folder's name
 * @param {string} [parent] - the system's temporary folder by default
 */
export function makeWorkFolder(name, parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, `tilework-${name}-`))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  }
  return folder
}
