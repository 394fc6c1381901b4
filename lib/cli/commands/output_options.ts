/** The options of commands about the files that they replace. */
import { type Command, Option } from 'commander'
import type { SaveOptions } from '../../index.js'
import { byteCount, wholeNumber } from '../text/parse_number.js'

export interface OutputChoice {
  /** False with `--no-clobber`. */
  readonly clobber: boolean
  readonly keepOldData?: boolean
  readonly replaceGraph?: boolean
  /** Bytes. */
  readonly maxOutput?: number
}

/** Of every command that writes a file. */
export function noClobberOption(): Option {
  return new Option('--no-clobber', 'refuse to replace a file that exists')
}

/** Of commands that may replace a model of several files. */
export function addOutputOptions(command: Command): Command {
  return command
    .option(
      '--keep-old-data',
      'keep data files and shards that only the replaced file used (default: remove them if tilework chose their names)',
    )
    .option(
      '--max-output <bytes>',
      'refuse to write a larger output, such as 2GiB (default: no limit)',
      byteCount('--max-output'),
    )
    .addOption(noClobberOption())
}

/** Of commands that convert files. */
export function deadlineOption(): Option {
  return new Option(
    '--deadline <seconds>',
    'seconds for a file as a whole, waits for servers included (default: no limit)',
  ).argParser(wholeNumber('--deadline'))
}

/** Of commands that write tensors without a graph. */
export function replaceGraphOption(): Option {
  return new Option('--replace-graph', 'let tensors without a graph replace the file of a model')
}

type FileOptions = Pick<SaveOptions, 'keepOldData' | 'overwrite' | 'replaceGraph' | 'maxOutputBytes'>

/** The options of the library. */
export function fileOptions(choice: Partial<OutputChoice>): FileOptions {
  const { clobber, keepOldData, replaceGraph, maxOutput } = choice
  return {
    ...(clobber === false && { overwrite: false }),
    ...(keepOldData && { keepOldData }),
    ...(replaceGraph && { replaceGraph }),
    ...(maxOutput !== undefined && { maxOutputBytes: maxOutput }),
  }
}
