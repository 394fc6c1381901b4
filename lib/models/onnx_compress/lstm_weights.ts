/** Weights of LSTM as DynamicQuantizeLSTM takes them: int8, one scale per direction or per row, the last two axes swapped. */

import { transposed } from '../../formats/onnx/tensor/rearranged.js'
import { append } from '../../long_lists.js'
import { cast } from '../../tensor/cast.js'
import { stack } from '../../tensor/concat.js'
import { tensor as tensorOf } from '../../tensor/from_values.js'
import { quantize } from '../../tensor/quantize.js'
import { slice } from '../../tensor/slice.js'
import type { DenseTensor } from '../../tensor/tensor.js'
import { codeParameters, valueRanges } from './code_parameters.js'

export interface LstmWeight {
  readonly codes: DenseTensor
  readonly scale: DenseTensor
  readonly zeroPoint: DenseTensor
}

/** The weight [directions, rows, columns] as codes [directions, columns, rows]. Reads it for its ranges; the codes are lazy. */
export async function lstmWeight(
  tensor: DenseTensor,
  { perChannel, reduceRange }: { readonly perChannel: boolean; readonly reduceRange: boolean },
  signal: AbortSignal | undefined,
): Promise<LstmWeight> {
  const [directions = 1, rows = 1, columns = 1] = tensor.shape
  const rule = { type: 'int8', symmetric: true, reduceRange } as const
  const scales: number[] = []
  const codes: DenseTensor[] = []
  for (let direction = 0; direction < directions; direction++) {
    const part = slice(tensor, [[direction, direction + 1]])
    const source = transposed({ tensor: part, k: rows, n: columns })
    const { low, high } = await valueRanges(source, perChannel ? 1 : undefined, signal)
    const own = Array.from(low, (least, at) => codeParameters(least, high[at]!, rule).scale)
    codes.push(quantize(source, 'int8', perChannel ? { scale: own, axis: 1 } : { scale: own[0]! }))
    append(scales, own)
  }
  const shape = perChannel ? [directions, rows] : [directions]
  return {
    codes: stack(codes),
    scale: tensorOf(Float32Array.from(scales), { shape }),
    zeroPoint: cast(tensorOf(new Int32Array(scales.length), { shape }), 'int8'),
  }
}
