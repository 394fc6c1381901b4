/**
 * Constants of a tmfile as initializers. Each is written once per shape, and its data stays in the file until the model is
 * saved.
 */

import { DTYPES } from '../../../dtype/dtypes.js'
import { countOf, type Shape } from '../../../models/onnx/evaluate/arrays.js'
import { type TmfileTensor, toNhwc } from '../../../models/tmfile/index.js'
import { affine } from '../../../tensor/affine.js'
import { asLayout } from '../../../tensor/as_layout.js'
import { cast } from '../../../tensor/cast.js'
import { ConstantTensor } from '../../../tensor/constant.js'
import { asStored, StoredTensor } from '../../../tensor/dense.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { refuse } from '../to_tmfile/refusal.js'
import { CAST_TO, int, type OnnxWriter } from './onnx_writer.js'
import { hasRecord, recordOf } from './quantized.js'

export interface ConstantOptions {
  /** Whether constants of float16 stay, with a Cast behind each. */
  readonly keepsFloat16: boolean
  /** Whether constants without data are zeros. */
  readonly fillsZeros: boolean
  /** Whether data of four axes is NHWC; shapes are NCHW already. */
  readonly isNhwc: boolean
}

/** The tensors whose scales multiply to the scale of a bias. */
export interface BiasSources {
  readonly data: TmfileTensor
  readonly weight: TmfileTensor
}

export class Constants {
  /** Constants without data that became zeros. */
  readonly zeros = new Set<TmfileTensor>()
  readonly #writer: OnnxWriter
  readonly #options: ConstantOptions
  readonly #written = new Map<TmfileTensor, Map<string, string>>()

  constructor(writer: OnnxWriter, options: ConstantOptions) {
    this.#writer = writer
    this.#options = options
  }

