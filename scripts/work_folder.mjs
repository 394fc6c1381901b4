/** A folder for the files of a test, which goes with the process however it ends, but for SIGKILL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * @param {string} name begins the folder's name
 * @param {string} [parent] where it is made; the system's folder for temporary files by default
 */
export function makeWorkFolder(name, parent = tmpdir()) {
  const folder = mkdtempSync(join(parent, `tilework-${name}-`))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  }
  return folder
}
