/** docs/limits-and-errors.md is made from the tables of the source and committed; here it is compared with them. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './pages.js'

test('docs/limits-and-errors.md has the codes and limits of the source', () => {
  const check = [join(ROOT, 'scripts', 'docs_tables.mjs'), '--check']
  expect(() => execFileSync(process.execPath, check, { cwd: ROOT, stdio: 'pipe' })).not.toThrow()
})
