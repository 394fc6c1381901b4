/**
 * What every tensor of tilework's own does alike: its size, its text for `console.log` and `JSON.stringify`, and its refusal
 * to be cloned. A clone would be a plain object without methods and without the source of its bytes.
 */
import { inspect } from 'node:util'
import type { BlockDtype } from '../dtype/block_types.js'
import type { Dtype } from '../dtype/dtypes.js'
import { uncloneable } from '../uncloneable.js'
import { describeTensor } from './describe_tensor.js'
import { sizeExactOf, sizeOf } from './shape.js'
import type { AnyTensor, TensorInfo } from './tensor.js'

const UNCLONEABLE = uncloneable('a tensor; send its bytes() instead')

/** The metadata of a tensor that has none. */
export const NO_METADATA: ReadonlyMap<string, string> = new Map()

export abstract class BaseTensor implements TensorInfo<Dtype | BlockDtype> {
  /** The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  abstract readonly kind: AnyTensor['kind']
  abstract readonly name: string
  abstract readonly dtype: Dtype | BlockDtype
  abstract readonly shape: readonly number[]
  abstract readonly hasData: boolean
  abstract readonly metadata: ReadonlyMap<string, string>

  get size(): number {
    return sizeOf(this.shape)
  }

  get sizeExact(): bigint {
    return sizeExactOf(this.shape)
  }

  /** What is known of the tensor without its values; the fields of `tilework inspect --json`. */
  toJSON(): Record<string, unknown> {
    const tensor = this as unknown as AnyTensor
    const { name, kind, dtype, shape, hasData } = tensor
    return { name, kind, dtype, shape, ...detailsOf(tensor), hasData }
  }

  toString(): string {
    return describeTensor(this as unknown as AnyTensor)
  }

  [inspect.custom](): string {
    return describeTensor(this as unknown as AnyTensor)
  }
}

function detailsOf(tensor: AnyTensor): Record<string, unknown> {
  if (tensor.kind === 'dense') return { layout: tensor.storage.layout, byteLength: tensor.storage.byteLength }
  if (tensor.kind === 'block') return { byteLength: tensor.byteLength }
  return tensor.kind === 'sparse' ? { entryCount: tensor.entryCount } : {}
}
