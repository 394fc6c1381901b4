/** The other side of `disturbed_child.mjs`: starts the process, gives it jobs, and strikes at a chosen moment. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('disturbed_child.mjs', import.meta.url))
/** A timer fires up to some milliseconds late; the rest of a wait is spent looking at the clock. */
const SPUN_MS = 4
/** No job of these tests takes long; one that hangs is a defect and not a reason to wait for ever. */
const JOB_LIMIT_MS = 120_000

/**
 * How a job ended: with `value` or `error`; or, when the process ended before it, with `signal` or `exitCode`.
 *
 * @typedef {object} Outcome
 * @property {any} [value]
 * @property {{ isOurs: boolean, code?: string, message: string, system?: string, stack?: string }} [error]
 * @property {string | null} [signal]
 * @property {number | null} [exitCode]
 * @property {number} milliseconds from the beginning to the end
 * @property {boolean} isStruck the strike came before the end
 */

export class DisturbedChild {
  #child
  #exit
  #listeners = {}
  isAlive = true

  /** @param {import('node:child_process').ForkOptions} [options] */
  constructor(options = {}) {
    this.#child = fork(CHILD, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'], ...options })
    this.#exit = new Promise((resolve) => {
      this.#child.on('exit', (exitCode, signal) => {
        this.isAlive = false
        resolve({ exitCode, signal })
      })
    })
    // A process that is gone cannot be sent to or killed; its exit tells so.
    this.#child.on('error', () => undefined)
    this.#child.on('message', (message) => {
      for (const [name, content] of Object.entries(message)) this.#listeners[name]?.(content)
    })
  }

  kill() {
    this.#child.kill('SIGKILL')
  }

  /** Ends the process. */
  async close() {
    if (this.isAlive) this.#child.disconnect()
    await this.#exit
  }

  /**
   * Runs a job, and calls `strike` so many milliseconds after it has begun; one that `waits` goes on after that.
   *
   * @returns {Promise<Outcome>}
   */
  async run(job, strike, afterMs = 0) {
    const begun = this.#next('begin')
    const ended = Promise.race([this.#next('end'), this.#exit])
    this.#child.send(job)
    await Promise.race([begun, ended])
    const startedAt = performance.now()
    let struckAt = Number.POSITIVE_INFINITY
    if (strike) {
      await waitUntil(startedAt + afterMs)
      struckAt = performance.now()
      await strike(this)
      if (job.waits && this.isAlive) this.#child.send({ kind: 'go on' })
    }
    const { endedAt, ...outcome } = await this.#within(JOB_LIMIT_MS, ended)
    const end = endedAt === undefined ? performance.now() : endedAt - performance.timeOrigin
    return { ...outcome, milliseconds: end - startedAt, isStruck: struckAt < end }
  }

  #next(kind) {
    return new Promise((resolve) => {
      this.#listeners[kind] = resolve
    })
  }

  async #within(milliseconds, promise) {
    const timer = setTimeout(() => {
      console.error(`A job did not end within ${milliseconds / 1000} s; its process is killed.`)
      this.kill()
    }, milliseconds)
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }
}

async function waitUntil(moment) {
  const ahead = moment - performance.now() - SPUN_MS
  if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead))
  while (performance.now() < moment);
}
