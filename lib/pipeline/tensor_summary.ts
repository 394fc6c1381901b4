/** Facts of a tensor as plain data, for results of conversions and for the command line. */
import { DTYPES } from '../dtype/dtypes.js'
import { checkTensor } from '../tensor/check_tensor.js'
import type { QuantizationParameters } from '../tensor/quantization.js'
import type { AnyTensor } from '../tensor/tensor.js'

/** Facts of a tensor without its elements. Every field can be represented in JSON. */
export interface TensorSummary {
  readonly name: string
  readonly kind: AnyTensor['kind']
  readonly dtype: AnyTensor['dtype']
  readonly shape: readonly number[]
  /** Layout of the stored elements; `coo` for a sparse tensor, null for strings. */
  readonly layout: string | null
  /** Packed size: all storage elements, all blocks, or indices and values; null for strings, which have no fixed size. */
  readonly byteLength: number | null
  readonly hasData: boolean
  /** Quantization: the real value is `(stored - zeroPoint) * scale`; arrays have one entry per index of `axis`. */
  readonly quantization?: QuantizationSummary
  /** Number of entries of a sparse tensor. */
  readonly entryCount?: number
}

export interface QuantizationSummary {
  readonly scale: number | readonly number[]
  readonly zeroPoint: number | readonly number[]
  readonly axis?: number
}

/** Bytes of one 64-bit index of a sparse tensor. */
const INDEX_BYTES = 8

/** Most distinct shapes that are remembered for sharing; most models have fewer. */
const MOST_SHARED_SHAPES = 1000

/** @throws TileworkError ERR_ARGUMENT for anything but a tensor */
export function summarizeTensor(tensor: AnyTensor): TensorSummary {
  checkTensor(tensor, 'summarizeTensor', 'or blocks')
  return summarize(tensor, tensor.shape)
}

/** Summaries of the tensors of a file. Equal shapes share an array; separate arrays would take a third of the memory. */
export function summarizeTensors(tensors: Iterable<AnyTensor>): TensorSummary[] {
  const shapes = new Map<string, readonly number[]>()
  const shared = (shape: readonly number[]): readonly number[] => {
    const key = shape.join()
    const known = shapes.get(key)
    if (known === undefined && shapes.size < MOST_SHARED_SHAPES) shapes.set(key, shape)
    return known ?? shape
  }
  return Array.from(tensors, (tensor) => summarize(tensor, shared(tensor.shape)))
}

function summarize(tensor: AnyTensor, shape: readonly number[]): TensorSummary {
  const { name, kind, dtype, hasData } = tensor
  if (tensor.kind === 'block') {
    return { name, kind, dtype, shape, layout: 'row_major', byteLength: tensor.byteLength, hasData }
  }
  if (tensor.kind === 'dense') {
    const { layout, byteLength } = tensor.storage
    const { quantization } = tensor
    const summary = { name, kind, dtype, shape, layout, byteLength, hasData }
    return quantization ? { ...summary, quantization: summarizeQuantization(quantization) } : summary
  }
  if (tensor.kind === 'sparse') {
    const { entryCount } = tensor
    const byteLength =
      entryCount * shape.length * INDEX_BYTES + Math.ceil((entryCount * DTYPES[tensor.dtype].bits) / 8)
    return { name, kind, dtype, shape, layout: 'coo', byteLength, hasData, entryCount }
  }
  return { name, kind, dtype, shape, layout: null, byteLength: null, hasData }
}

function summarizeQuantization({ scale, zeroPoint = 0, axis }: QuantizationParameters): QuantizationSummary {
  const plain = (numbers: number | ArrayLike<number>) =>
    typeof numbers === 'number' ? numbers : Array.from(numbers)
  return { scale: plain(scale), zeroPoint: plain(zeroPoint), ...(axis !== undefined && { axis }) }
}
