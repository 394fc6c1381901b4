/** Pages and pictures that are made from tables and committed: here they are compared with them. */
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './pages.js'

test('docs/limits-and-errors.md has the codes and limits of the source', () => {
  const check = [join(ROOT, 'scripts', 'docs_tables.mjs'), '--check']
  expect(() => execFileSync(process.execPath, check, { cwd: ROOT, stdio: 'pipe' })).not.toThrow()
})

test('docs/exports.md has every public name', () => {
  const check = [join(ROOT, 'scripts', 'exports_page.mjs'), '--check']
  expect(() => execFileSync(process.execPath, check, { cwd: ROOT, stdio: 'pipe' })).not.toThrow()
})

test('docs/performance.svg draws the first table of docs/performance.md', () => {
  const check = [join(ROOT, 'scripts', 'performance_plot.mjs'), '--check']
  expect(() => execFileSync(process.execPath, check, { cwd: ROOT, stdio: 'pipe' })).not.toThrow()
})

test('docs/terminal.svg shows what its commands print', () => {
  const check = [join(ROOT, 'scripts', 'terminal_picture.mjs'), '--check']
  expect(() => execFileSync(process.execPath, check, { cwd: ROOT, stdio: 'pipe' })).not.toThrow()
})
