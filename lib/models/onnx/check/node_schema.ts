/** Compares a node with the schema of its operator: attributes, number of inputs and outputs, and what the operator needs. */
import { ATTRIBUTE_TYPES, quote } from '../../../formats/onnx/schema.js'
import { functionKey } from '../document/model_function.js'
import {
  leastCount,
  mostCount,
  type Parameter,
  parameterAt,
  type Schema,
  schemaAt,
  schemasOf,
} from '../schemas/schemas.js'
import type { FunctionHeader } from './model_header.js'
import { rangeText } from './range_text.js'

/** An attribute of a node as it is in the file. */
export interface NodeAttribute {
  readonly name: string
  /** Number of AttributeProto.AttributeType; undefined where the file has none. */
  readonly type: number | undefined
  /** Numbers of AttributeProto.AttributeType whose value fields are there. */
  readonly values: readonly number[]
  /** Undefined where the attribute is no reference. */
  readonly refName: string | undefined
}

/** A node as it is in the file. */
export interface NodeFields {
  readonly name: string
  readonly opType: string
  readonly domain: string
  readonly overload: string
  /** For each input whether it has a name: an empty one is omitted. */
  readonly inputs: readonly boolean[]
  readonly outputs: readonly boolean[]
  readonly attributes: readonly NodeAttribute[]
}

/** The graph or function that a node is in. */
export interface NodeScope {
  readonly irVersion: number | bigint
  /** Versions of operator sets by domain. */
  readonly imports: ReadonlyMap<string, number | bigint>
  /** Whether the node is in the main graph itself, in no subgraph and no function. */
  readonly isMain: boolean
  /** By `functionKey`. */
  readonly functions: ReadonlyMap<string, FunctionHeader>
}

/**
 * Operators of early versions that never became part of ONNX. Its checker lets them pass, because runtimes had them.
 * Source: `experimental_ops` in `onnx/checker.cc`.
 */
const EXPERIMENTAL: ReadonlySet<string> = new Set(
  `ATen Affine ConstantFill Crop DynamicSlice GRUUnit GivenTensorFill ImageScaler ParametricSoftplus Scale
  ScaledTanh`.split(/\s+/),
)

/** Domains of which readers know all operators; those of others may be known to a runtime alone. */
const CLOSED_DOMAINS: ReadonlySet<string> = new Set(['', 'ai.onnx', 'ai.onnx.ml', 'ai.onnx.training'])

/** The version of the operator set that a domain has; the domain of ONNX may be imported as `ai.onnx`. */
export function importedVersion(
  imports: ReadonlyMap<string, number | bigint>,
  domain: string,
): number | bigint | undefined {
  return imports.get(domain) ?? (domain === '' ? imports.get('ai.onnx') : undefined)
}

/** What is wrong with a node, as texts that follow its path and operator. */
export function* nodeProblems(node: NodeFields, scope: NodeScope): Generator<string> {
  const { opType, domain, overload } = node
  if (opType === '') {
    yield 'has no op_type'
    return
  }
  if (node.inputs.length === 0 && node.outputs.length === 0) yield 'has neither inputs nor outputs'
  yield* attributeProblems(node, scope)
  const version = importedVersion(scope.imports, domain)
  if (version === undefined) {
    yield `is of the domain ${quote(domain)}, which is not among the opset imports`
    return
  }
  if (domain === '' && EXPERIMENTAL.has(opType)) return
  const schema = schemaAt(domain, opType, Number(version))
  if (schema) {
    yield* schemaProblems(node, schema)
    return
  }
  if (CLOSED_DOMAINS.has(domain)) {
    yield unknownOperator(node, version)
    return
  }
  const called = scope.functions.get(functionKey(domain, opType, overload))
  if (called) yield* callProblems(node, called)
}

function unknownOperator({ opType, domain }: NodeFields, version: number | bigint): string {
  if (domain === 'ai.onnx') return `is of the domain "ai.onnx", which nodes must write as an empty one`
  const set = domain === '' ? 'ONNX' : quote(domain)
  const first = schemasOf(domain, opType)?.[0]
  return first
    ? `is not in version ${version} of ${set}, only from version ${first.since} on`
    : `is not an operator of ${set}`
}

