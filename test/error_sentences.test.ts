/** Errors of one kind read alike, whoever throws them: library, command line, queue and page. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ROOT } from './docs/pages.js'

const LIB = join(ROOT, 'lib')
const sources = readdirSync(LIB, { recursive: true })
  .map(String)
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path, text: readFileSync(join(LIB, path), 'utf8') }))

it.each([
  ['NAME is VALUE; it must be WHAT', / must be [^`;]*; (?:it is|they are) /],
  ['NAME is VALUE; expected one of: NAMES', /; (?:it )?must be one of:? /],
  ['NAME is VALUE; did you mean "NAME"?', /[Dd]id you mean (?!"a"|\$\{shown)/],
])('a wrong value is told by "%s"', (_, other) => {
  expect(sources.length).toBeGreaterThan(500)
  expect(sources.filter(({ text }) => other.test(text)).map(({ path }) => path)).toEqual([])
})
