/** Models byte by byte, valid or not, and the errors of a strict check. */
import { check } from '../../../../lib/index.js'
import { type Bytes, field, int, join, tensorProto } from '../../../formats/onnx/onnx_bytes.js'

export interface NodeText {
  readonly op?: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly attributes?: readonly Bytes[]
  readonly domain?: string
  readonly name?: string
}

export const node = ({
  op = 'Abs',
  inputs = ['x'],
  outputs = ['y'],
  attributes = [],
  domain,
  name,
}: NodeText = {}): Bytes =>
  join(
    ...inputs.map((each) => field(1, each)),
    ...outputs.map((each) => field(2, each)),
    name === undefined ? [] : field(3, name),
    field(4, op),
    ...attributes.map((each) => field(5, each)),
    domain === undefined ? [] : field(7, domain),
  )

export const FLOAT = 1
export const INT32 = 6
export const INT64 = 7
export const BOOL = 9

/** A value of a type and shape. */
export const value = (name: string, type = FLOAT, dims: readonly (number | string)[] = [2]): Bytes =>
  join(
    field(1, name),
    field(2, field(1, join(int(1, type), field(2, join(...dims.map((dim) => field(1, dimOf(dim)))))))),
  )
export const dimOf = (dim: number | string): Bytes => (typeof dim === 'number' ? int(1, dim) : field(2, dim))

export const intAttribute = (name: string, number: number): Bytes =>
  join(field(1, name), int(3, number), int(20, 2))
export const intsAttribute = (name: string, ...numbers: number[]): Bytes =>
  join(field(1, name), ...numbers.map((number) => int(8, number)), int(20, 7))
export const textAttribute = (name: string, text: string): Bytes =>
  join(field(1, name), field(4, text), int(20, 3))
export const floatAttribute = (name: string): Bytes => join(field(1, name), [0x15, 0, 0, 0, 0x3f], int(20, 1))
export const graphAttribute = (name: string, graph: Bytes): Bytes =>
  join(field(1, name), field(6, graph), int(20, 5))
export const tensorAttribute = (name: string): Bytes =>
  join(
    field(1, name),
    field(5, tensorProto({ dims: [1], type: FLOAT, values: field(9, [0, 0, 0, 0]) })),
    int(20, 4),
  )

export interface GraphText {
  readonly nodes?: readonly Bytes[]
  readonly inputs?: readonly Bytes[]
  readonly outputs?: readonly Bytes[]
  readonly initializers?: readonly Bytes[]
  readonly name?: string
}

export const graphOf = ({
  nodes = [node()],
  inputs = [value('x')],
  outputs = [value('y')],
  initializers = [],
  name = 'g',
}: GraphText): Bytes =>
  join(
    ...nodes.map((each) => field(1, each)),
    field(2, name),
    ...initializers.map((each) => field(5, each)),
    ...inputs.map((each) => field(11, each)),
    ...outputs.map((each) => field(12, each)),
  )

export interface ModelText extends GraphText {
  readonly ir?: number | undefined
  /** Versions by domain. */
  readonly opsets?: readonly (readonly [string, number])[]
  readonly rest?: readonly Bytes[]
}

export const modelOf = ({ ir = 8, opsets = [['', 17]], rest = [], ...graph }: ModelText): Bytes =>
  join(
    ir === 0 ? [] : int(1, ir),
    field(7, graphOf(graph)),
    ...opsets.map(([domain, version]) =>
      field(8, join(domain === '' ? [] : field(1, domain), int(2, version))),
    ),
    ...rest,
  )

export const functionOf = (nodes: readonly Bytes[], opset: number | undefined = 17, outputs = ['b']): Bytes =>
  field(
    25,
    join(
      field(1, 'f'),
      field(4, 'a'),
      ...outputs.map((output) => field(5, output)),
      ...nodes.map((each) => field(7, each)),
      opset === 0 ? [] : field(9, int(2, opset)),
      field(10, 'd'),
    ),
  )
export const call = node({ op: 'f', domain: 'd' })
export const opsets = [
  ['', 17],
  ['d', 1],
] as const

export const strict = (model: ModelText) => check(modelOf(model), { level: 'strict' })
export const errorsOf = async (model: ModelText): Promise<string[]> =>
  (await strict(model)).flatMap(({ severity, message }) => (severity === 'error' ? [message] : []))

export const cond = value('c', BOOL, [])
export const branch = (...nodes: Bytes[]): Bytes => graphOf({ nodes, inputs: [], outputs: [value('z')] })
export const If = (body: Bytes): Bytes =>
  node({
    op: 'If',
    inputs: ['c'],
    outputs: ['o'],
    attributes: [graphAttribute('then_branch', body), graphAttribute('else_branch', body)],
  })
export const inIf = (body: Bytes, first: Bytes[] = []): ModelText => ({
  nodes: [...first, If(body)],
  inputs: [value('x'), cond],
  outputs: [value('o')],
})
