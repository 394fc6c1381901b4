/** Types and shapes of operators of `ai.onnx.ml`, and the rules that a strict check has for them. */
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../../lib/index.js'
import { inferTypes, type NewAttribute, OnnxModel, type ValueType } from '../../../../lib/onnx.js'

const typed = (dtype: string, ...shape: (number | string | null)[]): ValueType =>
  ({ kind: 'tensor', dtype, shape }) as ValueType
const float = (...shape: (number | string | null)[]): ValueType => typed('float32', ...shape)
const floats = (...value: number[]): NewAttribute => ({ type: 'FLOATS', value })
const ints = (...value: number[]): NewAttribute => ({ type: 'INTS', value })
const strings = (...value: string[]): NewAttribute => ({ type: 'STRINGS', value })
const int = (value: number): NewAttribute => ({ type: 'INT', value })
const text = (value: string): NewAttribute => ({ type: 'STRING', value })
const map = (key: 'int64' | 'string', dtype: 'float32' | 'float64' | 'int64'): ValueType => ({
  kind: 'map',
  key,
  value: { kind: 'tensor', dtype, shape: [] },
})

interface Case {
  readonly op: string
  readonly x: ValueType
  readonly attributes?: Readonly<Record<string, NewAttribute>>
  /** Of the outputs. */
  readonly types?: readonly ValueType[]
  readonly version?: number
}

function modelOf({ op, x, attributes = {}, types = [float()], version = 3 }: Case): OnnxModel {
  const model = OnnxModel.create({ opset: 17 })
  model.setOpsetImport('ai.onnx.ml', version)
  model.graph.addInput('x', x)
  const outputs = types.map((_, at) => `y${at}`)
  model.graph.addNode({ opType: op, domain: 'ai.onnx.ml', inputs: ['x'], outputs, attributes })
  for (const name of outputs) model.graph.addOutput(name, { kind: 'none' })
  return model
}

const three = { classlabels_ints: ints(1, 2, 3), coefficients: floats(1), intercepts: floats(0) }

/** As onnx.shape_inference 1.23.2 infers them, or as onnxruntime gives them. */
const INFERRED: Readonly<Record<string, Case>> = {
  'LinearClassifier of integers': {
    op: 'LinearClassifier',
    x: float('N', 4),
    attributes: three,
    types: [typed('int64', 'N'), float('N', 3)],
  },
  'LinearClassifier of a row': {
    op: 'LinearClassifier',
    x: float(4),
    attributes: { classlabels_strings: strings('a', 'b'), coefficients: floats(1) },
    types: [typed('string', 1), float(1, 2)],
  },
  'LinearRegressor of two targets': {
    op: 'LinearRegressor',
    x: float(3, 4),
    attributes: { targets: int(2) },
    types: [float(3, 2)],
  },
  SVMRegressor: { op: 'SVMRegressor', x: float(3, 4), types: [float(3, 1)] },
  SVMClassifier: {
    op: 'SVMClassifier',
    x: float(3, 4),
    attributes: { classlabels_ints: ints(1, 2) },
    types: [typed('int64', 3), float(3, null)],
  },
  TreeEnsembleRegressor: {
    op: 'TreeEnsembleRegressor',
    x: float('N', 4),
    attributes: { n_targets: int(2) },
    types: [float('N', 2)],
  },
  TreeEnsembleClassifier: {
    op: 'TreeEnsembleClassifier',
    x: float('N', 4),
    attributes: { classlabels_strings: strings('a', 'b') },
    types: [typed('string', 'N'), float('N', 2)],
  },
  Normalizer: { op: 'Normalizer', x: float(3, 4), types: [float(3, 4)] },
  Scaler: { op: 'Scaler', x: typed('int64', 3, 4), types: [float(3, 4)] },
  Imputer: { op: 'Imputer', x: typed('int64', 3, 4), types: [typed('int64', 3, 4)] },
  Binarizer: { op: 'Binarizer', x: float(3, 4), types: [float(3, 4)] },
  OneHotEncoder: {
    op: 'OneHotEncoder',
    x: typed('int64', 'N', 4),
    attributes: { cats_int64s: ints(1, 2, 3) },
    types: [float('N', 4, 3)],
  },
  FeatureVectorizer: {
    op: 'FeatureVectorizer',
    x: float('N', 4),
    attributes: { inputdimensions: ints(4) },
    types: [float('N', 4)],
  },
  'LabelEncoder to floats': {
    op: 'LabelEncoder',
    x: typed('int64', 'N', 2),
    attributes: { keys_int64s: ints(1), values_floats: floats(2) },
    types: [float('N', 2)],
  },
  'CastMap to integers': {
    op: 'CastMap',
    x: map('int64', 'float32'),
    attributes: { cast_to: text('TO_INT64') },
    types: [typed('int64', 1, null)],
  },
  CastMap: { op: 'CastMap', x: map('int64', 'float32'), types: [float(1, null)] },
  DictVectorizer: {
    op: 'DictVectorizer',
    x: map('string', 'float64'),
    attributes: { string_vocabulary: strings('a', 'b') },
    types: [typed('float64', 1, 2)],
  },
  'ZipMap of integers': {
    op: 'ZipMap',
    x: float(3, 2),
    attributes: { classlabels_int64s: ints(1, 2) },
    types: [{ kind: 'sequence', of: map('int64', 'float32') }],
  },
  'ZipMap of strings': {
    op: 'ZipMap',
    x: float(3, 2),
    attributes: { classlabels_strings: strings('a', 'b') },
    types: [{ kind: 'sequence', of: map('string', 'float32') }],
  },
}

