/** The warning about dtypes that npy and npz store as raw items, which are read back as unsigned integers. */

import { DTYPES, type Dtype, type TensorSummary } from '../../index.js'
import { printable } from './printable.js'

/** @returns undefined where numpy has every dtype that was written */
export function rawItemsLine(
  output: string,
  format: string,
  tensors: readonly TensorSummary[],
): string | undefined {
  if (format !== 'npy' && format !== 'npz') return undefined
  const isRaw = ({ kind, dtype }: TensorSummary) =>
    kind === 'dense' && DTYPES[dtype as Dtype].numpy === undefined
  const dtypes = [...new Set(tensors.filter(isRaw).map(({ dtype }) => dtype))]
  if (dtypes.length === 0) return undefined
  return printable(
    `${output}: numpy has no ${dtypes.join(', ')}; ${format} stores raw items (|V1, |V2), which are read as unsigned numbers. safetensors and ONNX keep the type.`,
  )
}
