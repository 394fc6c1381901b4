/** Runs programs that may loop forever or take all memory: compilers and tests of mutants. */
import { spawn } from 'node:child_process'

const MEMORY_BYTES = 8 * 2 ** 30
/** Characters of output that are kept: the last ones. */
const MAX_OUTPUT = 1 << 20

/** Where a system cannot limit memory, the program runs without. No core dumps: mutants crash often. */
const LIMITS = `ulimit -c 0; ulimit -v ${MEMORY_BYTES / 1024} 2>/dev/null; exec "$@"`

/** By child, the signal that ends it. */
const running = new Map()
process.on('exit', () => {
  for (const child of running.keys()) end(child)
})

/**
 * @typedef {object} Ended
 * @property {boolean} isGood - exit code 0
 * @property {boolean} isLate - ended by the time limit
 * @property {string} output
 * @property {number} seconds
 */

/**
 * @param {string} command
 * @param {readonly string[]} args
 * @param {object} options
 * @param {string} options.cwd
 * @param {NodeJS.ProcessEnv} [options.env]
 * @param {number} options.maxSeconds
 * @param {NodeJS.Signals} [options.signal] - ends the program
 * @param {RegExp} [options.until] - output after which the program is ended: its result is known
 * @returns {Promise<Ended>}
 */
export function runLimited(command, args, { cwd, env = process.env, maxSeconds, until, signal = 'SIGKILL' }) {
  const started = performance.now()
  // A group of its own, as a test may have children.
  const child = spawn('sh', ['-c', LIMITS, 'sh', command, ...args], { cwd, env, detached: true })
  running.set(child, signal)
  const ended = { isGood: false, isLate: false, output: '', seconds: 0 }
  const timer = setTimeout(() => {
    ended.isLate = true
    end(child)
  }, 1000 * maxSeconds)
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      ended.output = (ended.output + text).slice(-MAX_OUTPUT)
      if (until?.test(text)) end(child)
    })
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => {
      clearTimeout(timer)
      running.delete(child)
      resolve({ ...ended, isGood: status === 0, seconds: (performance.now() - started) / 1000 })
    })
  })
}

function end(child) {
  try {
    process.kill(-child.pid, running.get(child))
  } catch {
    // It has just ended.
  }
}
