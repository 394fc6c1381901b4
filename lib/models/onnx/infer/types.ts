/** Types of the outputs of operators, by the generated table and by attributes. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { ownEntry } from '../../../own_entry.js'
import type { Attribute, ValueType } from '../document/types.js'
import { CONTRIB_DOMAIN, CONTRIB_TYPES } from './contrib.js'
import type { NodeView } from './node_view.js'
import { OPERATOR_TYPES } from './operator_types.js'
import { optimizedInput } from './rarer_shapes.js'

/** How the type of an output follows. */
interface Part {
  /** It is the type of that input. */
  readonly input: number | undefined
  /** It is always that type. Neither: it depends on attributes. */
  readonly type: ValueType | undefined
}

/** A rule holds from a version of the operator set on. */
interface Rule {
  readonly since: number
  readonly parts: readonly Part[]
  /** The last part holds for all further outputs. */
  readonly repeats: boolean
}

/** By domain and operator, newest rule first. */
const RULES = new Map<string, Map<string, Rule[]>>()

function addRules(): void {
  for (const [domain, rules] of Object.entries({ ...OPERATOR_TYPES, [CONTRIB_DOMAIN]: CONTRIB_TYPES })) {
    const byName = new Map<string, Rule[]>()
    RULES.set(domain, byName)
    for (const [text, names] of Object.entries(rules)) {
      const parts = text.split(' ').map(partOf)
      for (const each of names.split(/\s+/)) {
        const [name, since = '1'] = each.split('@') as [string, string?]
        const rule = { since: Number(since), parts, repeats: text.endsWith('*') }
        byName.set(name, [...(byName.get(name) ?? []), rule])
      }
    }
    for (const each of byName.values()) each.sort((one, other) => other.since - one.since)
  }
}

function partOf(text: string): Part {
  const part = text.replace('*', '')
  return part.startsWith('=')
    ? { input: Number(part.slice(1)), type: undefined }
    : { input: undefined, type: typeOfText(part) }
}

/** The type of an output, of tensors without a shape; undefined for unknown operators and what attributes do not tell. */
export function outputTypeOf(node: NodeView, output: number): ValueType | undefined {
  const rule = RULES.get(node.domain)
    ?.get(node.opType)
    ?.find(({ since }) => since <= node.opset)
  const part = rule?.parts[output] ?? (rule?.repeats ? rule.parts.at(-1) : undefined)
  return part && typeOfPart(node, part, output)
}

function typeOfPart(node: NodeView, { input, type }: Part, output: number): ValueType | undefined {
  if (input !== undefined && node.has(input)) return typeLike(node, input)
  if (type) return { ...type }
  const { domain } = node.node
  if (domain === 'ai.onnx.preview.training' && node.opType !== 'Gradient')
    return typeLike(node, optimizedInput(node, output))
  const rules = domain === '' ? BY_ATTRIBUTE : domain === 'ai.onnx.ml' ? CLASSIC : {}
  const dtype = ownEntry(rules, node.opType)?.(node, output)
  return dtype === undefined ? undefined : { kind: 'tensor', dtype }
}

function typeLike(node: NodeView, input: number): ValueType | undefined {
  const type = node.type(input)
  if (type?.kind !== 'tensor') return type
  return type.dtype === 0 ? undefined : { kind: 'tensor', dtype: type.dtype }
}

/** Types as the specification writes them: `tensor(int64)`, `seq(map(string, float))`. */
function typeOfText(text: string): ValueType | undefined {
  const [, kind, inside] = /^(tensor|seq|map|optional)\((.*)\)$/.exec(text) ?? []
  if (kind === undefined || inside === undefined) return undefined
  if (kind === 'map') {
    const [key, value] = inside.split(', ') as [string, string?]
    const [keyType, valueType] = [DTYPE_OF_NAME.get(key), DTYPE_OF_NAME.get(value ?? '')]
    if (keyType === undefined || valueType === undefined) return undefined
    return { kind: 'map', key: keyType, value: { kind: 'tensor', dtype: valueType, shape: [] } }
  }
  if (kind === 'tensor') {
    const dtype = DTYPE_OF_NAME.get(inside)
    return dtype && { kind: 'tensor', dtype }
  }
  const of = typeOfText(inside)
  return of && { kind: kind === 'seq' ? 'sequence' : 'optional', of }
}

