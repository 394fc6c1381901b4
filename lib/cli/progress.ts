/** Progress on stderr: only on a terminal, and only for work that lasts. */
import { SingleBar } from 'cli-progress'
import { formatBytes } from './byte_count.js'
import type { Terminal } from './terminal.js'

/** Work that ends earlier than this shows nothing: a bar that flashes tells nobody anything. */
const SHOW_AFTER_MS = 500

export interface Progress {
  update(bytesDone: number, bytesTotal: number): void
  /** Takes the bar away. May be called twice. */
  stop(): void
}

export function startProgress(label: string, terminal: Terminal): Progress {
  if (!terminal.stderrIsTerminal) return { update: () => undefined, stop: () => undefined }
  const startedAt = Date.now()
  let bar: SingleBar | undefined
  return {
    update: (bytesDone, bytesTotal) => {
      if (!bar && Date.now() - startedAt >= SHOW_AFTER_MS) {
        bar = createBar(label, terminal)
        bar.start(bytesTotal, bytesDone)
      }
      bar?.setTotal(bytesTotal)
      bar?.update(bytesDone)
    },
    stop: () => {
      bar?.stop()
      bar = undefined
    },
  }
}

function createBar(label: string, terminal: Terminal): SingleBar {
  return new SingleBar({
    format: `${label} {bar} {percentage}% {value} of {total}, {eta_formatted} left`,
    formatValue: (value, _options, type) =>
      type === 'value' || type === 'total' ? formatBytes(value) : String(value),
    stream: terminal.stderr as NodeJS.WritableStream,
    barsize: 30,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    hideCursor: true,
    clearOnComplete: true,
    // The signal is the caller's: the bar's own handler would end the process in the middle of a write.
    gracefulExit: false,
  })
}
