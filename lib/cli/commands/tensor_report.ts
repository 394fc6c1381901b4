/** What `inspect` and `convert` tell about a tensor. */
import { DTYPES, type QuantizationParameters, type Tensor } from '../../index.js'
import type { ElementStatistics } from './element_statistics.js'

/** One tensor in JSON. */
export interface TensorReport {
  readonly name: string
  readonly kind: Tensor['kind']
  readonly dtype: Tensor['dtype']
  readonly shape: readonly number[]
  /** Layout of the stored elements; `coo` for a sparse tensor, null for strings. */
  readonly layout: string | null
  /** Packed bytes: all storage elements, or indices and values; null for strings, which have no fixed size. */
  readonly byteLength: number | null
  readonly hasData: boolean
  /** What codes stand for, `(code - zeroPoint) * scale`; lists have one entry for each index of `axis`. */
  readonly quantization?: QuantizationReport
  /** Entries of a sparse tensor. */
  readonly entryCount?: number
  readonly sha256?: string
  readonly stats?: ElementStatistics | null
}

export interface QuantizationReport {
  readonly scale: number | readonly number[]
  readonly zeroPoint: number | readonly number[]
  readonly axis?: number
}

/** Bytes of one 64-bit index of a sparse tensor. */
const INDEX_BYTES = 8

export function tensorReport(tensor: Tensor): TensorReport {
  const { name, kind, dtype, shape, hasData } = tensor
  const common = { name, kind, dtype, shape }
  if (tensor.kind === 'dense') {
    const { layout, byteLength } = tensor.storage
    const { quantization } = tensor
    const parameters = quantization && { quantization: quantizationReport(quantization) }
    return { ...common, layout, byteLength, hasData, ...parameters }
  }
  if (tensor.kind === 'sparse') {
    const { entryCount } = tensor
    const byteLength =
      entryCount * shape.length * INDEX_BYTES + Math.ceil((entryCount * DTYPES[dtype].bits) / 8)
    return { ...common, layout: 'coo', byteLength, hasData, entryCount }
  }
  return { ...common, layout: null, byteLength: null, hasData }
}

function quantizationReport({ scale, zeroPoint = 0, axis }: QuantizationParameters): QuantizationReport {
  const list = (numbers: number | ArrayLike<number>) =>
    typeof numbers === 'number' ? numbers : Array.from(numbers)
  return { scale: list(scale), zeroPoint: list(zeroPoint), ...(axis !== undefined && { axis }) }
}
