/**
 * Types of the outputs of all operators of ONNX, written by `scripts/onnx_operators.py` from the schemas of the Python package
 * onnx 1.23.2; do not edit.
 *
 * By domain and rule: names of operators, with `@` and the version of the operator set from which on the rule holds, where an
 * older version has another. A rule has one part for each output: `=1`: the type of input 1; `tensor(int64)`: that type;
 * `?`: it depends on an attribute or on a subgraph. `*` after the last part: it holds for all further outputs.
 */

// biome-ignore format: a table is read by its lines.
export const OPERATOR_TYPES = {
  '': {
    '=0': 'Abs Acos Acosh Add AffineGrid Asin Asinh Atan Atanh AveragePool BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu CenterCropPad Clip Col2Im Compress Concat Conv ConvTranspose Cos Cosh CumProd CumSum DFT DeformConv DepthToSpace Det Div Einsum Elu Erf Exp Expand Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization LRN LeakyRelu Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool MaxRoiPool MaxUnpool Mean MeanVarianceNormalization Min Mish Mod Mul Neg NegativeLogLikelihoodLoss Not PRelu Pad Pow Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize ReverseSequence RoiAlign RotaryEmbedding Round STFT Scatter ScatterElements ScatterND Selu SequenceErase SequenceInsert Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus Softsign SpaceToDepth Sqrt Squeeze StringConcat Sub Sum SwiGLU Swish Tan Tanh TensorScatter ThresholdedRelu Tile Transpose Trilu Unsqueeze Upsample',
    'tensor(bool)': 'And Equal Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual OptionalHasElement Or RegexFullMatch Xor',
    'tensor(int64)': 'ArgMax ArgMin NonMaxSuppression NonZero SequenceLength Shape Size',
    '=0 =0 =2 =0': 'Attention',
    '=0 =0 =0 =0 =0': 'BatchNormalization',
    '=0 =3 =3': 'BatchNormalization@14',
    '?': 'Bernoulli BitCast BlackmanWindow Cast ConcatFromSequence Constant ConstantOfShape DequantizeLinear@23 EyeLike HammingWindow HannWindow MelWeightMatrix Multinomial Optional OptionalGetElement RandomNormal RandomNormalLike RandomUniform RandomUniformLike SequenceAt SequenceConstruct SequenceEmpty SplitToSequence',
    '=1': 'CastLike DequantizeLinear@19 RMSNormalization Where',
    '=0 =0': 'CausalConvWithState Dropout GRU RNN SoftmaxCrossEntropyLoss',
    'tensor(int32)': 'ConvInteger MatMulInteger',
    'tensor(float)': 'DequantizeLinear TfIdfVectorizer',
    '=0 tensor(bool)': 'Dropout@10',
    'tensor(uint8) tensor(float) tensor(uint8)': 'DynamicQuantizeLinear',
    '?*': 'If Loop Scan SequenceMap',
    'tensor(uint8)': 'ImageDecoder',
    '=0 =0 =0': 'LSTM',
    '=0 ? ?': 'LayerNormalization',
    '=0 =3': 'LinearAttention',
    '=0 tensor(int64)': 'MaxPool@8 TopK',
    '=2': 'OneHot QuantizeLinear',
    '=7': 'QLinearConv QLinearMatMul',
    '=0*': 'Split',
    'tensor(string)': 'StringNormalizer',
    'tensor(string) tensor(int64)': 'StringSplit',
    '=0 tensor(int64) tensor(int64) tensor(int64)': 'Unique',
  },
  'ai.onnx.ml': {
    '=0': 'ArrayFeatureExtractor Binarizer Imputer TreeEnsemble',
    '?': 'CastMap CategoryMapper DictVectorizer LabelEncoder ZipMap',
    'tensor(float)': 'FeatureVectorizer LinearRegressor Normalizer OneHotEncoder SVMRegressor Scaler TreeEnsembleRegressor',
    '? tensor(float)': 'LinearClassifier SVMClassifier TreeEnsembleClassifier',
  },
  'ai.onnx.preview': {
    '=0': 'FlexAttention',
  },
  'ai.onnx.preview.training': {
    '?*': 'Adagrad Adam Gradient Momentum',
  },
} as const
