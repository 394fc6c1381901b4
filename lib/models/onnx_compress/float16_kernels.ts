/**
 * Operators of ONNX that have a float16 version, which a runtime lacks. Where a node has a float16 input, onnxruntime inserts
 * Casts itself. Measured with onnxruntime 1.30 and 1.32: a model of one node each, and the node tests of ONNX.
 */
interface MissingKernels {
  /** They make numbers of what is no float, or of nothing, so no Cast is inserted. */
  readonly generators: ReadonlySet<string>
  /** They are expanded into nodes whose types do not fit. */
  readonly expanded: ReadonlySet<string>
}

export const MISSING_KERNELS: Readonly<Record<'onnxruntime CPU', MissingKernels>> = {
  'onnxruntime CPU': {
    generators: new Set([
      ...['Bernoulli', 'EyeLike', 'RandomNormal', 'RandomNormalLike', 'RandomUniform', 'RandomUniformLike'],
    ]),
    expanded: new Set(['MeanVarianceNormalization', 'MelWeightMatrix']),
  },
}
