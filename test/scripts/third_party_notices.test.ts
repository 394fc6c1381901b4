/** What a package says about the work of others in it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

// The scripts are plain JavaScript, which the type checker does not read.
const {
  bundledPackages,
  licenceFaults,
  notices,
}: {
  bundledPackages(dist: string): string[]
  licenceFaults(packages?: { name: string; license?: string }[]): string[]
  notices(): string
} = await import(String(new URL('../../scripts/third_party_notices.mjs', import.meta.url)))

const dist = mkdtempSync(join(tmpdir(), 'tilework-notices-'))
afterAll(() => rmSync(dist, { recursive: true, force: true }))

test('everything that is shipped or installed has an allowed licence', () => {
  expect(licenceFaults()).toEqual([])
})

test('another licence is named', () => {
  expect(
    licenceFaults([{ name: 'one', license: 'GPL-3.0' }, { name: 'two' }, { name: 'three', license: 'MIT' }]),
  ).toEqual(['one (GPL-3.0)', 'two (none)'])
})

test('the file names what is compiled in, with the texts', () => {
  const text = notices()
  for (const name of ['node-addon-api', 'libc++', 'mingw-w64', 'DLPack']) expect(text).toContain(name)
  expect(text).toContain('LLVM Exceptions to the Apache 2.0 License')
  expect(text).toContain('Zope Public License')
})

test('packages in a bundle are found by its source map', () => {
  mkdirSync(join(dist, 'chunks'))
  const sources = [
    '../../node_modules/@a/b/index.js',
    '../../lib/x.ts',
    '../node_modules/c/node_modules/d/e.js',
  ]
  writeFileSync(join(dist, 'chunks', 'x.js.map'), JSON.stringify({ sources }))
  expect(bundledPackages(dist)).toEqual(['@a/b', 'd'])
})
