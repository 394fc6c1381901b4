/**
 * The table of operators in docs/tmfile.md is made from the one that reads and writes them; this test compares them.
 * `TILEWORK_UPDATE_DOCS=1 npx vitest run test/formats/tmfile/operators_page.test.ts` writes it anew.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { OPERATORS, type OperatorSchema } from '../../../lib/formats/tmfile/operators.js'
import type { Field } from '../../../lib/formats/tmfile/struct_layout.js'

const PAGE = fileURLToPath(new URL('../../../docs/tmfile.md', import.meta.url))
const BEGIN = '<!-- operators: made by test/formats/tmfile/operators_page.test.ts -->\n'
const END = '<!-- end of operators -->'

function typeOf(field: Field): string {
  if (field.kind === 'string') return 'text'
  return field.kind === 'scalar' ? field.type : `${field.type}[]${field.isOptional ? '?' : ''}`
}

function operatorsTable(): string {
  const rows = (OPERATORS as readonly OperatorSchema[]).map((operator) => {
    const { number, name, canLoad, canSave, layout, older } = operator
    const runs = [canLoad && 'load', canSave && 'save'].filter(Boolean).join(', ')
    const fields = layout.fields.map((placed) => `${placed.name} ${typeOf(placed.field)}`).join(', ')
    const sizes = older.map(({ byteLength }) => byteLength).join(', ')
    return `| ${number} | ${name} | ${runs || '—'} | ${layout.byteLength} | ${fields || '—'} | ${sizes || '—'} |`
  })
  return ['| # | name | runtime | bytes | fields | older bytes |', '|---|---|---|---|---|---|', ...rows].join(
    '\n',
  )
}

it('docs/tmfile.md lists the operators as they are', () => {
  const page = readFileSync(PAGE, 'utf8')
  const [before, after] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
  expect(after).toBeGreaterThanOrEqual(before)
  if (process.env.TILEWORK_UPDATE_DOCS === '1') {
    writeFileSync(PAGE, `${page.slice(0, before)}\n${operatorsTable()}\n\n${page.slice(after)}`)
    return
  }
  expect(page.slice(before, after).trim()).toBe(operatorsTable())
})
