/**
 * Enumerations of the format. `inspect` shows their names, and `check` accepts their values.
 *
 * Source: the structures of the reference implementation at its last public commit (c73708ce, 2023-05-18), and real
 * files where they hold other values.
 */
import { type Dtype, dtypesBy } from '../../dtype/dtypes.js'

/** Element type by data type code. */
export const DTYPE_OF_CODE = dtypesBy('tmfile')

/** Element types that a tmfile can hold. */
export const TMFILE_DTYPES: readonly Dtype[] = [...DTYPE_OF_CODE.values()]

/** Role of a tensor, by number. The public document lists 3 and 4 in another order than the files use. */
export const TENSOR_TYPES = ['unknown', 'variable', 'constant', 'input', 'dependency'] as const

export type TensorRole = (typeof TENSOR_TYPES)[number]

export const TENSOR_TYPE = { variable: 1, constant: 2, input: 3 } as const

/** Undefined for an unknown number. */
export function roleOf(type: number): TensorRole | undefined {
  return TENSOR_TYPES[type]
}

export function typeOfRole(role: TensorRole): number {
  return TENSOR_TYPES.indexOf(role)
}

export function isConstant({ role }: { readonly role: TensorRole }): boolean {
  return role === 'constant'
}

export const LAYOUTS = ['NCHW', 'NHWC'] as const

export const NHWC = 1

/**
 * The framework that a model was converted from, by number. Code before 2021 swapped 7 and 8, and a file has no date, so
 * both are ambiguous. Numbers above 8 are known only from other readers.
 */
export const SOURCE_FORMATS = [
  'unknown',
  'tengine',
  'caffe',
  'onnx',
  'mxnet',
  'tensorflow',
  'tflite',
  'darknet or dla',
  'darknet or dla',
  'ncnn',
  'megengine',
  'oneflow',
  'horizon',
  'bitman',
] as const

const numbered = (names: readonly string[]): ReadonlyMap<number, string> =>
  new Map(names.map((name, value) => [value, name]))

/** Valid values of enumerated parameters, by the name of the list in the operator table. */
export const PARAMETER_VALUES: Readonly<Record<string, ReadonlyMap<number, string>>> = {
  poolingAlgorithm: numbered(['max', 'average']),
  poolingRounding: new Map([
    ...numbered(['floor', 'ceil as in Caffe', 'padding counted once']),
    // A flag of the engine on top of floor: averages count the padding.
    [16, 'floor, padding counted in averages'],
  ]),
  flag: numbered(['no', 'yes']),
  eltwise: new Map([
    ...numbered([
      ...[
        'prod',
        'prod_scalar',
        'sum',
        'sum_scalar',
        'sub',
        'sub_scalar',
        'max',
        'rsqrt',
        'min_scalar',
        'last',
      ],
      ...['div', 'log', 'exp', 'sqrt', 'floor', 'square', 'pow', 'power'],
    ]),
  ]),
  unary: numbered([
    ...['abs', 'neg', 'floor', 'ceil', 'square', 'sqrt', 'rsqrt', 'exp', 'log', 'sin', 'cos', 'tan'],
    ...['asin', 'acos', 'atan', 'reciprocal', 'tanh'],
  ]),
  reduction: numbered(['sum', 'mean', ...Array.from({ length: 9 }, (_, index) => `kind ${index + 2}`)]),
  comparison: numbered(['==', '!=', '>', '>=', '<', '<=']),
  logical: numbered(['and', 'or']),
  padMode: numbered(['constant', 'reflect', 'symmetric']),
  interpolation: new Map([
    [1, 'nearest'],
    [2, 'bilinear'],
    [3, 'bicubic'],
    [4, 'bilinear with aligned corners'],
  ]),
  l2poolPadding: numbered(['none', 'same', 'valid']),
  dataType: DTYPE_OF_CODE,
}

/** Types of node attributes, which only writers before 2021 stored. */
export const ATTRIBUTE_TYPES: ReadonlyMap<number, string> = new Map([
  [1, 'int32'],
  [2, 'uint32'],
  [3, 'float'],
  [4, 'pointer'],
  [5, 'generic'],
])

const ACTIVATIONS: ReadonlyMap<number, string> = new Map([
  [0, 'ReLU'],
  [1, 'clamp to [-1, 1]'],
  [6, 'ReLU6'],
])

/** Whether the runtime supports the activation of a convolution; every negative number means none. */
export function isActivation(code: number): boolean {
  return code < 0 || ACTIVATIONS.has(code)
}

/** The activation fused into a convolution; undefined for none, including the -4 that a converter writes for tanh. */
export function fusedActivation(code: number): string | undefined {
  return code < 0 ? undefined : (ACTIVATIONS.get(code) ?? `activation ${code}`)
}
