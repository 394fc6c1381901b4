/** The project's own lint rules refuse what they are for, and nothing else, where `biome.json` applies them. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, expect, it } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')
const BIOME = join(ROOT, 'node_modules/@biomejs/biome/bin/biome')

interface Plugin {
  readonly path: string
  readonly includes: readonly string[]
}

const folder = mkdtempSync(join(tmpdir(), 'tilework-lint-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** The lines of `lib/a.ts` and `test/a.ts` for which a plugin reports an error. */
function reportedLines(code: string): string[] {
  const { plugins } = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8')) as { plugins: Plugin[] }
  const absolute = plugins.map((plugin) => ({ ...plugin, path: join(ROOT, plugin.path) }))
  const settings = { plugins: absolute, linter: { rules: { recommended: false } } }
  writeFileSync(join(folder, 'biome.json'), JSON.stringify(settings))
  for (const name of ['lib', 'test']) {
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'a.ts'), code)
  }
  const args = [BIOME, 'lint', '--colors=off', '--max-diagnostics=none', 'lib', 'test']
  const { stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return [...stderr.matchAll(/^(\S+:\d+):\d+ plugin /gm)].map(([, place]) => place!)
}

it('refuses lists that are spread into arguments, in the library alone', () => {
  const refused = [
    'list.push(...items)',
    'list.push(1, ...items)',
    'list.splice(0, 1, ...items)',
    'list.unshift(...items.map((item) => item))',
    'Math.max(0, ...items)',
    'String.fromCharCode(...items)',
    'new Map(...items)',
    'call(() => list.push(...items))',
  ]
  const allowed = [
    'list.push(1, 2)',
    'call([...items])',
    'call({ ...items })',
    'new Set([...items])',
    'const copy = [...list, ...items]',
    'const rest = (...items) => items',
  ]
  expect(reportedLines([...allowed, ...refused].join('\n'))).toEqual(
    refused.map((_, at) => `lib/a.ts:${allowed.length + at + 1}`),
  )
})
