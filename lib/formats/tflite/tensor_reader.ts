/** Reads the table of a tensor, and checks that its shape, its type and its data fit together. */
import type { ByteSource } from '../../bytes/source.js'
import { DTYPES } from '../../dtype/dtypes.js'
import type { QuantizationParameters } from '../../tensor/quantization.js'
import type { Budget } from '../budget.js'
import { type Exact, exactByteLength, exactSizeOf } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import type { TfliteTensor } from './model.js'
import { MAX_RANGE_BYTES, type Pages } from './pages.js'
import { BUFFER, MAX_RANK, QUANTIZATION, TENSOR, type TfliteType, TYPES } from './schema.js'
import { denseOffsets, readSparsity, type Sparsity } from './sparsity.js'
import { checkStrings } from './strings.js'
import type { Table, Vector } from './table.js'

export interface TensorReaderInit {
  readonly source: ByteSource
  readonly pages: Pages
  readonly model: Table
  /** The list of buffers; absent where the file has none. */
  readonly buffers: Vector | undefined
  readonly budget: Budget
  readonly report: Report
}

/** The data of a tensor: a range of the file, and how to read it. */
export interface TensorData {
  readonly type: TfliteType
  readonly shape: readonly number[]
  readonly start: number
  readonly end: number
  readonly quantization?: QuantizationParameters
  readonly sparsity?: Sparsity
}

/** Fields of a table of a tensor. */
interface Fields {
  readonly name: string
  readonly type: TfliteType
  readonly shape: readonly number[]
  readonly shapeSignature?: readonly number[]
  readonly range?: Range
  readonly sparsity?: Sparsity
  readonly quantization?: Table
}

interface Range {
  readonly start: number
  readonly end: number
}

/** An offset of 0 or 1 in a buffer stands for none. */
const LEAST_OFFSET = 1n

export class TensorReader {
  readonly #init: TensorReaderInit

  constructor(init: TensorReaderInit) {
    this.#init = init
  }

  /** @throws FileFault */
  async read(table: Table, path: string): Promise<{ info: TfliteTensor; data?: TensorData }> {
    const { pages, budget } = this.#init
    const fields = await pages.run(() => this.#fields(table, path))
    const { name, type, shape, shapeSignature, range, sparsity } = fields
    budget.demand('headerBytes', name.length, table.at)
    const info = { name, type: type.name, shape, ...(shapeSignature && { shapeSignature }) }
    const place = { table, what: `${path} (${quote(name)})` }
    const elements = exactSizeOf(shape).elements
    if (!range) return { info }
    await this.#checkData(fields, elements, range, place)
    const quantization =
      fields.quantization && (await this.#quantization(fields.quantization, shape, place.what))
    const data = {
      type,
      shape,
      ...range,
      ...(sparsity && { sparsity }),
      ...(quantization && { quantization }),
    }
    return { info, data }
  }

  #fields(table: Table, path: string): Fields {
    const refuse = (code: FileFault['code'], what: string): FileFault =>
      new FileFault(code, `${path} ${what}.`, table.at)
    const name = table.text(TENSOR.name)
    const code = table.i8(TENSOR.type)
    const type = TYPES[code]
    if (!type) throw refuse('ERR_DTYPE', `has the type ${code}, which is not known`)
    const shape = table.i32s(TENSOR.shape, MAX_RANK) ?? []
    if (shape.some((extent) => extent < 0)) throw refuse('ERR_VALUE', `has the shape [${shape}]`)
    const signature = table.i32s(TENSOR.shapeSignature, MAX_RANK)
    const range = this.#range(table.u32(TENSOR.buffer), table, path)
    const sparsity = table.table(TENSOR.sparsity)
    const quantization = table.table(TENSOR.quantization)
    return {
      ...{ name, type, shape },
      ...(signature?.includes(-1) && { shapeSignature: signature }),
      ...(range && { range }),
      ...(sparsity && range && { sparsity: readSparsity(sparsity, shape) }),
      ...(quantization && { quantization }),
    }
  }

  /** Where the data of a buffer are; undefined where it has none, as buffer 0. */
  #range(index: number, table: Table, path: string): Range | undefined {
    const { buffers, model, pages } = this.#init
    if (index === 0) return undefined
    if (!buffers || index >= buffers.count) {
      const message = `${path} has the buffer ${index}; there are ${buffers?.count ?? 0}.`
      throw new FileFault('ERR_OFFSET_RANGE', message, table.at)
    }
    const buffer = model.tableIn(buffers, index)
    const offset = buffer.u64(BUFFER.offset)
    if (offset > LEAST_OFFSET) {
      const end = offset + buffer.u64(BUFFER.size)
      if (end <= pages.byteLength) return { start: Number(offset), end: Number(end) }
      const message = `${path} has its data from ${offset} to ${end}; the file ends at ${pages.byteLength}.`
      throw new FileFault('ERR_OFFSET_RANGE', message, buffer.at)
    }
    const data = buffer.vector(BUFFER.data, 1)
    return data && { start: data.at, end: data.at + data.count }
  }