const DTYPE_OF_NAME: ReadonlyMap<string, Dtype> = new Map([
  ['bool', 'bool'],
  ['float', 'float32'],
  ['double', 'float64'],
  ['int32', 'int32'],
  ['int64', 'int64'],
  ['uint8', 'uint8'],
  ['string', 'string'],
])
addRules()

type DtypeRule = (node: NodeView, output: number) => Dtype | number | undefined

/** The element type of an attribute with a code; of input 0, or of `absent`, without it. */
function byCode(name: string, absent?: Dtype): DtypeRule {
  return (node) => {
    // A reference that nothing resolves may be any type.
    const attribute = node.node.attribute(name)
    const code = node.int(name)
    if (code === undefined) return attribute ? undefined : (absent ?? node.dtype(0))
    return code === 0 ? undefined : (DTYPE_OF_CODE.get(code) ?? code)
  }
}

const BY_ATTRIBUTE: Readonly<Record<string, DtypeRule>> = {
  Cast: byCode('to'),
  BitCast: byCode('to'),
  EyeLike: byCode('dtype'),
  Bernoulli: byCode('dtype'),
  RandomNormalLike: byCode('dtype'),
  RandomUniformLike: byCode('dtype'),
  RandomNormal: byCode('dtype', 'float32'),
  RandomUniform: byCode('dtype', 'float32'),
  Multinomial: byCode('dtype', 'int32'),
  BlackmanWindow: byCode('output_datatype', 'float32'),
  HammingWindow: byCode('output_datatype', 'float32'),
  HannWindow: byCode('output_datatype', 'float32'),
  MelWeightMatrix: byCode('output_datatype', 'float32'),
  ConstantOfShape: (node) => {
    const attribute = node.node.attribute('value')
    return attribute ? tensorDtype(node.attribute('value')) : 'float32'
  },
  Constant: (node) =>
    ['value_string', 'value_strings'].some((name) => node.attribute(name)) ? 'string' : undefined,
  LayerNormalization: byCode('stash_type', 'float32'),
  QuantizeLinear: (node) => {
    const code = node.int('output_dtype', 0)
    return code === 0 ? 'uint8' : (DTYPE_OF_CODE.get(code) ?? code)
  },
  LinearAttention: (node) => node.dtype(0),
  DequantizeLinear: (node) => {
    const code = node.int('output_dtype', 0)
    return code === 0 ? node.dtype(1) : (DTYPE_OF_CODE.get(code) ?? code)
  },
}

const VALUE_LISTS = [
  ['values_strings', 'string'],
  ['values_int64s', 'int64'],
  ['values_floats', 'float32'],
] as const

const CAST_MAP_TYPES: Readonly<Record<string, Dtype>> = {
  TO_FLOAT: 'float32',
  TO_INT64: 'int64',
  TO_STRING: 'string',
}

/** Operators of `ai.onnx.ml`: strings and numbers by the attribute that lists the labels or values. */
const CLASSIC: Readonly<Record<string, DtypeRule>> = {
  LabelEncoder: (node) => {
    const values = node.opset < 4 ? undefined : node.attribute('values_tensor')
    if (values) return tensorDtype(values)
    if (node.opset < 2)
      return node.dtype(0) === 'string' ? 'int64' : node.dtype(0) === 'int64' ? 'string' : undefined
    const found = VALUE_LISTS.find(([name]) => node.attribute(name))
    return found?.[1]
  },
  CategoryMapper: (node) =>
    node.dtype(0) === 'string' ? 'int64' : node.dtype(0) === 'int64' ? 'string' : undefined,
  CastMap: (node) => ownEntry(CAST_MAP_TYPES, node.text('cast_to') ?? 'TO_FLOAT'),
  DictVectorizer: (node) => {
    const type = node.type(0)
    return type?.kind === 'map' && type.value.kind === 'tensor' ? type.value.dtype : undefined
  },
  LinearClassifier: (node) => labelDtype(node, 'classlabels_strings'),
  SVMClassifier: (node) => labelDtype(node, 'classlabels_strings'),
  TreeEnsembleClassifier: (node) => labelDtype(node, 'classlabels_strings'),
}

function labelDtype(node: NodeView, attribute: string): Dtype {
  const labels = node.attribute(attribute)?.value
  return Array.isArray(labels) && labels.length > 0 ? 'string' : 'int64'
}

function tensorDtype(attribute: Attribute | undefined): Dtype | undefined {
  return attribute?.tensors[0]?.dtype
}
