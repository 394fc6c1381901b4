/** The programs of README.md run as they stand: first the one that makes the files that the others read. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryFolder } from '../cli/temporary_folder.js'

const root = new URL('../../', import.meta.url)
const library = new URL('dist/index.js', root).href
const inFolder = temporaryFolder()

const programs = [...readFileSync(new URL('README.md', root), 'utf8').matchAll(/```js\n(.*?)```/gs)].map(
  ([, program]) => program!,
)

describe('README', () => {
  test('its programs run', () => {
    expect(programs.length).toBeGreaterThanOrEqual(3)
    const makesFiles = (program: string) => program.includes("'upload.btf']")
    const inOrder = [...programs.filter(makesFiles), ...programs.filter((program) => !makesFiles(program))]
    for (const [at, program] of inOrder.entries()) {
      const path = inFolder(`program${at}.mjs`)
      writeFileSync(path, program.replace("from 'tilework'", `from '${library}'`))
      execFileSync(process.execPath, [path], { cwd: dirname(path), stdio: 'pipe' })
    }
    expect(readFileSync(join(dirname(inFolder('x')), 'blocked.btf')).length).toBeGreaterThan(0)
  })
})
