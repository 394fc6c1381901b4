/** Reads a file of torch of any kind, for `read` and `check`: the containers differ, and what they hold is one. */
import type { ByteSource } from '../../bytes/source.js'
import type { Content } from '../../zip/walk.js'
import { Budget } from '../budget.js'
import { FileFault, isOfBytes } from '../file_fault.js'
import { FileHead } from '../file_head.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import { type Checkpoint, nameParts, type ReadObject } from './checkpoint.js'
import { containerOf } from './detect.js'
import { HeapBudget } from './heap_budget.js'
import { readLegacy } from './legacy.js'
import { unpickle } from './pickle/unpickle.js'
import { DEFAULT_LIMITS, MAX_PICKLE_BYTES } from './schema.js'
import { StorageTable } from './storages.js'
import { type FileMeans, readArchive } from './zip_checkpoint.js'

export interface WalkOptions {
  readonly budget: Budget
  readonly report: Report
  readonly unknown: 'refuse' | 'omit'
  /** Called with each member of an archive, for a check of its data. */
  readonly visit?: (content: Content) => Promise<void>
}

export function budgetOf({ limits }: Pick<ReadOptions, 'limits'>, source: ByteSource): Budget {
  return new Budget(limits, DEFAULT_LIMITS, source.byteLength)
}

/** Undefined where the file cannot be read, which is reported. */
export async function walkCheckpoint(
  source: ByteSource,
  options: WalkOptions,
): Promise<Checkpoint | undefined> {
  const { budget, report, visit } = options
  const heap = new HeapBudget(source.byteLength)
  const means = {
    budget,
    heap,
    report,
    refuseName: (name: string, offset: number) => refuseName(name, offset, options),
  }
  try {
    const read = await readObject(source, means, visit)
    return read && (await nameParts(read, means))
  } catch (error) {
    if (!isOfBytes(error)) throw error
    report.broken(error.code, error.message, { path: error.path ?? '', offset: error.offset ?? 0 })
    return undefined
  }
}

async function readObject(
  source: ByteSource,
  means: FileMeans,
  visit: WalkOptions['visit'],
): Promise<ReadObject | undefined> {
  const container = await containerOf(await FileHead.read(source))
  if (container === 'legacy') return readLegacy(source, means)
  if (container === 'pickle') return refusePickle(source, means)
  if (container === 'tar') {
    const message =
      'The file is a tar archive, as torch wrote before 0.1.10; load it with an old torch and save it again.'
    throw new FileFault('ERR_UNSUPPORTED', message, 0)
  }
  return readArchive(source, means, visit)
}

/** Names what a pickle that torch did not write would import: why it is refused. */
async function refusePickle(source: ByteSource, { heap, refuseName, report }: FileMeans): Promise<never> {
  const bytes = new Uint8Array(await source.read(0, Math.min(source.byteLength, MAX_PICKLE_BYTES)))
  const storages = new StorageTable(report)
  const storageOf = (id: Parameters<StorageTable['storageOf']>[0], at: number) => storages.storageOf(id, at)
  unpickle({ bytes, start: 0, fileOffset: 0 }, { heap, isScript: false, refuseName, storageOf })
  const message = 'The file is a pickle that torch.save did not write; it has no tensors that can be read.'
  throw new FileFault('ERR_UNSUPPORTED', message, 0)
}

function refuseName(name: string, offset: number, { report, unknown }: WalkOptions): void {
  const place = { path: name, offset }
  const message = `The pickle at ${offset} imports ${name}, which is not data`
  if (unknown === 'refuse')
    report.broken('ERR_UNSUPPORTED', `${message}; nothing of it is read or run.`, place)
  else report.omission('no rule', 'ERR_UNSUPPORTED', `${message}; what is made of it is left out.`, place)
}
