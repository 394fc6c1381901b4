/**
 * Rules of models and their nodes that need no types: versions, operator sets, attributes, number of inputs and outputs,
 * names of nodes and graphs.
 *
 * Walks over the bytes, so that a graph of a million nodes needs no object for each. Sources: `onnx/checker.cc` and
 * `OpSchema::Verify` in the repository onnx/onnx, and what onnxruntime refuses when it loads a model.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Budget } from '../../../formats/budget.js'
import { FileFault } from '../../../formats/file_fault.js'
import { checkNameLength } from '../../../formats/onnx/name_length.js'
import {
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  visitFields,
  WireCursor,
  walkSource,
} from '../../../formats/onnx/protobuf/wire.js'
import {
  ATTRIBUTE_TYPES,
  FIRST_IR_WITH_FREE_INITIALIZERS,
  FIRST_IR_WITH_FUNCTIONS,
  fieldNumber,
  type MessageName,
  quote,
} from '../../../formats/onnx/schema.js'
import type { Report } from '../../../formats/report.js'
import { append } from '../../../long_lists.js'
import { functionKey } from '../document/model_function.js'
import { firstRepeated } from '../document/repeated_names.js'
import { NEWEST_IR_VERSION } from '../schemas/schema_table.js'
import { schemaAt } from '../schemas/schemas.js'
import {
  type FunctionHeader,
  type ModelHeader,
  modelHeader,
  type OpsetImport,
  type Range,
} from './model_header.js'
import { type NodeAttribute, type NodeFields, type NodeScope, nodeProblems } from './node_schema.js'

/** Reports what is wrong with the model and its nodes, those of subgraphs and functions too. */
export async function checkNodes(source: ByteSource, budget: Budget, report: Report): Promise<void> {
  const cursor = new WireCursor(source)
  try {
    const header = await walkSource(modelHeader(cursor, source.byteLength), cursor)
    checkHeader(header, report)
    await walkSource(new NodeWalker(cursor, header, budget, report).model(), cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: 'graph', offset: error.offset })
  }
}

/** Operator sets are imported from this version of the format on; readers need them. */
const FIRST_IR_VERSION_WITH_IMPORTS = 3

function checkHeader({ irVersion, imports, metadataKeys, graphs }: ModelHeader, report: Report): void {
  const complain = (text: string, path: string, offset = 0): void =>
    report.deviation('ERR_GRAPH', text, { path, offset })
  if (irVersion < FIRST_IR_VERSION_WITH_IMPORTS || irVersion > NEWEST_IR_VERSION) {
    const reason = irVersion === 0 ? 'is missing' : `is ${irVersion}`
    complain(
      `ir_version ${reason}; it must be ${FIRST_IR_VERSION_WITH_IMPORTS} to ${NEWEST_IR_VERSION}.`,
      'ir_version',
    )
  }
  if (imports.length === 0) complain('The model imports no operator set.', 'opset_import')
  checkImports(imports, 'opset_import', report)
  const twice = firstRepeated(metadataKeys)
  if (twice !== undefined)
    report.deviation('ERR_DUPLICATE', `metadata_props has the key ${quote(twice)} twice.`, {
      path: 'metadata_props',
      offset: 0,
    })
  if (graphs.length === 0) complain('The model has no graph.', 'graph')
}

/** Version numbers are signed and of 32 bits for readers; one below 1 has no operator. */
const MAX_VERSION = 2 ** 31 - 1

function checkImports(imports: readonly OpsetImport[], path: string, report: Report): void {
  const seen = new Set<string>()
  for (const [at, { domain, version, offset }] of imports.entries()) {
    const place = { path: `${path}[${at}]`, offset }
    if (version < -MAX_VERSION - 1 || version > MAX_VERSION)
      report.deviation(
        'ERR_GRAPH',
        `${place.path} has the version ${version}; it must be at most ${MAX_VERSION}.`,
        place,
      )
    if (seen.has(domain))
      report.note(
        'ERR_DUPLICATE',
        `${place.path} imports the domain ${quote(domain)} again; the last one counts.`,
        place,
      )
    seen.add(domain)
  }
}

type Visit = (number: number, start: number, end: number) => Steps<void> | undefined