  async #checkData(
    { type, sparsity }: Fields,
    elements: Exact,
    range: Range,
    { table, what }: { readonly table: Table; readonly what: string },
  ): Promise<void> {
    const { source, budget, report } = this.#init
    const { dtype, name } = type
    const length = range.end - range.start
    if (dtype === undefined)
      throw new FileFault('ERR_DTYPE', `${what} is ${name}, which has no data.`, table.at)
    if (dtype === 'string') {
      if (elements > length)
        throw new FileFault('ERR_TRUNCATED', `${what} has ${elements} strings in ${length} bytes.`, table.at)
      await checkStrings({ source, ...range }, Number(elements))
      return
    }
    const { bits } = DTYPES[dtype]
    const needed = exactByteLength(elements, bits)
    budget.demand('totalBytes', Number(needed), table.at)
    if (sparsity) {
      if (bits < 8 || length % (bits / 8) !== 0) {
        throw new FileFault(
          'ERR_UNSUPPORTED',
          `${what} is sparse, with ${length} bytes of ${name}.`,
          table.at,
        )
      }
      await denseOffsets(source, sparsity, length / (bits / 8))
      return
    }
    if (needed > length) {
      throw new FileFault(
        'ERR_TRUNCATED',
        `${what} needs ${needed} bytes; its buffer has ${length}.`,
        table.at,
      )
    }
    if (needed === length) return
    const message = `${what} needs ${needed} bytes; its buffer has ${length}, of which the rest is not read.`
    report.deviation('ERR_GAP', message, { path: what, offset: range.start })
  }

  /** Undefined where there are no scales, and where they do not fit, which is reported. */
  async #quantization(
    table: Table,
    shape: readonly number[],
    what: string,
  ): Promise<QuantizationParameters | undefined> {
    const { pages, report } = this.#init
    const { scales, zeroPoints, axis } = await pages.run(() => ({
      scales: table.vector(QUANTIZATION.scale, 4) ?? NONE,
      zeroPoints: table.vector(QUANTIZATION.zeroPoint, 8) ?? NONE,
      axis: table.i32(QUANTIZATION.axis),
    }))
    if (scales.count === 0) return undefined
    const isFitting = scales.count === 1 || shape[axis] === scales.count
    if (!isFitting || (zeroPoints.count > 1 && zeroPoints.count !== scales.count)) {
      const message = `${what} has ${scales.count} scales and ${zeroPoints.count} zero points along axis ${axis} of [${shape}]; they are left out.`
      report.deviation('ERR_QUANTIZATION', message, { path: what, offset: table.at })
      return undefined
    }
    const scale = Array.from(new Float32Array((await this.#bytes(scales, 4)).buffer))
    const zeroPoint = Array.from(new BigInt64Array((await this.#bytes(zeroPoints, 8)).buffer), Number)
    if (scales.count === 1) return { scale: scale[0]!, zeroPoint: zeroPoint[0] ?? 0 }
    return { scale, zeroPoint: zeroPoint.length === 0 ? 0 : zeroPoint, axis }
  }

  async #bytes({ at, count }: Vector, width: number): Promise<Uint8Array<ArrayBuffer>> {
    const { source, pages, budget } = this.#init
    const length = count * width
    budget.demand('headerBytes', length, at)
    const bytes =
      length <= MAX_RANGE_BYTES / 2
        ? await pages.run(() => pages.bytes(at, length))
        : await source.read(at, at + length)
    return new Uint8Array(bytes)
  }
}

const NONE: Vector = { at: 0, count: 0 }