function* attributeProblems({ attributes }: NodeFields, { irVersion, isMain }: NodeScope): Generator<string> {
  const names = new Set<string>()
  for (const { name, type, values, refName } of attributes) {
    if (name === '') yield 'has an attribute without a name'
    else if (names.has(name)) yield `has the attribute ${quote(name)} twice`
    names.add(name)
    if (type === undefined && irVersion >= 2) yield `has an attribute ${quote(name)} without a type`
    if (values.length > 1) yield `has more than one value in the attribute ${quote(name)}`
    const other = type === undefined ? undefined : values.find((value) => value !== type)
    if (other !== undefined)
      yield `has a value of the type ${typeName(other)} in the attribute ${quote(name)}, which is declared as ${typeName(type!)}`
    if (!isMain && refName !== undefined && values.length > 0)
      yield `has both a value and a reference in the attribute ${quote(name)}`
  }
}

const typeName = (type: number): string => ATTRIBUTE_TYPES[type] ?? String(type)

function* schemaProblems(node: NodeFields, schema: Schema): Generator<string> {
  if (schema.isDeprecated) {
    yield `is deprecated since version ${schema.since} of the operator set`
    return
  }
  yield* countProblems('input', node.inputs, schema.inputs, schema.isInferred)
  yield* countProblems('output', node.outputs, schema.outputs, false)
  yield* knownAttributeProblems(node, schema)
  for (const { name, isRequired } of schema.attributes.values()) {
    if (isRequired && !node.attributes.some((attribute) => attribute.name === name))
      yield `lacks the attribute ${quote(name)}`
  }
  const values = node.attributes.filter(({ name }) => schema.attributes.has(name)).length
  // Later versions take the value in one of several attributes, of which none is required.
  if (node.opType === 'Constant' && node.domain === '' && values !== 1)
    yield `has ${values} values; it takes exactly one`
}

function* countProblems(
  what: string,
  given: readonly boolean[],
  parameters: readonly Parameter[],
  needsFirst: boolean,
): Generator<string> {
  const [least, most] = [leastCount(parameters), mostCount(parameters)]
  if (given.length < least || given.length > most) {
    yield `has ${given.length} ${what}s; it takes ${rangeText(least, most)}`
    return
  }
  for (const [at, isNamed] of given.entries()) {
    const parameter = parameterAt(parameters, at)!
    // Readers that infer the type of a list of values take that of the first one.
    const isNeeded =
      parameter.option === 'single' ||
      (needsFirst && at === 0 && parameter.option === 'variadic' && parameter.isHomogeneous)
    if (!isNamed && isNeeded) yield `has an empty name for ${what} ${at}, which is not optional`
  }
}

/** Types of attributes whose value is a message, which must be there. */
const MESSAGE_TYPES: ReadonlySet<number> = new Set(
  (['TENSOR', 'GRAPH', 'SPARSE_TENSOR', 'TYPE_PROTO'] as const).map((name) => ATTRIBUTE_TYPES.indexOf(name)),
)

function* knownAttributeProblems({ attributes }: NodeFields, schema: Schema): Generator<string> {
  for (const { name, type, values, refName } of attributes) {
    const known = schema.attributes.get(name)
    if (!known) {
      // Readers leave names with two underscores to implementations.
      if (!name.startsWith('__') && !schema.isOpen)
        yield `has no attribute ${quote(name)} in version ${schema.since}`
      continue
    }
    if (type !== known.type) {
      const given = type === undefined ? 'no type' : `the type ${typeName(type)}`
      yield `has ${given} in the attribute ${quote(name)}, which is ${typeName(known.type)}`
    } else if (MESSAGE_TYPES.has(type) && values.length === 0 && (refName ?? '') === '')
      yield `has no value in the attribute ${quote(name)}`
  }
}

function* callProblems(node: NodeFields, called: FunctionHeader): Generator<string> {
  const { inputs, outputs } = node
  if (inputs.length > called.inputs.length)
    yield `has ${inputs.length} inputs; its function takes ${called.inputs.length}`
  if (outputs.length > called.outputs.length)
    yield `has ${outputs.length} outputs; its function has ${called.outputs.length}`
}
