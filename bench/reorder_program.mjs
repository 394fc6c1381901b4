/** Runs cases of `npm run bench -- reorder` with the C++ program. */
import { runProgram } from './native_program.mjs'
import { caseLine } from './reorder_cases.mjs'

/**
 * @param {readonly object[]} cases - from reorder_cases.mjs
 * @param {{ threads: number, rounds: number, candidates: readonly ('reference' | 'onednn')[] }} options
 * @returns {{ machine: object, results: object[] }} cache sizes in bytes and the version of oneDNN, if available; the cases
 *   with their rates in GB/s and the memory level that source and destination fit in
 */
export function runReorders(cases, { threads, rounds, candidates }) {
  const { machine, results } = runProgram(
    'reorder_bench',
    [String(threads), ...candidates],
    programInput(cases, rounds),
  )
  return { machine, results: results.map((result, i) => ({ ...cases[i], ...result })) }
}

/** The program's input, also for running it under `perf` or `valgrind`. */
export function programInput(cases, rounds) {
  return cases.map((each) => `${caseLine(each, rounds)}\n`).join('')
}
