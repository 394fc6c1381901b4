/**
 * Steps of a long command: a line before each with its number and how long it should take, and a line after it.
 *
 * The time of a step is what it took when it last ran in this checkout; before its first run it is the usual time on two
 * cores. Nothing is installed when this runs first, so it uses nothing but Node's own modules.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const TIMES = fileURLToPath(new URL('../.step_times.json', import.meta.url))

export class Steps {
  #command
  #steps
  #times
  #next = 0
  #started = 0

  /**
   * @param {string} command - what the steps are of, for example `npm run demo`; names the times of earlier runs
   * @param {readonly { name: string, usualSeconds: number }[]} steps
   * @param {string} [timesFile] - default: in the checkout
   */
  constructor(command, steps, timesFile = TIMES) {
    this.#command = command
    this.#steps = steps
    this.#times = new Times(timesFile)
    const all = steps.map((step) => this.#expected(step)).reduce((sum, seconds) => sum + seconds, 0)
    console.log(`${command}: ${steps.length} steps, ${about(all)}`)
  }

  /** Ends the step before and prints the line of the next: `[2 of 3] library: about 6 s`. */
  next() {
    this.done()
    const step = this.#steps[this.#next]
    if (step === undefined) throw new RangeError(`${this.#command} has only ${this.#steps.length} steps`)
    this.#next += 1
    this.#started = performance.now()
    console.log(`${this.#number()} ${step.name}: ${about(this.#expected(step))}`)
  }

  /** Prints how long the current step took, and remembers it. */
  done() {
    if (this.#started === 0) return
    const { name } = this.#steps[this.#next - 1]
    const seconds = (performance.now() - this.#started) / 1000
    this.#started = 0
    this.#times.remember(this.#key(name), seconds)
    console.log(`${this.#number()} ${name}: done in ${duration(seconds)}`)
  }

  #number() {
    return `[${this.#next} of ${this.#steps.length}]`
  }

  #expected({ name, usualSeconds }) {
    return this.#times.of(this.#key(name)) ?? usualSeconds
  }

  #key(name) {
    return `${this.#command}: ${name}`
  }
}

/** Seconds of steps of earlier runs; a file that is missing or damaged only costs the estimates. */
class Times {
  #path
  #seconds

  constructor(path) {
    this.#path = path
    try {
      this.#seconds = Object(JSON.parse(readFileSync(path, 'utf8')))
    } catch {
      this.#seconds = {}
    }
  }

  of(key) {
    const seconds = this.#seconds[key]
    return typeof seconds === 'number' && seconds >= 0 ? seconds : undefined
  }

  remember(key, seconds) {
    // Steps inside of steps are other processes, which have written their own times meanwhile.
    this.#seconds = { ...new Times(this.#path).#seconds, [key]: Math.round(seconds * 10) / 10 }
    try {
      writeFileSync(this.#path, `${JSON.stringify(this.#seconds, undefined, 2)}\n`)
    } catch {
      // A checkout that cannot be written to has no estimates.
    }
  }
}

/** `about 40 s`, `about 3 min`. */
export function about(seconds) {
  return seconds < 1 ? 'under a second' : `about ${duration(seconds)}`
}

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  return seconds < 100 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`
}
