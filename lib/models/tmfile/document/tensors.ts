/** Presents the tensors of a model as tilework tensors. */

import { LazyTensorList } from '../../../formats/tensor_list.js'
import { isConstant } from '../../../formats/tmfile/enums.js'
import type { TmfileModelFields, TmfileQuantization, TmfileTensor } from '../../../formats/tmfile/types.js'
import { AbsentTensor } from '../../../tensor/absent.js'
import { asStored, StoredTensor } from '../../../tensor/dense.js'
import { isPlain } from '../../../tensor/plain_storage.js'
import type { QuantizationParameters } from '../../../tensor/quantization.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'

/** Metadata key for the role of a tensor in the graph: `constant`, `variable`, `input`, … */
export const ROLE_KEY = 'tmfile.role'

/** Stands for a shape whose rank is unknown too. */
const UNKNOWN_SHAPE: readonly number[] = [-1]

/** One map per role, shared by thousands of tensors. */
const METADATA = new Map<string, ReadonlyMap<string, string>>()

function metadataOf({ role }: TmfileTensor): ReadonlyMap<string, string> {
  const known = METADATA.get(role) ?? new Map([[ROLE_KEY, role]])
  METADATA.set(role, known)
  return known
}

/** One scale applies to the whole tensor; several apply to the entries of axis 0. */
function parametersOf({ scales, zeroPoints }: TmfileQuantization): QuantizationParameters {
  if (scales.length === 1) return { scale: scales[0]!, zeroPoint: zeroPoints[0]! }
  return { scale: scales, zeroPoint: zeroPoints, axis: 0 }
}

/** The parameters in tmfile's form; null where they are neither per tensor nor per entry of the stored axis 0. */
export function quantizationOf({ quantization, shape, storage }: DenseTensor): TmfileQuantization | null {
  if (!quantization) return null
  const { scale, zeroPoint = 0, axis, blockSize } = quantization
  const scales = typeof scale === 'number' ? Float32Array.of(scale) : Float32Array.from(scale)
  const isRepresentable =
    scales.length === 1 || (axis === 0 && scales.length === shape[0] && isPlain(storage))
  if (!isRepresentable || blockSize !== undefined) return null
  const zeroPoints =
    typeof zeroPoint === 'number' ? new Int32Array(scales.length).fill(zeroPoint) : Int32Array.from(zeroPoint)
  return { scales, zeroPoints, widths: new Int32Array(scales.length) }
}

/**
 * A tensor of the graph, with its data where the file has any. An unknown shape is [-1].
 *
 * @param index - used for the name of an unnamed tensor
 */
export function denseTensorOf(tensor: TmfileTensor, index: number): DenseTensor {
  const { dtype, buffer } = tensor
  const about = {
    name: tensor.name ?? `tensor_${index}`,
    dtype,
    shape: tensor.shape ?? UNKNOWN_SHAPE,
    metadata: metadataOf(tensor),
    ...(tensor.quantization?.scales.length && { quantization: parametersOf(tensor.quantization) }),
  }
  if (!buffer?.data || !tensor.shape) {
    return new AbsentTensor({ ...about, reason: 'its file has none' })
  }
  if ('source' in buffer.data) return new StoredTensor({ ...buffer.data, ...about })
  const { source, start } = asStored(buffer.data.tensor)
  return new StoredTensor({ source, start, ...about })
}

/** The constants of a model in its current state, in file order. */
export function constantsOf({ graph }: TmfileModelFields): DenseTensor[] {
  return graph.tensors.flatMap((tensor, index) => (isConstant(tensor) ? [denseTensorOf(tensor, index)] : []))
}

/** All tensors of a model in its current state, in file order. */
export class ModelTensors extends LazyTensorList {
  readonly #model: TmfileModelFields

  constructor(model: TmfileModelFields) {
    super()
    this.#model = model
  }

  get length(): number {
    return this.#model.graph.tensors.length
  }

  protected tensorAt(position: number): Tensor {
    return denseTensorOf(this.#model.graph.tensors[position]!, position)
  }

  /** The first tensor with the name, as in the runtime. */
  get(name: string): Tensor | undefined {
    const index = this.#model.graph.tensors.findIndex(
      (tensor, at) => (tensor.name ?? `tensor_${at}`) === name,
    )
    return index < 0 ? undefined : this.at(index)
  }
}
