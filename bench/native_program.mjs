/** Builds the measuring programs in C++ and runs cases through them. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fail, jobs, ROOT, requireTools, runOrExit } from '../scripts/toolchain.mjs'

const FOLDER = join(ROOT, 'build-bench')
const MAX_OUTPUT_BYTES = 2 ** 26

/** oneDNN is looked for again each time: it may have been installed, or CMAKE_PREFIX_PATH changed, since. */
export function buildPrograms() {
  requireTools()
  const options = ['-DTILEWORK_BUILD_BENCH=ON', '-DCMAKE_BUILD_TYPE=Release', '-U', 'dnnl_DIR']
  runOrExit('Configuring the benchmark', 'cmake', ['-S', ROOT, '-B', FOLDER, ...options])
  runOrExit('Building the benchmark', 'cmake', ['--build', FOLDER, '--parallel', String(jobs())])
}

/**
 * @param {string} name - of the program
 * @param {readonly string[]} args
 * @param {string} input - a line a case
 * @returns {{ machine: object, results: object[] }} what the program printed of the machine, and of each case, with the
 *   level of memory that source and destination fit in
 */
export function runProgram(name, args, input) {
  const program = join(FOLDER, 'bench', 'native', name)
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

/** Fewer rounds for cases that take longer. */
export function roundsOf(bytes, rounds) {
  return Math.min(rounds, Math.max(9, Math.round((rounds * 2 ** 22) / bytes)))
}

function levelOf({ bytes }, { secondLevelCache, lastLevelCache }) {
  if (bytes <= secondLevelCache) return 'L2'
  return bytes <= lastLevelCache ? 'L3' : 'DRAM'
}