describe('ai.onnx.ml', () => {
  it.each(Object.entries(INFERRED))('has the type of %s', async (_, given) => {
    const model = modelOf(given)
    const types = inferTypes(model)
    expect(given.types!.map((__, at) => types.get(`y${at}`))).toEqual(given.types)
    for (const [at, type] of given.types!.entries()) model.graph.setType(`y${at}`, type)
    expect(await check(await serialize(model), { level: 'strict' })).toEqual([])
  })

  const encoder = (attributes: Case['attributes'], version = 4): Case => ({
    op: 'LabelEncoder',
    x: typed('int64', 2),
    types: [typed('int64', 2)],
    version,
    ...(attributes && { attributes }),
  })
  const one = { keys_int64s: ints(1), values_int64s: ints(2) }
  const whole = (value: number[], shape = [value.length]): NewAttribute => ({
    type: 'TENSOR',
    value: tensor(value, { dtype: 'int64', shape }),
  })
  it.each<[string, Case, string]>([
    ['no keys', encoder({ values_int64s: ints(1) }, 2), 'has 0 lists of keys; it takes exactly one'],
    ['two lists of values', encoder({ ...one, values_floats: floats(1) }), 'has 2 lists of values'],
    [
      'keys of another type',
      encoder({ keys_strings: strings('a'), values_int64s: ints(1) }),
      'has the type int64 for input 0; its keys are string',
    ],
    ['more values than keys', encoder({ ...one, values_int64s: ints(1, 2) }), 'has 1 keys and 2 values'],
    [
      'more keys than values, as a tensor',
      encoder({ keys_tensor: whole([1, 2]), values_int64s: ints(2) }),
      'has 2 keys and 1 values',
    ],
    ['a default of no dimension', encoder({ ...one, default_tensor: whole([1], []) }), 'it takes [1]'],
    [
      'another target of CastMap',
      {
        op: 'CastMap',
        x: map('int64', 'float32'),
        attributes: { cast_to: text('zz') },
        types: [float(1, 1)],
      },
      'has "zz" for cast_to',
    ],
    [
      'another type than CastMap gives',
      { op: 'CastMap', x: map('int64', 'float32'), types: [typed('int64', 1, 1)] },
      '"y0" is declared as int64 [1, 1]; float32',
    ],
    [
      'a LinearClassifier of three dimensions',
      {
        op: 'LinearClassifier',
        x: float(1, 2, 3),
        attributes: three,
        types: [typed('int64', 1), float(1, 3)],
      },
      'has the rank 3 for input 0',
    ],
  ])('refuses %s', async (_, given, message) => {
    const model = modelOf(given)
    for (const [at, type] of given.types!.entries()) model.graph.setType(`y${at}`, type)
    const errors = (await check(await serialize(model), { level: 'strict' })).map((each) => each.message)
    expect(errors).toEqual(expect.arrayContaining([expect.stringContaining(message)]))
  })
})
