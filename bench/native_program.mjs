/** Builds the C++ benchmark programs and runs cases with them. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fail, jobs, ROOT, requireTools, runOrExit } from '../scripts/toolchain.mjs'

const FOLDER = join(ROOT, 'build-bench')
/** Where the programs of a checkout are, relative to its root. */
export const PROGRAM_FOLDER = join('build-bench', 'bench', 'native')
const MAX_OUTPUT_BYTES = 2 ** 26

/** Looks for oneDNN each time: it may have been installed since, or CMAKE_PREFIX_PATH may have changed. */
export function buildPrograms() {
  requireTools()
  const options = ['-DTILEWORK_BUILD_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release', '-U', 'dnnl_DIR']
  runOrExit('Configuring the benchmark', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  runOrExit('Building the benchmark', 'cmake', ['--build', FOLDER, '--parallel', String(jobs())])
}

/**
 * @param {string} name - name of the program
 * @param {readonly string[]} args
 * @param {string} input - one line per case
 * @returns {{ machine: object, results: object[] }} the machine, and the result of each case with the memory level that
 *   source and destination fit in
 */
export function runProgram(name, args, input) {
  const program = join(ROOT, PROGRAM_FOLDER, name)
  const { status, signal, stdout, stderr } = spawnSync(program, args, {
    input,
    encoding: 'utf8',
    maxBuffer: MAX_OUTPUT_BYTES,
  })
  if (status !== 0) fail(`${program} ended with ${signal ?? `status ${status}`}. ${stderr}`)
  const [machine, ...lines] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  return { machine, results: lines.map((line) => ({ ...line, level: levelOf(line, machine) })) }
}

/** Large cases take fewer rounds, but at least 9. */
export function roundsOf(bytes, rounds) {
  return Math.min(rounds, Math.max(9, Math.round((rounds * 2 ** 22) / bytes)))
}

function levelOf({ bytes }, { secondLevelCache, lastLevelCache }) {
  if (bytes <= secondLevelCache) return 'L2'
  return bytes <= lastLevelCache ? 'L3' : 'DRAM'
}
