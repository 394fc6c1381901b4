/**
 * Where a command writes. Results go to stdout; everything a person alone wants to see (progress, summaries,
 * errors) goes to stderr. Colours and progress are for terminals only.
 */
import { createRequire } from 'node:module'
import type PicoColors from 'picocolors'

/** The part of a stream that a command uses. */
export interface OutputStream {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

/** What a run of the command line is given from outside. */
export interface RunOptions {
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  /** Says for both streams whether they are terminals; without it each stream says so itself. */
  readonly isTTY?: boolean
  /** What is piped in. Called only by a command that reads it: to look at a process's stdin is to begin reading it. */
  readonly stdin?: () => AsyncIterable<Uint8Array | string>
  /** True when nobody reads stdout any more: a command that only tells things may end, one that writes files goes on. */
  readonly isReaderGone?: () => boolean
  /** Cancels the run; its exit code is then 130. */
  readonly signal?: AbortSignal
  /** Environment, for NO_COLOR, FORCE_COLOR and TERM. */
  readonly env?: Readonly<Record<string, string | undefined>>
}

export type Colors = Pick<ReturnType<typeof PicoColors.createColors>, 'bold' | 'dim' | 'red' | 'yellow'>

const NO_COLORS: Colors = { bold: String, dim: String, red: String, yellow: String }

export interface Terminal {
  readonly stdin: RunOptions['stdin']
  readonly isReaderGone: () => boolean
  readonly stdout: OutputStream
  readonly stderr: OutputStream
  readonly stdoutIsTerminal: boolean
  readonly stderrIsTerminal: boolean
  /** Colour functions for stdout; they give their text back unchanged where colours are off. */
  readonly colors: Colors
  readonly colorsOn: boolean
  /** Columns of stdout. */
  readonly width: number
  readonly signal: AbortSignal
}

/** Columns to write for when stdout is no terminal. */
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

/** Loaded where colours are on: a run whose output is piped has none. */
function loadColors(): Colors {
  const colors = createRequire(import.meta.url)('picocolors') as typeof PicoColors
  return colors.createColors(true)
}

/** NO_COLOR (no-color.org) wins over FORCE_COLOR, which wins over what the stream is. */
function wantsColors(isTerminal: boolean, env: NonNullable<RunOptions['env']>): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = env
  if (NO_COLOR) return false
  if (FORCE_COLOR !== undefined && FORCE_COLOR !== '0') return true
  return isTerminal && TERM !== 'dumb'
}
