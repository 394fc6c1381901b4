/** Runs cases of `npm run bench -- reorder` through its C++ half. */
import { runProgram } from './native_program.mjs'
import { caseLine } from './reorder_cases.mjs'

/**
 * @param {readonly object[]} cases - of reorder_cases.mjs
 * @param {{ threads: number, rounds: number, candidates: readonly ('reference' | 'onednn')[] }} options
 * @returns {{ machine: object, results: object[] }} sizes of the caches in bytes and oneDNN's version, where the program
 *   has it; the cases with their rates in GB/s and the level of memory that source and destination fit in
 */
export function runReorders(cases, { threads, rounds, candidates }) {
  const { machine, results } = runProgram(
    'reorder_bench',
    [String(threads), ...candidates],
    programInput(cases, rounds),
  )
  return { machine, results: results.map((result, i) => ({ ...cases[i], ...result })) }
}

/** What the program reads: for running it below `perf` or `valgrind`. */
export function programInput(cases, rounds) {
  return cases.map((each) => `${caseLine(each, rounds)}\n`).join('')
}
