/** A folder for the files of one test file; it goes with its tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

export function temporaryFolder(): (name: string) => string {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-cli-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  return (name) => join(folder, name)
}
