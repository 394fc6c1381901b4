/** Opens a BTF file: checks every header, and creates tensors on access. */
import type { ByteSource } from '../../bytes/source.js'
import type { Level } from '../../errors.js'
import { StoredTensor } from '../../tensor/dense.js'
import { CooTensor } from '../../tensor/sparse.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { LazyTensorList } from '../tensor_list.js'
import { type BtfRecord, extentOf } from './record.js'
import type { RecordTable } from './record_table.js'
import { FORMAT_NAME } from './schema.js'
import { walkRecords } from './walk.js'

/**
 * Reads the headers of a BTF file. Tensors are named by their position: `0`, `1`, …
 *
 * @throws TileworkError with the code of the first violation that the level refuses
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(FORMAT_NAME, level, 'throw')
  const walk = await walkRecords(source, limits, report)
  // The walk is undefined only where the report has thrown.
  const { table } = walk as NonNullable<typeof walk>
  return { tensors: new RecordList(source, table, level), findings: report.findings() }
}

class RecordList extends LazyTensorList {
  readonly length: number
  readonly #source: ByteSource
  readonly #table: RecordTable
  readonly #level: Level

  constructor(source: ByteSource, table: RecordTable, level: Level) {
    super()
    this.length = table.length
    this.#source = source
    this.#table = table
    this.#level = level
  }

  protected tensorAt(position: number): Tensor {
    // Opening throws at the first record that cannot be read, so every record is in the table.
    return tensorOf(this.#source, this.#table.at(position)!, position, this.#level)
  }

  get(name: string): Tensor | undefined {
    return typeof name === 'string' && /^(0|[1-9]\d*)$/.test(name) ? this.at(Number(name)) : undefined
  }
}

/** The tensor of a checked record. At the strict level, reading sparse entries that are out of order throws. */
export function tensorOf(source: ByteSource, record: BtfRecord, index: number, level: Level): Tensor {
  const { dtype, shape, entryCount } = record
  const { dataStart, indicesStart } = extentOf(record)
  const name = String(index)
  if (entryCount === undefined) return new StoredTensor({ source, start: dataStart, dtype, shape, name })
  return new CooTensor({
    source,
    indicesStart,
    valuesStart: dataStart,
    entryCount,
    dtype,
    shape,
    name,
    requiresOrder: level === 'strict',
    place: { format: FORMAT_NAME, path: `tensors[${index}].indices` },
  })
}
