/** float32 models as float16 or bfloat16 models. */
import { throwIfAborted } from '../../cancel.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { changeFloats } from './float_walk.js'
import { checkFloat16Options, type ToFloat16Options } from './float16_options.js'
import { HalfWeights, halfTensor } from './half_values.js'
import { type CompressReport, ReportBuilder } from './report.js'
import { unfitParameters } from './unfit_parameters.js'

/**
 * Converts the float32 values of a model to float16 or bfloat16 in place: weights become lazy tensors, which are converted
 * when the model is saved. Weights are read once here, to count values that the type cannot represent. A second call changes
 * nothing.
 *
 * @throws TileworkError before the first change ERR_UNSUPPORTED for an operator that is not known and whose output has no
 * declared type, ERR_ARGUMENT and ERR_GRAPH; ERR_ABORTED and errors of reading, after which the model may be changed in part
 */
export async function toFloat16(model: OnnxModel, options: ToFloat16Options = {}): Promise<CompressReport> {
  checkModel(model, 'toFloat16')
  const { dtype, clip, signal, ...rest } = checkFloat16Options(options, model)
  throwIfAborted(signal)
  const report = new ReportBuilder(model)
  const weights = new HalfWeights(dtype, clip, signal)
  await changeFloats(model, {
    ...rest,
    from: 'float32',
    to: dtype,
    convert: (tensor) => halfTensor(tensor, dtype, clip),
    convertWeight: (tensor) => weights.convert(tensor),
    unfit: await unfitParameters(model, dtype, signal),
    report,
    signal,
  })
  return report.finish()
}
