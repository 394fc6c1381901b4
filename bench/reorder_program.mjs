/** Builds the C++ half of `npm run bench -- reorder` and runs cases through it. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fail, jobs, ROOT, requireTools, runOrExit } from '../scripts/toolchain.mjs'
import { caseLine } from './reorder_cases.mjs'

const FOLDER = join(ROOT, 'build-bench')
const PROGRAM = join(FOLDER, 'bench', 'native', 'reorder_bench')
const MAX_OUTPUT_BYTES = 2 ** 26

/** oneDNN is looked for again each time: it may have been installed, or CMAKE_PREFIX_PATH changed, since. */
export function buildProgram() {
  requireTools()
  const options = ['-DTILEWORK_BUILD_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release', '-U', 'dnnl_DIR']
  runOrExit('Configuring the benchmark', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  runOrExit('Building the benchmark', 'cmake', ['--build', FOLDER, '--parallel', String(jobs())])
}

/**
 * @param {readonly object[]} cases - of reorder_cases.mjs
 * @param {{ threads: number, rounds: number, candidates: readonly ('reference' | 'onednn')[] }} options
 * @returns {{ machine: object, results: object[] }} sizes of the caches in bytes and oneDNN's version, where the program
 *   has it; the cases with their rates in GB/s and the level of memory that source and destination fit in
 */
export function runProgram(cases, { threads, rounds, candidates }) {
  const input = programInput(cases, rounds)
  const options = { input, encoding: 'utf8', maxBuffer: MAX_OUTPUT_BYTES }
  const { status, signal, stdout, stderr } = spawnSync(PROGRAM, [String(threads), ...candidates], options)
  if (status !== 0) fail(`${PROGRAM} ended with ${signal ?? `status ${status}`}. ${stderr}`)
  const [machine, ...lines] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return {
    machine,
    results: lines.map((line, i) => ({ ...cases[i], ...line, level: levelOf(line, machine) })),
  }
}

/** What the program reads: for running it below `perf` or `valgrind`. */
export function programInput(cases, rounds) {
  return cases.map((each) => `${caseLine(each, rounds)}\n`).join('')
}

function levelOf({ bytes }, { secondLevelCache, lastLevelCache }) {
  if (bytes <= secondLevelCache) return 'L2'
  return bytes <= lastLevelCache ? 'L3' : 'DRAM'
}
