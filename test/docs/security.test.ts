/** docs/security.md: each promise names what tests it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..', '..')
const SURFACES = ['files', 'names in files', 'jobs', 'page', 'remote', "models' work", 'arguments']

it('every promise names tests that exist, and every surface has one', () => {
  const text = readFileSync(join(ROOT, 'docs', 'security.md'), 'utf8')
  const section = /## Promises, and the test of each\n([\s\S]*?)\n## /.exec(text)![1]!
  const rows = [...section.matchAll(/^\| (.+?) \| .+ \| (.+) \|$/gm)].slice(1)
  expect(new Set(rows.map(([, surface]) => surface))).toEqual(new Set(SURFACES))
  const named = rows.map(([, , tests]) => [...tests!.matchAll(/`([^`]+)`/g)].map(([, path]) => path!))
  expect(named.filter((paths) => paths.length === 0)).toEqual([])
  expect(named.flat().filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})