const numbersOf = <Name extends string>(message: MessageName, names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, fieldNumber(message, name)])) as Record<Name, number>

const GRAPH = numbersOf('GraphProto', ['name', 'node', 'input', 'initializer', 'sparse_initializer'])
const FUNCTION_NODE = fieldNumber('FunctionProto', 'node')
const NODE = numbersOf('NodeProto', ['input', 'output', 'name', 'op_type', 'domain', 'overload', 'attribute'])
const ATTRIBUTE = numbersOf('AttributeProto', ['name', 'type', 'ref_attr_name', 'strings', 'g', 'graphs'])
const VALUE_NAME = fieldNumber('ValueInfoProto', 'name')
const TENSOR_NAME = fieldNumber('TensorProto', 'name')

/** The type of an attribute that each value field of AttributeProto means. */
const TYPE_OF_FIELD: ReadonlyMap<number, number> = new Map(
  ATTRIBUTE_TYPES.flatMap((type, number) =>
    number === 0 ? [] : [[fieldNumber('AttributeProto', valueField(type)), number]],
  ),
)

function valueField(type: string): string {
  const short: Readonly<Record<string, string>> = {
    FLOAT: 'f',
    INT: 'i',
    STRING: 's',
    TENSOR: 't',
    GRAPH: 'g',
    TYPE_PROTO: 'tp',
  }
  return short[type] ?? type.toLowerCase()
}

/** The node that is being read. */
class ReadNode implements NodeFields {
  name = ''
  opType = ''
  domain = ''
  overload = ''
  readonly inputs: boolean[] = []
  readonly outputs: boolean[] = []
  readonly attributes: NodeAttribute[] = []
  /** Graphs in its attributes, with their paths. */
  readonly subgraphs: (Range & { readonly path: string })[] = []
}

/** A graph or function whose nodes are being read. */
interface OpenScope extends NodeScope {
  readonly path: string
  readonly depth: number
  /** Whether it is the body of a function itself. */
  readonly isFunction: boolean
  readonly names: Set<string>
  count: number
}

class NodeWalker {
  readonly #cursor: WireCursor
  readonly #header: ModelHeader
  readonly #budget: Budget
  readonly #report: Report
  readonly #functions = new Map<string, FunctionHeader>()

  constructor(cursor: WireCursor, header: ModelHeader, budget: Budget, report: Report) {
    this.#cursor = cursor
    this.#header = header
    this.#budget = budget
    this.#report = report
    for (const each of header.functions)
      this.#functions.set(functionKey(each.domain ?? '', each.name, each.overload), each)
  }

  *model(): Steps<void> {
    const { imports, graphs, functions } = this.#header
    const scope = this.#scope({ path: 'graph', imports: versionsOf(imports), isMain: true, depth: 1 })
    for (const range of graphs) yield* this.#graph(range, scope)
    if (this.#header.irVersion < FIRST_IR_WITH_FUNCTIONS) return
    for (const [at, each] of functions.entries()) yield* this.#function(each, `functions[${at}]`)
  }

  #scope(given: Pick<OpenScope, 'path' | 'imports' | 'depth'> & Partial<OpenScope>): OpenScope {
    const { irVersion } = this.#header
    return {
      isMain: false,
      isFunction: false,
      irVersion,
      functions: this.#functions,
      names: new Set(),
      count: 0,
      ...given,
    }
  }

