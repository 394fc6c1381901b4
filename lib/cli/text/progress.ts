/** A progress bar on stderr: only on a terminal, and only for long work. */
import { formatBytes } from './byte_count.js'
import { displayWidth } from './display_width.js'
import type { Terminal } from './terminal.js'

/** Delay before the bar is shown: for shorter work it would only flash. */
const SHOW_AFTER_MS = 500
/** Between two pictures of the bar: more often nobody can read, and a slow terminal would hold up the work. */
const REDRAW_AFTER_MS = 100
/** Of a terminal that does not say its own. */
const USUAL_COLUMNS = 80

/** Moves to the first column and clears the line (ECMA-48). The bar needs nothing else of a terminal. */
const CLEAR_LINE = '\r\u001b[K'

export interface ProgressState {
  readonly bytesDone: number
  readonly bytesTotal: number
  /** Average since the start; computed here where it is absent. */
  readonly bytesPerSecond?: number
  readonly secondsLeft?: number
}

export interface Progress {
  /** @param what - printed before the bytes, for example the number of files done */
  update(state: ProgressState, what?: string): void
  /** Writes lines without corrupting the bar. */
  aside(write: () => void): void
  /** Removes the bar. May be called twice. */
  stop(): void
}

const NO_PROGRESS: Progress = {
  update: () => undefined,
  aside: (write) => write(),
  stop: () => undefined,
}

export function startProgress(label: string, { stderr, stderrIsTerminal }: Terminal): Progress {
  if (!stderrIsTerminal) return NO_PROGRESS
  const startedAt = Date.now()
  let line = ''
  let drawnAt = startedAt + SHOW_AFTER_MS - REDRAW_AFTER_MS
  const clear = () => {
    if (line !== '') stderr.write(CLEAR_LINE)
  }
  return {
    update: (state, what) => {
      const now = Date.now()
      if (now - drawnAt < REDRAW_AFTER_MS) return
      drawnAt = now
      // The last column stays free: a terminal may wrap there.
      line = barLine(
        label,
        parts(state, what, (now - startedAt) / 1000),
        (stderr.columns ?? USUAL_COLUMNS) - 1,
      )
      stderr.write(`\r${line}${CLEAR_LINE.slice(1)}`)
    },
    aside: (write) => {
      clear()
      write()
      stderr.write(line)
    },
    stop: () => {
      clear()
      line = ''
    },
  }
}

interface Parts {
  /** From 0 to 1. */
  readonly share: number
  readonly what: string | undefined
  readonly amount: string
  readonly rate: string
  readonly left: string
}

function parts(
  { bytesDone, bytesTotal, bytesPerSecond, secondsLeft }: ProgressState,
  what: string | undefined,
  seconds: number,
): Parts {
  const rate = bytesPerSecond ?? bytesDone / seconds
  const left = secondsLeft ?? (rate > 0 ? (bytesTotal - bytesDone) / rate : 0)
  return {
    share: bytesTotal > 0 ? Math.min(bytesDone / bytesTotal, 1) : 0,
    what,
    amount: `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`,
    rate: `${formatBytes(Math.round(rate))}/s`,
    left: `${formatSeconds(left)} left`,
  }
}

/** As much as the columns hold: first the picture goes, then the bytes, then the label, then all but the percentage. */
function barLine(label: string, { share, what, amount, rate, left }: Parts, columns: number): string {
  const percentage = `${Math.floor(share * 100)}%`
  const list = (...texts: (string | undefined)[]) => texts.filter((text) => text !== undefined).join(', ')
  const all = `${percentage} ${list(what, amount, rate, left)}`
  const short = `${percentage} ${list(what, left)}`
  const lines = [
    `${label} ${picture(share, 30)} ${all}`,
    `${label} ${picture(share, 10)} ${all}`,
    `${label} ${all}`,
    `${label} ${picture(share, 10)} ${short}`,
    `${label} ${short}`,
    short,
  ]
  return lines.find((line) => displayWidth(line) <= columns) ?? percentage
}

function picture(share: number, columns: number): string {
  const done = Math.round(share * columns)
  return '█'.repeat(done) + '░'.repeat(columns - done)
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
