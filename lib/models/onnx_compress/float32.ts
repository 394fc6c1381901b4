/** float16 and bfloat16 models as float32 models. */
import { checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { cast } from '../../tensor/cast.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { changeFloats } from './float_walk.js'
import { type CompressReport, ReportBuilder } from './report.js'

export interface ToFloat32Options {
  /**
   * Whether inputs and outputs of the model keep a half type: none (default), all, or those of the names. Callers of a float32
   * model rarely want to make float16 values.
   */
  readonly keepIo?: boolean | readonly string[]
  readonly signal?: AbortSignal
}

/** Half types of ONNX that other values than quantized ones have. */
const HALF_DTYPES = ['float16', 'bfloat16'] as const

/**
 * Converts the float16 and bfloat16 values of a model to float32 in place. Every weight keeps its value, as a lazy tensor;
 * results are those of the model without the rounding of its intermediate values to a half type. A Cast that has become
 * needless is removed, so a model that `toFloat16` has made gets its former graph back. A second call changes nothing.
 *
 * What cannot change keeps its type, between Casts: calls of functions of the model, `BitCast`, operators without a float32
 * version, and operators that are not known.
 *
 * @throws TileworkError before the first change ERR_UNSUPPORTED for an operator that is not known and whose output has no
 * declared type, ERR_ARGUMENT and ERR_GRAPH; ERR_ABORTED, after which the model may be changed in part
 */
export async function toFloat32(model: OnnxModel, options: ToFloat32Options = {}): Promise<CompressReport> {
  checkModel(model, 'toFloat32')
  checkOptions(options, 'toFloat32', ['keepIo', 'signal'])
  const { keepIo = false, signal } = readInput('The options of toFloat32', () => ({ ...options }))
  if (typeof keepIo !== 'boolean') checkTexts('keepIo', keepIo)
  const kept = typeof keepIo === 'boolean' ? undefined : new Set(keepIo)
  throwIfAborted(signal)
  const report = new ReportBuilder(model)
  for (const from of HALF_DTYPES) {
    await changeFloats(model, {
      from,
      to: 'float32',
      keeps: (name) => kept?.has(name) ?? keepIo === true,
      blockedOps: new Set(),
      blockedNodes: new Set(),
      convert: (tensor) => cast(tensor, 'float32'),
      unfit: new Map(),
      report,
      signal,
    })
  }
  return report.finish()
}
