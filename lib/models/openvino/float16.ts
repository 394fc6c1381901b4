/** Makes the float constants of a model float16 where the reference does. */
import type { Dtype } from '../../dtype/dtypes.js'
import { DTYPES } from '../../dtype/dtypes.js'
import type { TensorList } from '../../formats/format.js'
import type { WalkedIr } from '../../formats/openvino/constants.js'
import { FORMAT_NAME } from '../../formats/openvino/schema.js'
import { checkHasData } from '../../formats/write_checks.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import { asFloat16, fitFloat16 } from './float16_rule.js'
import { findPrecision } from './precision.js'

/** What became of a float constant. */
export interface OpenvinoConstantChange {
  readonly name: string
  readonly from: Dtype
  /** Absent for one that stays as it was. */
  readonly to?: 'float16'
  /** Why it stays as it was. */
  readonly reason?: string
  readonly bytesBefore: number
  readonly bytesAfter: number
  /** Number of values that were reduced to the largest magnitude of float16. */
  readonly clipped?: number
}

export interface OpenvinoFloat16Report {
  /** The float32 and float64 constants, in file order. */
  readonly constants: readonly OpenvinoConstantChange[]
  /** Bytes of all constants of the model. */
  readonly bytesBefore: number
  readonly bytesAfter: number
}

/** What is changed of a model. */
interface ChangedModel {
  readonly files: WalkedIr
  readonly tensors: TensorList<Tensor>
  readonly replaced: ReadonlyMap<string, Tensor>
  readonly float16: Map<string, DenseTensor>
}

const FLOATS: ReadonlySet<Dtype> = new Set(['float32', 'float64'])

export async function toFloat16(
  model: ChangedModel,
  signal: AbortSignal | undefined,
): Promise<OpenvinoFloat16Report> {
  const { precise, keepsAll } = findPrecision(model.files.bytes)
  const constants: OpenvinoConstantChange[] = []
  let [bytesBefore, bytesAfter] = [0, 0]
  for (const { key, type, byteLength } of model.files.constants) {
    const tensor = model.replaced.get(key) ?? model.tensors.get(key)!
    let after = byteLength
    if (!type.packed && FLOATS.has(type.dtype)) {
      checkHasData(tensor, `The constant ${JSON.stringify(key)}`, FORMAT_NAME)
      const why = keepsAll ?? (precise.has(key) ? 'shapes are computed from it' : undefined)
      const change = await changeOf(model, key, tensor as DenseTensor, why, signal)
      constants.push(change)
      after = change.bytesAfter
    }
    bytesBefore += byteLength
    bytesAfter += after
  }
  return { constants, bytesBefore, bytesAfter }
}

async function changeOf(
  { float16 }: ChangedModel,
  name: string,
  tensor: DenseTensor,
  why: string | undefined,
  signal: AbortSignal | undefined,
): Promise<OpenvinoConstantChange> {
  const bytesBefore = tensor.storage.byteLength
  const before = { name, from: tensor.dtype, bytesBefore }
  const fit = why === undefined ? await fitFloat16(tensor, signal) : undefined
  const reason = why ?? fit?.reason
  if (!fit || reason !== undefined) return { ...before, bytesAfter: bytesBefore, reason: reason! }
  float16.set(name, asFloat16(tensor, fit))
  const bytesAfter = (tensor.size * DTYPES.float16.bits) / 8
  return { ...before, to: 'float16', bytesAfter, ...(fit.clipped > 0 && { clipped: fit.clipped }) }
}
