/** Tables of pages that are generated from the source, between two comments of the page. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { ROOT } from './pages.js'

/**
 * Compares a table of a page with the source; with `TILEWORK_UPDATE_DOCS=1` it replaces it.
 *
 * @param page - path of the page below the root
 * @param begin - the line before the table
 * @param end - the comment behind it
 */
export function expectGeneratedTable(page: string, begin: string, end: string, table: string): void {
  const path = join(ROOT, page)
  const text = readFileSync(path, 'utf8')
  const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)]
  expect(after).toBeGreaterThanOrEqual(before)
  if (process.env.TILEWORK_UPDATE_DOCS === '1') {
    writeFileSync(path, `${text.slice(0, before)}\n${table}\n\n${text.slice(after)}`)
    return
  }
  expect(text.slice(before, after).trim()).toBe(table)
}
