/** Opens a checkpoint of PyTorch, or an index with its shards: reads directory and pickles, and no tensor. */
import type { ByteSource } from '../../bytes/source.js'
import { FileHead } from '../file_head.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { type Checkpoint, type PytorchContainer, sharedNames } from './checkpoint.js'
import { containerOf } from './detect.js'
import type { PytorchValue } from './plain_values.js'
import { FORMAT_NAME } from './schema.js'
import { walkShards } from './shards.js'
import { checkpointTensors } from './tensor_list.js'
import { budgetOf, walkCheckpoint } from './walk.js'

/** What a checkpoint holds beside its tensors. */
export interface PytorchFile {
  /** How it is stored; `sharded` for an index of several files. */
  readonly container: PytorchContainer | 'sharded'
  /** Numbers, texts and other plain values by their path: `epoch`, `optimizer.param_groups.0.lr`. */
  readonly values: ReadonlyMap<string, PytorchValue>
  /** Names that mean one tensor, the first of the file first. */
  readonly shared: readonly (readonly string[])[]
}

/**
 * Tensors have the keys of their path as name, joined by dots. Nothing in the file is run: names that a pickle imports are
 * refused unless they are data.
 *
 * @throws TileworkError with the code of the first violation that the level refuses; ERR_UNSUPPORTED with the name that a pickle
 * would import
 */
export async function read(source: ByteSource, options: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, options.level, 'throw')
  const walk = { budget: budgetOf(options, source), report, unknown: options.unknown ?? 'refuse' }
  const isIndex = (await containerOf(await FileHead.read(source))) === 'index'
  // A walk is undefined only where the report has thrown.
  const found = (await (isIndex ? walkShards(source, walk, options.sibling) : walkCheckpoint(source, walk)))!
  const { tensors, values } = found
  const container = isIndex ? 'sharded' : (found as Checkpoint).container
  const details: PytorchFile = { container, values, shared: sharedNames(tensors) }
  return { tensors: checkpointTensors(tensors), findings: report.findings(), details }
}
