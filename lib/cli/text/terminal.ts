/**
 * The output of a command. Results are written to stdout; progress, summaries and errors, which are for people, to stderr.
 * Colours and progress are used on terminals only.
 */
import { createRequire } from 'node:module'
import type PicoColors from 'picocolors'

/** The part of a stream that a command uses. */
export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** The environment of a run of the command line. */
export interface RunOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** Whether both streams are terminals. Default: `isTTY` of each stream. */
  readonly isTTY?: boolean
  /** The input stream. A function, because access to the stdin of a process starts reading it. */
  readonly stdin?: () => AsyncIterable<Uint8Array | string>
  /** True once the reader of stdout is gone: a command that only prints may then stop, but one that writes files continues. */
  readonly isReaderGone?: () => boolean
  /** Cancels the run; its exit code is then 130. */
  readonly signal?: AbortSignal
  /** Environment, for NO_COLOR, FORCE_COLOR and TERM. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

export type Colors = Pick<
  ReturnType<typeof PicoColors.createColors>,
  'bold' | 'dim' | 'red' | 'yellow' | 'green' | 'cyan' | 'magenta'
>

const NO_COLORS: Colors = {
  bold: String,
  dim: String,
  red: String,
  yellow: String,
  green: String,
  cyan: String,
  magenta: String,
}

export interface Terminal {
  readonly stdin: RunOptions['stdin']
  readonly isReaderGone: () => boolean
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly stdoutIsTerminal: boolean
  readonly stderrIsTerminal: boolean
  /** Colour functions for stdout; they return their text unchanged where colours are off. */
  readonly colors: Colors
  readonly colorsOn: boolean
  /** Columns of stdout. */
  readonly width: number
  readonly signal: AbortSignal
}

/** Line width when stdout is not a terminal. */
const WIDTH_WITHOUT_TERMINAL = 100

export function createTerminal(options: RunOptions): Terminal {
  const { stdin, stdout, stderr, isTTY, isReaderGone = () => false, signal, env = {} } = options
  const stdoutIsTerminal = isTTY ?? stdout.isTTY === true
  const colorsOn = wantsColors(stdoutIsTerminal, env)
  return {
    stdin,
    isReaderGone,
    stdout,
    stderr,
    stdoutIsTerminal,
    stderrIsTerminal: isTTY ?? stderr.isTTY === true,
    colors: colorsOn ? loadColors() : NO_COLORS,
    colorsOn,
    width: stdout.columns ?? WIDTH_WITHOUT_TERMINAL,
    signal: signal ?? new AbortController().signal,
  }
}

/** Loaded only where colours are on, which excludes piped output. */
function loadColors(): Colors {
  const colors = createRequire(import.meta.url)('picocolors') as typeof PicoColors
  return colors.createColors(true)
}

/** NO_COLOR (no-color.org) overrides FORCE_COLOR, which overrides the default of the stream. */
function wantsColors(isTerminal: boolean, env: NonNullable<RunOptions['env']>): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '0') return true
  return isTerminal && TERM !== 'dumb'
}
