/** The C++ tests that mutants are tried on, and one run of a test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runLimited } from './limited.mjs'

/**
 * From fast to slow. Random cases are fewer than the defaults of the tests, so that a mutant that survives takes a minute
 * on one core.
 */
export const TESTS = {
  tiling: [],
  line_writer: [],
  stores: [],
  pixels: [],
  digits: [],
  reorder_parts: [],
  source_ranges: ['2000'],
  reorder_file: ['300'],
  reorder_cast: ['400'],
  reorder: ['4000'],
  // Cases, which it reads from a file.
  sizes: ['1000'],
}

/** As test/native/check.h prints a failed check; the first one is enough. */
const FAILED_CHECK = /does not hold\./

/** The machine may be busy with other work. */
const SECONDS_AT_LEAST = 10
const TIMES_USUAL = 4
const FIRST_RUN_SECONDS = 600

let sizesFile

/** Draws the cases of `sizes`, with the library of the checkout. @param {string} folder - where the file is made */
export function writeSizesCases(folder) {
  sizesFile = join(folder, 'sizes.txt')
  const program = fileURLToPath(new URL('../sizes.mjs', import.meta.url))
  execFileSync(process.execPath, [program, '--cases', ...TESTS.sizes, '--write', sizesFile])
}

/** The time after which a test counts as caught in a loop. @param {number} [usual] - seconds of an earlier run */
export function maxSeconds(usual) {
  return usual === undefined ? FIRST_RUN_SECONDS : SECONDS_AT_LEAST + TIMES_USUAL * usual
}

/**
 * Runs a test in an empty folder.
 *
 * @param {string} name - of the test
 * @param {string} program - path
 * @param {string} parent - where the folder is made
 * @param {number} [usual] - seconds that it takes
 * @returns {Promise<import('./limited.mjs').Ended>}
 */
export async function runTest(name, program, parent, usual) {
  const cwd = mkdtempSync(join(parent, 'run-'))
  const options = {
    cwd,
    env: { ...process.env, TMPDIR: cwd },
    maxSeconds: maxSeconds(usual),
    until: FAILED_CHECK,
  }
  const ended = await runLimited(program, name === 'sizes' ? [sizesFile] : (TESTS[name] ?? []), options)
  rmSync(cwd, { recursive: true, force: true })
  return ended
}
