/**
 * The table in docs/layouts.md is made from the catalogue; this test compares them.
 * `TILEWORK_UPDATE_DOCS=1 npx vitest run test/layout/catalogue_page.test.ts` writes it anew.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { catalogueEntry } from '../../lib/layout/catalogue.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'

const PAGE = fileURLToPath(new URL('../../docs/layouts.md', import.meta.url))
const BEGIN = '<!-- catalogue: made by test/layout/catalogue_page.test.ts -->\n'
const END = '<!-- end of catalogue -->'

function catalogueTable(): string {
  const rows = LAYOUT_NAMES.map((name) => {
    const { axes, order, onednnTag, aliases } = parseLayout(name)
    const { special, hasOnednnConstant } = catalogueEntry(name)
    const tag = onednnTag === undefined ? '—' : `\`${onednnTag}\`${hasOnednnConstant === false ? ' ¹' : ''}`
    const padded = /__a/.test(name) && onednnTag !== undefined ? ' ²' : ''
    const rule = special?.rule ?? '—'
    const aligned = special?.sameAs?.endsWith('__af4') ? ' ³' : ''
    const others = aliases.length === 0 ? '' : ` (also \`${aliases.join('`, `')}\`)`
    return `| \`${name}\`${others} | ${axes} | ${order}${aligned} | ${rule} | ${tag}${padded} |`
  })
  return ['| name | axes | order in memory | rule | oneDNN tag |', '|---|---|---|---|---|', ...rows, ''].join(
    '\n',
  )
}

it('docs/layouts.md matches the catalogue', () => {
  const page = readFileSync(PAGE, 'utf8')
  const [before, after] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
  expect(after).toBeGreaterThanOrEqual(before)
  if (process.env.TILEWORK_UPDATE_DOCS === '1') {
    writeFileSync(PAGE, `${page.slice(0, before)}\n${catalogueTable()}\n${page.slice(after)}`)
    return
  }
  expect(page.slice(before, after).trim()).toBe(catalogueTable().trim())
})