  *#graph({ start, end }: Range, scope: OpenScope): Steps<void> {
    this.#budget.require('depth', scope.depth, start)
    let name = ''
    yield* this.#walk(start, end, (number, from, to) => {
      if (number === GRAPH.name)
        return this.#text(from, to, (text) => {
          name = text
        })
      return number === GRAPH.node ? this.#node(from, to, scope) : undefined
    })
    if (name === '') this.#complain(scope.path, start, `${scope.path} has no name.`)
    if (this.#header.irVersion < FIRST_IR_WITH_FREE_INITIALIZERS)
      yield* this.#oldInitializers({ start, end }, scope.path)
  }

  /** Early versions of the format want an input for each initializer. */
  *#oldInitializers({ start, end }: Range, path: string): Steps<void> {
    const inputs = new Set<string>()
    const initializers: { readonly name: string; readonly offset: number }[] = []
    yield* this.#walk(start, end, (number, from, to) => {
      if (number === GRAPH.input) return this.#nameOf(from, to, VALUE_NAME, (name) => void inputs.add(name))
      if (number !== GRAPH.initializer) return undefined
      return this.#nameOf(from, to, TENSOR_NAME, (name) => void initializers.push({ name, offset: from }))
    })
    for (const { name, offset } of initializers) {
      if (inputs.has(name)) continue
      const least = FIRST_IR_WITH_FREE_INITIALIZERS
      this.#complain(
        path,
        offset,
        `The initializer ${quote(name)} of ${path} is no input, as it must be below ir_version ${least}.`,
      )
    }
  }

  *#function(header: FunctionHeader, path: string): Steps<void> {
    const { start, end, name, domain, inputs, outputs, attributes, imports } = header
    if (name === '') this.#complain(path, start, `${path} has no name.`)
    if (domain === undefined) this.#complain(path, start, `${path} has no domain.`)
    checkImports(imports, `${path}.opset_import`, this.#report)
    for (const [what, names] of Object.entries({ input: inputs, output: outputs, attribute: attributes })) {
      const twice = firstRepeated(names)
      if (twice !== undefined)
        this.#report.deviation('ERR_DUPLICATE', `${path} has the ${what} ${quote(twice)} twice.`, {
          path,
          offset: start,
        })
    }
    const scope = this.#scope({ path, imports: versionsOf(imports), isFunction: true, depth: 1 })
    yield* this.#walk(start, end, (number, from, to) =>
      number === FUNCTION_NODE ? this.#node(from, to, scope) : undefined,
    )
  }

  *#node(start: number, end: number, scope: OpenScope): Steps<void> {
    const node = new ReadNode()
    const path = `${scope.path}.node[${scope.count++}]`
    yield* this.#walk(start, end, (number, from, to) => this.#nodeField(node, path, number, from, to))
    const problems = [...nodeProblems(node, scope)]
    if (scope.isFunction) append(problems, this.#versionProblems(node, scope))
    for (const problem of problems)
      this.#complain(
        path,
        start,
        `${path}${node.opType === '' ? '' : ` (${shortened(node.opType)})`} ${problem}.`,
      )
    // onnxruntime turns constants into initializers before it compares names.
    const isNamed = node.name !== '' && node.opType !== 'Constant'
    if (isNamed && scope.names.has(node.name))
      this.#report.deviation(
        'ERR_DUPLICATE',
        `${path} has the name ${quote(node.name)}, as another node of ${scope.path}.`,
        { path, offset: start },
      )
    if (isNamed) scope.names.add(node.name)
    for (const { path: inner, ...range } of node.subgraphs) {
      const { imports, depth } = scope
      yield* this.#graph(range, this.#scope({ path: inner, imports, depth: depth + 3 }))
    }
  }

  #nodeField(
    node: ReadNode,
    path: string,
    number: number,
    start: number,
    end: number,
  ): Steps<void> | undefined {
    switch (number) {
      case NODE.input:
        node.inputs.push(end > start)
        return undefined
      case NODE.output:
        node.outputs.push(end > start)
        return undefined
      case NODE.name:
        return this.#text(start, end, (text) => {
          node.name = text
        })
      case NODE.op_type:
        return this.#text(start, end, (text) => {
          node.opType = text
        })
      case NODE.domain:
        return this.#text(start, end, (text) => {
          node.domain = text
        })
      case NODE.overload:
        return this.#text(start, end, (text) => {
          node.overload = text
        })
      case NODE.attribute:
        return this.#attribute(node, `${path}.attribute[${node.attributes.length}]`, start, end)
      default:
        return undefined
    }
  }

  *#attribute(node: ReadNode, path: string, start: number, end: number): Steps<void> {
    const cursor = this.#cursor
    const values = new Set<number>()
    let [name, type, refName] = ['', undefined as number | undefined, undefined as string | undefined]
    let graphs = 0
    cursor.position = start
    const steps = visitFields(cursor, end, () => {
      const { number, wireType, valueStart, position } = cursor
      const value = TYPE_OF_FIELD.get(number)
      // A packed run of no numbers is no value.
      if (value !== undefined && (wireType !== LENGTH || position > valueStart || !PACKABLE.has(value)))
        values.add(value)
      if (wireType === VARINT && number === ATTRIBUTE.type) type = cursor.int32()
      else if (wireType !== LENGTH || number === ATTRIBUTE.strings) return cursor.endOfRun(end)
      if (wireType !== LENGTH) return undefined
      if (number === ATTRIBUTE.name)
        return this.#text(valueStart, position, (text) => {
          name = text
        })
      if (number === ATTRIBUTE.ref_attr_name)
        return this.#text(valueStart, position, (text) => {
          refName = text
        })
      if (number === ATTRIBUTE.g) node.subgraphs.push({ start: valueStart, end: position, path: `${path}.g` })
      if (number === ATTRIBUTE.graphs)
        node.subgraphs.push({ start: valueStart, end: position, path: `${path}.graphs[${graphs++}]` })
      return undefined
    })
    if (steps) yield* steps
    node.attributes.push({ name, type, values: [...values], refName })
  }

  /** An operator must mean the same in a function as in the model, which may run its nodes in place. */
  *#versionProblems({ domain, opType }: ReadNode, scope: OpenScope): Generator<string> {
    const [own, model] = [scope.imports.get(domain), this.#modelVersion(domain)]
    if (own === undefined || model === undefined || own === model) return
    const [one, other] = [own, model].map((version) => schemaAt(domain, opType, Number(version)))
    if (one?.since === other?.since) return
    yield `differs between version ${own} of the operator set, which its function imports, and ${model}, which the model imports`
  }

  /** The version that the model imports, or the first function that imports the domain. */
  #modelVersion(domain: string): number | bigint | undefined {
    this.#versions ??= this.#allVersions()
    return this.#versions.get(domain)
  }

  #versions: ReadonlyMap<string, number | bigint> | undefined

  #allVersions(): ReadonlyMap<string, number | bigint> {
    const versions = versionsOf(this.#header.imports)
    for (const { imports } of this.#header.functions)
      for (const { domain, version } of imports) if (!versions.has(domain)) versions.set(domain, version)
    return versions
  }

  #complain(path: string, offset: number, text: string): void {
    this.#report.deviation('ERR_GRAPH', text, { path, offset })
  }

  #nameOf(start: number, end: number, field: number, take: (name: string) => void): Steps<void> | undefined {
    return this.#inside(start, end, (number, from, to) =>
      number === field ? this.#text(from, to, take) : undefined,
    )
  }

  /** Visits the length-delimited fields of a message. */
  *#walk(start: number, end: number, visit: Visit): Steps<void> {
    const steps = this.#inside(start, end, visit)
    if (steps) yield* steps
  }

  /** As `#walk`; returns a walk over what the window does not hold. */
  #inside(start: number, end: number, visit: Visit): Steps<void> | undefined {
    const cursor = this.#cursor
    cursor.position = start
    return visitFields(cursor, end, () =>
      cursor.wireType === LENGTH ? visit(cursor.number, cursor.valueStart, cursor.position) : undefined,
    )
  }

  /** Visits a text; returns a walk where the window does not hold it. */
  #text(start: number, end: number, take: (text: string) => void): Steps<void> | undefined {
    checkNameLength(start, end)
    const cursor = this.#cursor
    if (!cursor.holdsRange(start, end)) return this.#loadText(start, end, take)
    take(cursor.heldText(start, end))
    return undefined
  }

  *#loadText(start: number, end: number, take: (text: string) => void): Steps<void> {
    yield* holdRange(this.#cursor, start, end)
    take(this.#cursor.heldText(start, end))
  }
}

/** Types whose repeated numbers may be packed. */
const PACKABLE: ReadonlySet<number> = new Set(
  (['FLOATS', 'INTS'] as const).map((name) => ATTRIBUTE_TYPES.indexOf(name)),
)

function versionsOf(imports: readonly OpsetImport[]): Map<string, number | bigint> {
  return new Map(imports.map(({ domain, version }) => [domain, version]))
}

const shortened = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)
