/**
 * Adds and removes functions of a model. Calls refer to a function by domain, name and overload, so edits check first
 * which function has the key and which nodes call it.
 */
import { checkObject, checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkInt64, checkList, checkText, checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import { FIRST_IR_WITH_FUNCTIONS, MAX_FUNCTIONS } from '../../../formats/onnx/schema.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import { GRAPHS } from '../document/graph.js'
import type { OnnxModel } from '../document/model.js'
import { ModelFunction } from '../document/model_function.js'
import { type CheckedNode, checkNewNode, ProtoNode } from '../document/node.js'
import { firstRepeated } from '../document/repeated_names.js'
import type { NewNode, Node } from '../document/types.js'

/** A function to add. */
export interface NewFunction {
  readonly domain: string
  readonly name: string
  /** Distinguishes functions of the same name; needs IR version 10. */
  readonly overload?: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  /** Names of attributes that every call sets; nodes of the function refer to them. */
  readonly attributeNames?: readonly string[]
  /** Versions of operator sets by domain. Default: the imports of the model that the nodes need. */
  readonly opsetImports?: Readonly<Record<string, number | bigint>>
  /** In topological order. */
  readonly nodes: readonly NewNode[]
}

const FIRST_IR_WITH_OVERLOADS = 10

type CheckedFunction = Required<Omit<NewFunction, 'nodes'>> & { readonly nodes: readonly CheckedNode[] }

/**
 * Adds a function and imports its domain into the model.
 *
 * @throws TileworkError ERR_ARGUMENT for a key that is taken, for the domain of ONNX itself, for empty or repeated names,
 * for values that are defined twice or used before their definition, and for domains without an import; ERR_GRAPH for
 * a function that calls itself; ERR_UNSUPPORTED below IR version 8, or 10 for overloads; ERR_LIMIT
 */
export function addFunction(model: OnnxModel, added: NewFunction): ModelFunction {
  checkModel(model, 'addFunction')
  const checked = checkFunction(model, added)
  const { domain, name, overload, inputs, outputs, attributeNames, opsetImports, nodes } = checked
  const message = model.message.insert('functions')
  message.setText('name', name)
  message.setTexts('input', inputs)
  message.setTexts('output', outputs)
  message.setTexts('attribute', attributeNames)
  for (const node of nodes) ProtoNode.of(message.insert('node'), GRAPHS).fill(node)
  for (const [set, version] of Object.entries(opsetImports)) {
    const entry = message.insert('opset_import')
    entry.setText('domain', set)
    entry.setInt('version', version)
  }
  message.setText('domain', domain)
  if (overload !== '') message.setText('overload', overload)
  if (!model.opsetImports.has(domain)) model.setOpsetImport(domain, 1)
  return new ModelFunction(message)
}

/**
 * Removes a function; its domain stays imported.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown function, and for one that a node calls
 */
export function removeFunction(model: OnnxModel, domain: string, name: string, overload = ''): void {
  checkModel(model, 'removeFunction')
  for (const [what, text] of Object.entries({ domain, name, overload }))
    checkText(`The ${what} of removeFunction`, text)
  const key = keyOf(domain, name, overload)
  const found = model.functions.find((each) => keyOf(each.domain, each.name, each.overload) === key)
  if (!found) throw wrong(`The model has no function ${valueText(name)} in the domain ${valueText(domain)}`)
  for (const node of nodesOf(model)) {
    if (keyOf(node.domain, node.opType, node.overload) !== key) continue
    throw wrong(
      `The function ${valueText(name)} is called by the node ${valueText(node.name)}; remove that first`,
    )
  }
  model.message.remove('functions', found.message)
}

/** Removes functions that no node calls, directly or through other functions. */
export function removeUncalledFunctions(model: OnnxModel): void {
  if (!model.message.has('functions')) return
  const bodies = new Map(
    model.functions.map((each) => [keyOf(each.domain, each.name, each.overload), each] as const),
  )
  const called = new Set<string>()
  const waiting = [...model.graphs()].flatMap(({ nodes }) => nodes.map(callOf))
  for (let call = waiting.pop(); call !== undefined; call = waiting.pop()) {
    const body = bodies.get(call)
    if (!body || called.has(call)) continue
    called.add(call)
    for (const node of withInner(body.nodes)) waiting.push(callOf(node))
  }
  const uncalled = new Set([...bodies].flatMap(([key, { message }]) => (called.has(key) ? [] : [message])))
  model.message.filter('functions', (field) => field.kind === 'tensor' || !uncalled.has(field))
}

function checkFunction(model: OnnxModel, added: NewFunction): CheckedFunction {
  checkOptions(added, 'addFunction', [
    ...([
      'domain',
      'name',
      'overload',
      'inputs',
      'outputs',
      'attributeNames',
      'opsetImports',
      'nodes',
    ] as const),
  ])
  const given = readInput('The function', () => ({ ...added }))
  const { domain, name, overload = '', inputs = [], outputs = [], attributeNames = [] } = given
  for (const text of [domain, name, overload]) checkText('The domain, name or overload of a function', text)
  for (const texts of [inputs, outputs, attributeNames]) checkTexts('A list of names of a function', texts)
  checkKey(model, domain, name, overload)
  checkFormalNames({ inputs, outputs, attributeNames })
  // Unlike map(), this visits the holes of a sparse list, which are no nodes.
  const nodes = Array.from(checkList('The nodes of a function', given.nodes), (node) =>
    checkNewNode(model.message, node as NewNode, GRAPHS),
  )
  checkReferences(attributeNames, nodes)
  checkValues(inputs, outputs, nodes)
  checkCalls(model, keyOf(domain, name, overload), nodes)
  const opsetImports = importsOf(model, given.opsetImports, nodes)
  return { domain, name, overload, inputs, outputs, attributeNames, opsetImports, nodes }
}

function checkKey(model: OnnxModel, domain: string, name: string, overload: string): void {
  if (name === '' || setOf(domain) === '')
    throw wrong('A function needs a name and a domain other than that of ONNX itself')
  const version = Number(model.irVersion)
  const needed = overload === '' ? FIRST_IR_WITH_FUNCTIONS : FIRST_IR_WITH_OVERLOADS
  if (version < needed) {
    const message = `The IR version is ${version}; such a function needs ${needed}.`
    throw new TileworkError('ERR_UNSUPPORTED', message)
  }
  const { functions } = model
  if (functions.length >= MAX_FUNCTIONS) {
    throw new TileworkError(
      'ERR_LIMIT',
      `The model has ${functions.length} functions; the limit is ${MAX_FUNCTIONS}.`,
    )
  }
  const key = keyOf(domain, name, overload)
  if (functions.some((each) => keyOf(each.domain, each.name, each.overload) === key)) {
    throw wrong(`The model already has a function ${valueText(name)} in the domain ${valueText(domain)}`)
  }
}

/** A call binds values to these names, so names must be unique in each list. */
function checkFormalNames(lists: Readonly<Record<string, readonly string[]>>): void {
  for (const [list, names] of Object.entries(lists)) {
    if (names.includes('')) throw wrong(`The ${list} of a function contain an empty name`)
    const repeated = firstRepeated(names)
    if (repeated !== undefined) throw wrong(`The ${list} of a function contain ${valueText(repeated)} twice`)
  }
}

/** References name an attribute of the function. */
function checkReferences(attributeNames: readonly string[], nodes: readonly CheckedNode[]): void {
  for (const { attributes } of nodes) {
    for (const attribute of Object.values(attributes)) {
      if (!('refName' in attribute) || attributeNames.includes(attribute.refName)) continue
      throw wrong(`A node refers to ${valueText(attribute.refName)}, which is no attribute of the function`)
    }
  }
}

/** Each value is defined once and before its uses, including uses in subgraphs. */
function checkValues(
  inputs: readonly string[],
  outputs: readonly string[],
  nodes: readonly CheckedNode[],
): void {
  const defined = new Set<string>()
  const define = (name: string): void => {
    if (defined.has(name)) throw wrong(`The function defines ${valueText(name)} twice`)
    defined.add(name)
  }
  const use = (name: string): void => {
    if (name !== '' && !defined.has(name))
      throw wrong(`The function uses ${valueText(name)} before it is defined`)
  }
  inputs.forEach(define)
  for (const node of nodes) {
    node.inputs.forEach(use)
    for (const graph of graphsOf(node)) graph.outerNames().forEach(use)
    for (const name of node.outputs) if (name !== '') define(name)
  }
  outputs.forEach(use)
}

/** Refuses recursion, directly or through other functions. */
function checkCalls(model: OnnxModel, key: string, nodes: readonly CheckedNode[]): void {
  const bodies = new Map(
    model.functions.map((each) => [keyOf(each.domain, each.name, each.overload), each] as const),
  )
  const waiting = nodes.flatMap((node) => [
    keyOf(node.domain ?? '', node.opType, ''),
    ...graphsOf(node).flatMap((graph) => [...graph.allNodes()].map(callOf)),
  ])
  const seen = new Set<string>()
  for (let call = waiting.pop(); call !== undefined; call = waiting.pop()) {
    if (call === key)
      throw new TileworkError('ERR_GRAPH', 'The function calls itself, or a function that calls it.')
    const body = bodies.get(call)
    if (!body || seen.has(call)) continue
    seen.add(call)
    for (const node of withInner(body.nodes)) waiting.push(callOf(node))
  }
}

function importsOf(
  model: OnnxModel,
  given: NewFunction['opsetImports'],
  nodes: readonly CheckedNode[],
): Readonly<Record<string, number | bigint>> {
  if (given !== undefined) checkObject(given, 'opsetImports is { domain: version }')
  const imports = new Map<string, number | bigint>(Object.entries(given ?? {}))
  for (const [domain, version] of imports) {
    checkText('The domain of an operator set', domain)
    checkInt64('The version of an operator set', version)
  }
  for (const domain of new Set(nodes.flatMap(domainsOf))) {
    if (versionOf(domain, imports) !== undefined) continue
    const version = versionOf(domain, model.opsetImports)
    if (version === undefined)
      throw wrong(`Neither the function nor the model imports the domain ${valueText(domain)}`)
    imports.set(domain, version)
  }
  return Object.fromEntries(imports)
}

/** Domains of the operators in a node and its subgraphs. */
function domainsOf(node: CheckedNode): string[] {
  const inside = graphsOf(node).flatMap((graph) => [...graph.allNodes()])
  return [node.domain ?? '', ...inside.map(({ domain }) => domain)].map(setOf)
}

function versionOf(set: string, imports: ReadonlyMap<string, number | bigint>): number | bigint | undefined {
  return [...imports].find(([domain]) => setOf(domain) === set)?.[1]
}

function graphsOf({ attributes }: CheckedNode) {
  return Object.values(attributes).flatMap((attribute) => {
    if ('refName' in attribute) return []
    if (attribute.type === 'GRAPH') return [attribute.value]
    return attribute.type === 'GRAPHS' ? attribute.value : []
  })
}

function* nodesOf(model: OnnxModel): Generator<Node> {
  for (const graph of model.graphs()) yield* graph.nodes
  for (const { nodes } of model.functions) yield* withInner(nodes)
}

/** Nodes and the nodes of their subgraphs. */
export function* withInner(nodes: readonly Node[]): Generator<Node> {
  for (const node of nodes) {
    yield node
    for (const graph of node.subgraphs) yield* graph.allNodes()
  }
}

/** The key of the function that a node calls. */
export function callOf({ domain, opType, overload }: Node): string {
  return keyOf(domain, opType, overload)
}

/** Identifies a function or an operator. */
export function keyOf(domain: string, name: string, overload: string): string {
  return JSON.stringify([setOf(domain), name, overload])
}

/** Normalizes the domain of ONNX itself, which may be written as empty or as `ai.onnx`. */
function setOf(domain: string): string {
  return domain === 'ai.onnx' ? '' : domain
}

function wrong(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', `${message}.`)
}
