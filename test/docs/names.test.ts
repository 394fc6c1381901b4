/** What the documentation names and counts exists: npm scripts, formats, aliases, layouts, limits. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DTYPES, LAYOUT_NAMES } from '../../lib/index.js'
import { FORMATS } from '../../lib/pipeline/registry.js'
import { documentationPages, ROOT } from './pages.js'

const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

it('every npm script that a page names exists', () => {
  const { scripts } = JSON.parse(text('package.json')) as { scripts: Record<string, string> }
  const pages = [...documentationPages().map(({ path }) => path), 'CONTRIBUTING.md']
  const named = pages.flatMap((path) =>
    [...text(path).matchAll(/npm run ([a-z][\w:-]*)/g)].map(([, script]) => `${path}: ${script}`),
  )
  expect(named.length).toBeGreaterThan(0)
  expect(named.filter((each) => !Object.hasOwn(scripts, each.split(': ')[1]!))).toEqual([])
})

it.each(documentationPages().map(({ path }) => path))('%s has no conflict marker', (path) => {
  expect(text(path)).not.toMatch(/^(<{7}|={7}|>{7})( |$)/m)
})

function isReadOnly(folder: string): boolean {
  const writer = `lib/formats/${folder}/write.ts`
  return existsSync(join(ROOT, writer)) && text(writer).includes('refuseWriting(')
}

describe.each(Object.keys(FORMATS))('%s', (name) => {
  // npz shares the folders of npy.
  const folder = name === 'npz' ? 'npy' : name

  it('has tests, and attacks that a README explains', () => {
    expect(existsSync(join(ROOT, 'test/formats', folder))).toBe(true)
    expect(existsSync(join(ROOT, 'test/attacks', folder, 'README.md'))).toBe(true)
  })

  it('has a section in docs/formats.md', () => {
    expect(text('docs/formats.md')).toMatch(new RegExp(`^## .*\\b${name}\\b`, 'im'))
  })

  // A format that is only read has no options to export.
  if (isReadOnly(folder)) return

  it('exports the options of its writer', () => {
    const type = `${name[0]!.toUpperCase()}${name.slice(1)}WriteOptions`
    expect(text('etc/api/formats.api.md')).toMatch(new RegExp(`^export (interface|type) ${type}\\b`, 'm'))
  })
})

it('docs/casts.md lists the aliases of every element type', () => {
  const rows = [...text('docs/casts.md').matchAll(/^\| `(\w+)` \| (`[\w ]+`)? ?\|$/gm)]
  const listed = rows.map(([, name, aliases]) => [name, aliases?.slice(1, -1).split(' ') ?? []])
  expect(listed).toEqual(Object.values(DTYPES).map(({ name, aliases }) => [name, aliases]))
})

it('README.md counts the layouts', () => {
  expect(text('README.md')).toContain(`the ${LAYOUT_NAMES.length} GPU layouts`)
})

it.each(['lib/native/limits.ts', 'lib/layout/limits.ts'])('docs/limits-and-errors.md lists %s', (path) => {
  const names = [...text(path).matchAll(/^export const (\w+)/gm)].map(([, name]) => name)
  const page = text('docs/limits-and-errors.md')
  expect(names.filter((name) => !page.includes(`| \`${name}\` |`))).toEqual([])
})
