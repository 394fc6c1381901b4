/**
 * Windows keeps the names of files that are open or mapped, until the test's process ends or collects its garbage. A test
 * that removes its folder has passed: what cannot be removed yet stays in the system's temporary folder.
 */
import fs, { type PathLike, type RmOptions } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const removeNow = fs.rmSync

Object.assign(fs, {
  rmSync(path: PathLike, options?: RmOptions): void {
    try {
      removeNow(path, options)
    } catch (error) {
      if (!options?.recursive) throw error
    }
  },
})
syncBuiltinESMExports()
