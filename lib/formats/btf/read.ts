/** Opens a BTF file: checks every header, then makes a tensor whenever one is asked for. */
import type { ByteSource } from '../../bytes/source.js'
import type { Level } from '../../errors.js'
import { StoredTensor } from '../../tensor/dense.js'
import { CooTensor } from '../../tensor/sparse.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { ReadOptions, ReadResult, TensorList } from '../format.js'
import { type BtfRecord, extentOf } from './record.js'
import type { RecordTable } from './record_table.js'
import { Report } from './report.js'
import { FORMAT_NAME } from './schema.js'
import { walkRecords } from './walk.js'

/**
 * Reads the headers of a BTF file. Tensors are named by their position: `0`, `1`, …
 *
 * @throws TileworkError with the code of the first rule that the level does not let pass
 */
export async function read(source: ByteSource, { level, limits }: ReadOptions): Promise<ReadResult> {
  const report = new Report(level, 'throw')
  const walk = await walkRecords(source, limits, report)
  // A walk ends early only where the report has thrown.
  const { table } = walk as NonNullable<typeof walk>
  return { tensors: new RecordList(source, table, level), findings: report.findings() }
}

class RecordList implements TensorList {
  readonly length: number
  readonly #source: ByteSource
  readonly #table: RecordTable
  readonly #level: Level

  constructor(source: ByteSource, table: RecordTable, level: Level) {
    this.length = table.length
    this.#source = source
    this.#table = table
    this.#level = level
  }

  at(index: number): Tensor | undefined {
    if (!Number.isInteger(index)) return undefined
    const position = index < 0 ? this.length + index : index
    if (position < 0 || position >= this.length) return undefined
    const record = this.#table.at(position)
    return record && tensorOf(this.#source, record, position, this.#level)
  }

  get(name: string): Tensor | undefined {
    return typeof name === 'string' && /^(0|[1-9]\d*)$/.test(name) ? this.at(Number(name)) : undefined
  }

  *[Symbol.iterator](): Iterator<Tensor> {
    for (let index = 0; index < this.length; index++) {
      const tensor = this.at(index)
      if (tensor) yield tensor
    }
  }
}

/** The tensor of a checked record. In strict, sparse entries out of order are an error when they are read. */
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
