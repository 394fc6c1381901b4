/** Starts `disturbed_child.mjs`, sends it jobs, and injects a fault at a chosen moment. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const CHILD = fileURLToPath(new URL('disturbed_child.mjs', import.meta.url))
/** Timers fire up to a few milliseconds late; the last part of a wait polls the clock. */
const POLLED_MS = 4
/** A job that takes longer hangs, which is a defect. */
const JOB_LIMIT_MS = 120_000

/**
 * Result of a job: `value` or `error`; `signal` or `exitCode` where the process ended first.
 *
 * @typedef {object} Outcome
 * @property {any} [value]
 * @property {{ isOurs: boolean, code?: string, message: string, system?: string, stack?: string }} [error]
 * @property {string | null} [signal]
 * @property {number | null} [exitCode]
 * @property {number} milliseconds from start to end
 * @property {boolean} isInterrupted whether the fault came before the end
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
    // Sending to or killing a dead process is an error; the exit event already reports it.
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
   * Runs a job, and calls `inject` `afterMs` milliseconds after it has begun. A job that `waits` continues after that.
   *
   * @returns {Promise<Outcome>}
   */
  async run(job, inject, afterMs = 0) {
    const begun = this.#next('begin')
    const ended = Promise.race([this.#next('end'), this.#exit])
    this.#child.send(job)
    await Promise.race([begun, ended])
    const startedAt = performance.now()
    let injectedAt = Number.POSITIVE_INFINITY
    if (inject) {
      await waitUntil(startedAt + afterMs)
      injectedAt = performance.now()
      await inject(this)
      if (job.waits && this.isAlive) this.#child.send({ kind: 'resume' })
    }
    const { endedAt, ...outcome } = await this.#within(JOB_LIMIT_MS, ended)
    const end = endedAt === undefined ? performance.now() : endedAt - performance.timeOrigin
    return { ...outcome, milliseconds: end - startedAt, isInterrupted: injectedAt < end }
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
  const ahead = moment - performance.now() - POLLED_MS
  if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead))
  while (performance.now() < moment);
}
