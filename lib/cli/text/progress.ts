/** A progress bar on stderr: only on a terminal, and only for long work. */
import { createRequire } from 'node:module'
import type { SingleBar } from 'cli-progress'
import { formatBytes } from './byte_count.js'
import type { Terminal } from './terminal.js'

/** Delay before the bar is shown: for shorter work it would only flash. */
const SHOW_AFTER_MS = 500

/** Moves to the first column and clears the line (ECMA-48). */
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

export function startProgress(label: string, terminal: Terminal): Progress {
  if (!terminal.stderrIsTerminal) return NO_PROGRESS
  const startedAt = Date.now()
  let bar: SingleBar | undefined
  return {
    update: (state, what) => {
      const elapsed = Date.now() - startedAt
      if (!bar && elapsed < SHOW_AFTER_MS) return
      const detail = { detail: (what === undefined ? '' : `${what}, `) + describe(state, elapsed / 1000) }
      if (bar) {
        bar.setTotal(state.bytesTotal)
        bar.update(state.bytesDone, detail)
      } else {
        bar = createBar(label, terminal)
        bar.start(state.bytesTotal, state.bytesDone, detail)
      }
    },
    aside: (write) => {
      if (bar) terminal.stderr.write(CLEAR_LINE)
      write()
    },
    stop: () => {
      bar?.stop()
      bar = undefined
    },
  }
}

function describe(
  { bytesDone, bytesTotal, bytesPerSecond, secondsLeft }: ProgressState,
  seconds: number,
): string {
  const rate = bytesPerSecond ?? bytesDone / seconds
  const left = secondsLeft ?? (rate > 0 ? (bytesTotal - bytesDone) / rate : 0)
  const amount = `${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`
  return `${amount}, ${formatBytes(Math.round(rate))}/s, ${formatSeconds(left)} left`
}

/** `8 s`, `3 min 20 s`, `2 h 5 min`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

function createBar(label: string, terminal: Terminal): SingleBar {
  // Loaded with the first bar, because most runs show none.
  const { SingleBar } = createRequire(import.meta.url)('cli-progress') as typeof import('cli-progress')
  return new SingleBar({
    format: `${label} {bar} {percentage}% {detail}`,
    stream: terminal.stderr as NodeJS.WritableStream,
    barsize: 30,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
    clearOnComplete: true,
    // cli-progress' own signal handler would end the process during a write; the caller handles signals.
    gracefulExit: false,
  })
}
