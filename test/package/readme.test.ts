/** The programs of README.md run as they stand, one after the other, where the files lie that they name. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asTensor, save } from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const root = new URL('../../', import.meta.url)
const library = new URL('dist/index.js', root).href
const inFolder = temporaryFolder()

const programs = [...readFileSync(new URL('README.md', root), 'utf8').matchAll(/```js\n(.*?)```/gs)].map(
  ([, program]) => program!,
)

describe('README', () => {
  test('its programs run', async () => {
    expect(programs.length).toBeGreaterThanOrEqual(2)
    const numbers = Float32Array.from({ length: 2 * 19 * 5 * 7 }, (_, at) => Math.sin(at))
    for (const name of ['activations.btf', 'upload.btf']) {
      await save(inFolder(name), asTensor(numbers, { shape: [2, 19, 5, 7] }))
    }
    for (const [at, program] of programs.entries()) {
      const path = inFolder(`program${at}.mjs`)
      writeFileSync(path, program.replace("from 'tilework'", `from '${library}'`))
      execFileSync(process.execPath, [path], { cwd: dirname(path), stdio: 'pipe' })
    }
    expect(readFileSync(join(dirname(inFolder('x')), 'blocked.btf')).length).toBeGreaterThan(0)
  })
})