  /** A constant as floats in a shape: quantized ones behind a DequantizeLinear. */
  floats(tensor: TmfileTensor, shape: Shape): string {
    return this.#once(tensor, `floats [${shape}]`, () => {
      if (hasRecord(tensor)) return this.#dequantized(tensor, shape)
      if (tensor.dtype === 'float32' || tensor.dtype === 'float16') return this.#realNumbers(tensor, shape)
      if (tensor.dtype === 'int32') return this.#stored(tensor, cast(this.#data(tensor, shape), 'float32'))
      return refuse(`its constant "${tensor.name}" is ${tensor.dtype} without scales`)
    })
  }

  integers(tensor: TmfileTensor, shape: Shape): string {
    if (tensor.dtype !== 'int32') refuse(`its constant "${tensor.name}" is ${tensor.dtype}; it must be int32`)
    return this.#once(tensor, `integers [${shape}]`, () => this.#stored(tensor, this.#data(tensor, shape)))
  }

  /** Floats multiplied by a factor. */
  scaled(tensor: TmfileTensor, factor: number): string {
    const shape = tensor.shape!
    if (factor === 1) return this.floats(tensor, shape)
    if (tensor.dtype !== 'float32' && tensor.dtype !== 'float16') {
      refuse(`its constant "${tensor.name}" is ${tensor.dtype}; it must be a float`)
    }
    return this.#once(tensor, `× ${factor}`, () =>
      this.#stored(tensor, affine(this.#data(tensor, shape), { scale: factor })),
    )
  }

  /** A bias, whose scales are those of data times weight where it has none. */
  bias(tensor: TmfileTensor, shape: Shape, { data, weight }: BiasSources): string {
    if (tensor.dtype !== 'int32' || hasRecord(tensor)) return this.floats(tensor, shape)
    if (!hasRecord(data) || !hasRecord(weight)) {
      refuse(`its bias "${tensor.name}" is int32, and its data or weights have no scales`)
    }
    const scales = recordOf(weight).scales.map((scale) => scale * recordOf(data).scales[0]!)
    return this.#once(tensor, `bias × ${scales[0]}`, () =>
      this.#dequantize(tensor, this.#data(tensor, shape), [...scales], undefined),
    )
  }

  #once(tensor: TmfileTensor, form: string, write: () => string): string {
    const forms = this.#written.get(tensor) ?? new Map<string, string>()
    this.#written.set(tensor, forms)
    const name = forms.get(form) ?? write()
    forms.set(form, name)
    return name
  }

  #stored(tensor: TmfileTensor, data: DenseTensor): string {
    return this.#writer.addTensor(tensor.name!, data)
  }

  #realNumbers(tensor: TmfileTensor, shape: Shape): string {
    const data = this.#data(tensor, shape)
    if (data.dtype === 'float32') return this.#stored(tensor, data)
    if (!this.#options.keepsFloat16) return this.#stored(tensor, cast(data, 'float32') as DenseTensor)
    const half = this.#stored(tensor, data)
    return this.#writer.addNode('Cast', `${half}__float`, [half], { to: int(CAST_TO.float32) })
  }

  #dequantized(tensor: TmfileTensor, shape: Shape): string {
    const { scales, zeroPoints } = recordOf(tensor)
    // int32 has no zero point in ONNX; every writer stores 0.
    const zeros = tensor.dtype === 'int32' ? undefined : [...zeroPoints]
    return this.#dequantize(tensor, this.#data(tensor, shape), [...scales], zeros)
  }

  #dequantize(
    tensor: TmfileTensor,
    codes: DenseTensor,
    scales: readonly number[],
    zeroPoints: readonly number[] | undefined,
  ): string {
    if (scales.length > 1 && scales.length !== codes.shape[0]) {
      refuse(`its constant "${tensor.name}" has ${scales.length} scales and the shape [${codes.shape}]`)
    }
    const writer = this.#writer
    const name = this.#stored(tensor, codes)
    const shape = scales.length === 1 ? [] : [scales.length]
    const scale = writer.addNumbers(`${name}__scale`, scales, 'float32', shape)
    const dtype = codes.dtype === 'uint8' ? 'uint8' : 'int8'
    const zero = zeroPoints ? [writer.addNumbers(`${name}__zero_point`, zeroPoints, dtype, shape)] : []
    const axis = scales.length === 1 ? {} : { axis: int(0) }
    return writer.addNode('DequantizeLinear', `${name}__real`, [name, scale, ...zero], axis)
  }

  /** The data in a shape, row-major and NCHW; zeros where the file has none. */
  #data(tensor: TmfileTensor, shape: Shape): DenseTensor {
    const { dtype, buffer } = tensor
    const name = tensor.name!
    if (countOf(shape) !== countOf(tensor.shape ?? [])) {
      refuse(`its constant "${name}" has the shape [${tensor.shape}]; [${shape}] is needed`)
    }
    if (!buffer?.data) {
      if (!this.#options.fillsZeros) refuse(`its constant "${tensor.name}" has no data in the file`)
      this.zeros.add(tensor)
      return new ConstantTensor(new Uint8Array(DTYPES[dtype].bits / 8), { dtype, shape, name })
    }
    const { source, start } = 'source' in buffer.data ? buffer.data : asStored(buffer.data.tensor)
    if (!this.#options.isNhwc || tensor.shape?.length !== 4)
      return new StoredTensor({ source, start, dtype, shape, name })
    const stored = new StoredTensor({ source, start, dtype, shape: toNhwc(tensor.shape), name })
    const permuted = asStored(nchwOf(stored))
    return new StoredTensor({ source: permuted.source, start: permuted.start, dtype, shape, name })
  }
}

/**
 * Data of four axes as the runtime turns it: o, h, w, i becomes o, i, h, w. With one input channel it takes the data for h, w, o,
 * the order of depthwise weights in TensorFlow Lite.
 */
function nchwOf(stored: DenseTensor): DenseTensor {
  const [outputs, height, width, inputs] = stored.shape as [number, number, number, number]
  const shape = [outputs, inputs, height, width]
  // Integers of more bits keep their order in the runtime.
  if (!['float32', 'float16', 'int8', 'uint8'].includes(stored.dtype)) return asLayout(stored, 'bfyx', shape)
  const turned = asLayout(stored, inputs === 1 ? 'fyxb' : 'byxf', shape)
  return reorder(turned, 'row_major')
}
