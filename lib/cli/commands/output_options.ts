/** The options of commands about the files that they replace. */
import { type Command, Option } from 'commander'
import type { SaveOptions } from '../../index.js'

export interface OutputChoice {
  /** False with `--no-clobber`. */
  readonly clobber: boolean
  readonly keepOldData?: boolean
  readonly replaceGraph?: boolean
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
    .addOption(noClobberOption())
}

/** Of commands that write tensors without a graph. */
export function replaceGraphOption(): Option {
  return new Option('--replace-graph', 'let tensors without a graph replace the file of a model')
}

type FileOptions = Pick<SaveOptions, 'keepOldData' | 'overwrite' | 'replaceGraph'>

/** The options of the library. */
export function fileOptions({ clobber, keepOldData, replaceGraph }: Partial<OutputChoice>): FileOptions {
  return {
    ...(clobber === false && { overwrite: false }),
    ...(keepOldData && { keepOldData }),
    ...(replaceGraph && { replaceGraph }),
  }
}
