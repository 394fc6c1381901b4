/**
 * Converts a model to another version of the operator set of ONNX. To a later one version by version: nodes whose operator changed get
 * an adapter, all others stay as they are. To an earlier one where every node means the same there.
 */
import { TileworkError } from '../../../errors.js'
import { FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import { FreshNames } from '../document/fresh_names.js'
import { GRAPHS } from '../document/graph.js'
import type { OnnxModel } from '../document/model.js'
import type { ModelFunction } from '../document/model_function.js'
import { standardDomain } from '../document/node.js'
import type { Graph, Node, ValueType } from '../document/types.js'
import { withInner } from '../edit/function_edits.js'
import { inferModel } from '../infer/infer.js'
import { type Adapter, adapterOf } from './adapters.js'
import { LOWEST_TARGET, lowerReductions, planLowering } from './lower.js'
import { NodePlace, type Surroundings } from './node_place.js'
import { CHANGED, isOperator, NEWEST_OPSET } from './versions.js'

/** What `convertOpset` did. */
export interface OpsetConversion {
  /** The version before; that of the model, not of its functions. */
  readonly from: number
  /** Nodes that were changed to mean the same in the new version, without those that were added. */
  readonly adapted: readonly Node[]
}

/** Nodes that an error names. */
const MAX_NAMED = 100

/**
 * Converts the model to another version of the operator set of ONNX. For a later one, nodes whose operator changed are rewritten, with
 * constants and further nodes where they need them, in subgraphs and functions too. An earlier one, from 13 on, is imported where every
 * node means the same there; below 18 constant axes of reductions become attributes. Other domains and the IR version stay.
 *
 * @param version - from 13, or from the present version if that is earlier, to 28
 * @throws TileworkError ERR_ARGUMENT for another number; ERR_UNSUPPORTED for earlier versions, for functions in a model that goes to an
 * earlier one, and for nodes that cannot be converted, all of which the error names; ERR_GRAPH for a cycle of nodes and for a model without that operator set. Nothing
 * is changed then
 */
export function convertOpset(model: OnnxModel, version: number): OpsetConversion {
  checkModel(model, 'convertOpset')
  if (!Number.isSafeInteger(version) || version < 1 || version > NEWEST_OPSET) {
    const text = `The version of the operator set is ${valueText(version)}; it must be an integer from 1 to ${NEWEST_OPSET}.`
    throw new TileworkError('ERR_ARGUMENT', text)
  }
  const from = Number(model.opsetImports.get('') ?? 0)
  if (from === 0)
    throw new TileworkError('ERR_GRAPH', 'The model imports no operator set of ONNX.', {
      format: FORMAT_NAME,
    })
  if (version < from) return lower(model, from, version)
  // A copy first: a refusal leaves the model as it is.
  const { refused } = new Conversion(model.copy()).run(version)
  if (refused.length > 0) throw refusal(refused, version)
  const { adapted } = new Conversion(model).run(version)
  return { from, adapted: [...adapted] }
}

function lower(model: OnnxModel, from: number, version: number): OpsetConversion {
  const because =
    version < LOWEST_TARGET
      ? `${LOWEST_TARGET} is the earliest set for models of later ones`
      : from > NEWEST_OPSET
        ? `set ${from} is not known`
        : model.functions.length > 0
          ? 'it has functions'
          : undefined
  if (because !== undefined) {
    const text = `The model has operator set ${from}; it cannot be converted down to ${version}: ${because}.`
    throw new TileworkError('ERR_UNSUPPORTED', text, { format: FORMAT_NAME })
  }
  const { refused, reductions } = planLowering(model, from, version)
  const texts = refused.map(([node, reason]) => refusedText(node, reason))
  if (texts.length > 0) throw refusal(texts, version)
  lowerReductions(reductions)
  model.setOpsetImport('', version)
  return { from, adapted: [...reductions.keys()] }
}

function refusedText({ name, opType, outputs }: Node, reason: string): string {
  const title = name === '' ? `before ${valueText(outputs[0] ?? '')}` : valueText(name)
  return `${opType} ${title} (${reason})`
}

function refusal(refused: readonly string[], version: number): TileworkError {
  const named = refused.slice(0, MAX_NAMED).join('; ')
  const more = refused.length > MAX_NAMED ? `; and ${refused.length - MAX_NAMED} more` : ''
  const text = `Nodes cannot be converted to operator set ${version}: ${named}${more}.`
  return new TileworkError('ERR_UNSUPPORTED', text, { format: FORMAT_NAME })
}

class Conversion {
  readonly refused: string[] = []
  readonly adapted = new Set<Node>()
  readonly #refusedNodes = new Set<Node>()
  readonly #model: OnnxModel
  readonly #names: FreshNames
  /** Types of the model as it was, which a conversion keeps. */
  #types = new Map<Graph, ReadonlyMap<string, ValueType>>()
  #hasMoved = false

  constructor(model: OnnxModel) {
    this.#model = model
    this.#names = new FreshNames(model)
  }

  run(version: number): this {
    const model = this.#model
    const graphs = [...model.graphs()]
    for (const graph of graphs) this.#refuseUnknown(graph.nodes)
    const from = Number(model.opsetImports.get(''))
    if (needsAdapters(graphs, from, version)) this.#types = new Map(inferModel(model).types)
    const isUsed = usage(
      graphs.flatMap(({ nodes }) => nodes),
      graphs,
    )
    // Inner graphs first: a node may get a body with a copy of its own.
    let innerFirst = graphs.reverse()
    for (let next = from + 1; next <= version; next++) {
      for (const graph of innerFirst) this.#convert(graph.nodes, next, { target: version, isUsed }, graph)
      if (this.#hasMoved) innerFirst = [...model.graphs()].reverse()
      this.#hasMoved = false
    }
    for (const body of model.functions) this.#convertFunction(body, version)
    model.setOpsetImport('', version)
    return this
  }

  #convertFunction(body: ModelFunction, version: number): void {
    const imports = body.message.messages('opset_import')
    const entry = imports.findLast((each) => standardDomain(each.text('domain')) === '')
    if (!entry) return
    const all = [...withInner(body.nodes)]
    this.#refuseUnknown(all)
    this.#names.reserve([...body.inputs, ...all.flatMap(({ inputs, outputs }) => [...inputs, ...outputs])])
    const inner = all.flatMap(({ subgraphs }) => subgraphs)
    const place = { target: version, isUsed: usage(all, [...inner, body]) }
    for (let next = Number(entry.int('version') ?? 0) + 1; next <= version; next++)
      this.#convert([...withInner(body.nodes)].reverse(), next, place)
    if (Number(entry.int('version') ?? 0) < version) entry.setInt('version', version)
  }

  /** An operator outside of the table may have changed, so it cannot be converted. */
  #refuseUnknown(nodes: readonly Node[]): void {
    for (const node of nodes) {
      if (node.domain === '' && !isOperator(node.opType)) this.#refuse(node, 'the operator is not known')
    }
  }

  /** @param graph - the graph of the nodes; absent in functions, whose values have no types */
  #convert(
    nodes: readonly Node[],
    version: number,
    place: Pick<Surroundings, 'target' | 'isUsed'>,
    graph?: Graph,
  ): void {
    const changed = CHANGED.get(version)
    if (!changed) return
    for (const node of nodes) {
      const { opType } = node
      if (!changed.has(opType) || node.domain !== '' || this.#refusedNodes.has(node)) continue
      const adapt = adapterOf(opType, version)
      const reference = node.attributes.find(({ refName }) => refName !== '')
      if (!adapt) this.#refuse(node, `there is no conversion to version ${version}`)
      else if (reference) this.#refuse(node, `${reference.name} is an attribute of the function`)
      else {
        const fresh = (base: string): string => this.#names.take(base)
        const typeOf = (name: string): ValueType | undefined => this.#typeOf(name, graph)
        const moved = (old: Graph, copy: Graph): void => this.#moveTypes(old, copy)
        this.#adapt(new NodePlace(node, { ...place, fresh, typeOf, moved }), adapt)
      }
    }
  }

  #adapt(place: NodePlace, adapt: Adapter): void {
    const { node } = place
    const { edits } = node.message
    const reason = adapt(place)
    if (reason !== undefined) this.#refuse(node, reason)
    else if (node.message.edits !== edits) this.adapted.add(node)
  }

  #refuse(node: Node, reason: string): void {
    this.#refusedNodes.add(node)
    this.refused.push(refusedText(node, reason))
  }

  /** The types of values, for a copy of their graph and the graphs in it. */
  #moveTypes(old: Graph, copy: Graph): void {
    this.#hasMoved = true
    const types = this.#types.get(old)
    if (types) this.#types.set(copy, types)
    const inner = (graph: Graph): Graph[] => graph.nodes.flatMap(({ subgraphs }) => subgraphs)
    const copies = inner(copy)
    for (const [at, graph] of inner(old).entries()) this.#moveTypes(graph, copies[at]!)
  }

  #typeOf(name: string, graph: Graph | undefined): ValueType | undefined {
    for (let scope = graph; scope; scope = outerGraph(scope)) {
      const type = this.#types.get(scope)?.get(name)
      if (type) return type
    }
    return undefined
  }
}

/** Finds whether nodes, or the outputs of graphs and functions, use a value; the names are collected for the first question. */
function usage(
  nodes: readonly Node[],
  owners: readonly { readonly outputs: readonly (string | { readonly name: string })[] }[],
): (name: string) => boolean {
  let used: Set<string> | undefined
  return (name) => {
    if (!used) {
      used = new Set(nodes.flatMap(({ inputs }) => inputs))
      for (const { outputs } of owners)
        for (const output of outputs) used.add(typeof output === 'string' ? output : output.name)
    }
    return used.has(name)
  }
}

function needsAdapters(graphs: readonly Graph[], from: number, to: number): boolean {
  const operators = new Set(graphs.flatMap(({ nodes }) => nodes.map(({ opType }) => opType)))
  for (const [version, changed] of CHANGED)
    if (version > from && version <= to && [...changed].some((name) => operators.has(name))) return true
  return false
}

/** The graph with the node whose attribute is this one. */
function outerGraph({ message }: Graph): Graph | undefined {
  let outer = message.parent
  while (outer && outer.type !== 'GraphProto') outer = outer.parent
  return outer && GRAPHS.of(outer)
}
