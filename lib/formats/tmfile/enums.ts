/**
 * Enumerations of the format, one line a value. They name what `inspect` shows and what `check` lets pass.
 *
 * Source: the structures of the reference implementation at its last public commit (c73708ce, 2023-05-18), and real
 * files where they hold other values.
 */
import { dtypesBy } from '../../dtype/dtypes.js'

/** What a tensor is; number 4 follows 3 of a list that the public document gives in another order. */
export const TENSOR_TYPES = ['unknown', 'variable', 'constant', 'input', 'dependency'] as const

export type TensorRole = (typeof TENSOR_TYPES)[number]

export const TENSOR_TYPE = { variable: 1, constant: 2, input: 3 } as const

/** Undefined for a number that no role has. */
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
 * What the model was made from. The code before 2021 had 7 and 8 the other way round, and nothing dates a file; those
 * above 8 are only known from other readers.
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

const numbered = (...names: readonly string[]): ReadonlyMap<number, string> =>
  new Map(names.map((name, value) => [value, name]))

/** Values of parameters that choose a variant, by the name that the operator table gives the list. */
export const PARAMETER_VALUES: Readonly<Record<string, ReadonlyMap<number, string>>> = {
  poolingAlgorithm: numbered('max', 'average'),
  poolingRounding: numbered('floor', 'ceil as in Caffe', 'padding counted once'),
  flag: numbered('no', 'yes'),
  eltwise: new Map([
    ...numbered(
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
    ),
  ]),
  unary: numbered(
    ...['abs', 'neg', 'floor', 'ceil', 'square', 'sqrt', 'rsqrt', 'exp', 'log', 'sin', 'cos', 'tan'],
    ...['asin', 'acos', 'atan', 'reciprocal', 'tanh'],
  ),
  reduction: numbered('sum', 'mean', ...Array.from({ length: 9 }, (_, at) => `kind ${at + 2}`)),
  comparison: numbered('==', '!=', '>', '>=', '<', '<='),
  logical: numbered('and', 'or'),
  padMode: numbered('constant', 'reflect', 'symmetric'),
  interpolation: new Map([
    [1, 'nearest'],
    [2, 'bilinear'],
    [3, 'bicubic'],
    [4, 'bilinear with aligned corners'],
  ]),
  l2poolPadding: numbered('none', 'same', 'valid'),
  dataType: dtypesBy('tmfile'),
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

/** True for the activations of a convolution that the runtime knows; every negative number is none to it. */
export function isActivation(code: number): boolean {
  return code < 0 || ACTIVATIONS.has(code)
}

/** The activation that a convolution has swallowed; undefined for none, also for the -4 that a converter writes for tanh. */
export function fusedActivation(code: number): string | undefined {
  return code < 0 ? undefined : (ACTIVATIONS.get(code) ?? `activation ${code}`)
}
