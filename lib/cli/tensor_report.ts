/** What `inspect` and `convert` tell about a tensor. */
import { DTYPES, type Tensor } from '../index.js'
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
  /** Entries of a sparse tensor. */
  readonly entryCount?: number
  readonly sha256?: string
  readonly stats?: ElementStatistics | null
}

/** Bytes of one 64-bit index of a sparse tensor. */
const INDEX_BYTES = 8

export function tensorReport(tensor: Tensor): TensorReport {
  const { name, kind, dtype, shape, hasData } = tensor
  const common = { name, kind, dtype, shape }
  if (tensor.kind === 'dense') {
    const { layout, byteLength } = tensor.storage
    return { ...common, layout, byteLength, hasData }
  }
  if (tensor.kind === 'sparse') {
    const { entryCount } = tensor
    const byteLength =
      entryCount * shape.length * INDEX_BYTES + Math.ceil((entryCount * DTYPES[dtype].bits) / 8)
    return { ...common, layout: 'coo', byteLength, hasData, entryCount }
  }
  return { ...common, layout: null, byteLength: null, hasData }
}
