/** What `convert` was asked for, and what can be said of that before any file is looked at. */

import { findDevice } from '../../device/devices.js'
import { formatByName } from '../../formats/registry.js'
import { parseLayout, TileworkError } from '../../index.js'
import type { Shard } from '../../pipeline/many/shard.js'
import type { ReadChoice } from '../files/open_input.js'
import { checkReorderOptions, type ReorderChoice } from './reorder_tensors.js'

/** What is written for each input. */
export interface ConvertChoice extends ReorderChoice {
  readonly tensor?: readonly string[]
  readonly format?: string
  /** The OpenCL device that computes. */
  readonly device?: string
}

/** The options that only a run over many files has. */
export interface ManyChoice {
  readonly base?: string
  readonly stdin?: boolean
  readonly null?: boolean
  readonly jobs?: number
  readonly keepGoing?: boolean
  readonly shard?: Shard
  /** False for none; absent for the one in the folder of outputs. */
  readonly manifest?: string | false
  readonly force?: boolean
}

export interface ConvertOptions extends ConvertChoice, ManyChoice, ReadChoice {
  readonly outDir?: string
  readonly json?: boolean
}

const MANY_FLAGS: Readonly<Record<keyof ManyChoice, string>> = {
  base: '--base',
  stdin: '--stdin',
  null: '--null',
  jobs: '--jobs',
  keepGoing: '--keep-going',
  shard: '--shard',
  manifest: '--manifest and --no-manifest',
  force: '--force',
}

/** The options of a run over many files that were given, as they are written. */
export function manyFlags(options: ManyChoice): string[] {
  return (Object.keys(MANY_FLAGS) as (keyof ManyChoice)[])
    .filter((name) => options[name] !== undefined)
    .map((name) => MANY_FLAGS[name])
}

/**
 * Refuses what is wrong for every input alike, once and before anything is written.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_LAYOUT_NAME, ERR_NO_DEVICE
 */
export function checkConvertOptions(options: ConvertOptions): void {
  checkReorderOptions(options)
  for (const name of [options.layout, options.fromLayout]) if (name !== undefined) parseLayout(name)
  if (options.format !== undefined) formatByName(options.format)
  if (options.device !== undefined) findDevice(options.device)
  const [flag] = options.outDir === undefined ? manyFlags(options) : []
  if (flag !== undefined) throw new TileworkError('ERR_ARGUMENT', `Of no use without --out-dir: ${flag}.`)
}
