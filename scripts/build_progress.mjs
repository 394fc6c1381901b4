/**
 * Runs a build program without its output, but with a line of progress every few seconds: which of how many files, and how
 * long the rest should take. On failure prints the tail of the output.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { about } from './steps.mjs'
import { printTailAndFail, ROOT } from './toolchain.mjs'

/** Seconds between two lines: a build of a minute prints ten. */
const INTERVAL_SECONDS = 6
/** Share of the files from which on the time so far says something about the rest. */
const ESTIMATE_FROM = 0.05

/**
 * As `runOrExit`, with progress.
 *
 * @param {string} what - the sentence's subject, for example `Building the native addon`
 * @param {string} command
 * @param {readonly string[]} args
 */
export async function buildOrExit(what, command, args) {
  const progress = new BuildProgress(what)
  const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
      progress.read(text)
    })
  }
  const [status, signal] = await once(child, 'close').catch((error) => [error.message])
  if (status !== 0)
    printTailAndFail(what, output, typeof status === 'string' ? status : `exit code ${status ?? signal}`)
}

/** Reads the counts that ninja (`[3/118]`) and make (`[ 12%]`) print. */
export class BuildProgress {
  #what
  #now
  #print
  #started
  #printed

  /**
   * @param {string} what
   * @param {() => number} [now] - milliseconds
   * @param {(line: string) => void} [print]
   */
  constructor(what, now = () => performance.now(), print = console.log) {
    this.#what = what
    this.#now = now
    this.#print = print
    this.#started = now()
    this.#printed = this.#started
  }

  /** @param {string} text - output of the build program */
  read(text) {
    const time = this.#now()
    if (time - this.#printed < 1000 * INTERVAL_SECONDS) return
    const [count, share] = lastCount(text) ?? []
    if (count === undefined || share === 0) return
    this.#printed = time
    const elapsed = (time - this.#started) / 1000
    const left =
      share === 1 || share < ESTIMATE_FROM ? '' : `, ${about((elapsed * (1 - share)) / share)} left`
    this.#print(`  ${this.#what}: ${count}, ${Math.round(elapsed)} s${left}`)
  }
}

/** The last count in a text, and the share of the work that it is. */
function lastCount(text) {
  const ninja = [...text.matchAll(/\[(\d+)\/(\d+)\]/g)].at(-1)
  if (ninja) return [`${ninja[1]} of ${ninja[2]} files`, Number(ninja[1]) / Number(ninja[2])]
  const make = [...text.matchAll(/\[ *(\d+)%\]/g)].at(-1)
  return make && [`${make[1]} of 100 %`, Number(make[1]) / 100]
}
