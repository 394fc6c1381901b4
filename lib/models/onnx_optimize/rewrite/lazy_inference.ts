/**
 * What is known of the values of a model that is rewritten, from the values before them and no others: most rules ask for no type, and a
 * change asks only for what is behind it.
 *
 * Values of subgraphs and calls of functions are inferred with the whole model, once.
 */
import { FIRST_IR_WITH_FREE_INITIALIZERS } from '../../../formats/onnx/schema.js'
import type { Graph } from '../../onnx/document/types.js'
import { Evaluator } from '../../onnx/evaluate/evaluate.js'
import {
  inferModel,
  inferNode,
  joined,
  MAX_VALUE_ELEMENTS,
  MAX_VALUE_WORK,
  NONE,
  withoutShape,
} from '../../onnx/infer/infer.js'
import { type Known, knownOfInitializer, type NodeContext, NodeView } from '../../onnx/infer/node_view.js'
import type { Built } from './build.js'
import type { Body } from './functions.js'
import type { RewriteNode, RewriteValue } from './rewrite_graph.js'

export class LazyInference {
  readonly #body: Body
  /** Whether values of the file follow from their nodes: the model has neither subgraphs nor functions. */
  readonly #isFlat: boolean
  readonly #evaluator = new Evaluator({ maxElements: MAX_VALUE_ELEMENTS, maxWork: MAX_VALUE_WORK })
  readonly #context: NodeContext
  /** Of the node that is being inferred. */
  #inputsOfNode: readonly (RewriteValue | undefined)[] = []
  #inputs: ReadonlyMap<string, Known> | undefined
  #whole: ReadonlyMap<Graph, ReadonlyMap<string, Known>> | undefined

  constructor(body: Body, built: Built | undefined) {
    this.#body = body
    const opsets = body.opsetImports
    this.#context = {
      opsetOf: (name) => Number(opsets.get(name) ?? 0),
      scope: (name) => this.#inputsOfNode[Number(name)]?.known,
      inferGraph: () => undefined,
    }
    this.#isFlat = built?.graphs.length === 1 && body.functions.length === 0
  }

  knownOf(value: RewriteValue): Known | undefined {
    if (!this.#follows(value)) return this.#knownInFile(value)
    this.#inferBefore(value.producer!)
    return value.known
  }

  #follows({ source, producer }: RewriteValue): boolean {
    return producer !== undefined && (source === undefined || this.#isFlat)
  }

  /** Infers a node after those before it, from a list: a chain may be longer than calls fit on the stack. */
  #inferBefore(last: RewriteNode): void {
    const waiting = [last]
    const entered = new Set<RewriteNode>()
    for (let node = waiting.at(-1); node; node = waiting.at(-1)) {
      const isReady = entered.has(node)
      entered.add(node)
      const open = isReady ? [] : node.inputs.filter((value) => value && this.#isOpen(value))
      if (open.length === 0) {
        waiting.pop()
        this.#infer(node)
      } else for (const value of open) waiting.push(value!.producer!)
    }
  }

  #isOpen(value: RewriteValue): boolean {
    return !value.isInferred && !value.isInitializer && this.#follows(value)
  }

  #infer(node: RewriteNode): void {
    const outputs = node.outputs.filter((value) => value !== undefined)
    if (outputs.every((value) => value.isInferred)) return
    const found = inferNode(this.#viewOf(node), this.#evaluator)
    for (const [at, value] of node.outputs.entries())
      if (value && !value.isInferred)
        value.noteKnown(hasType(found[at]) ? found[at] : declaredOf(value, found[at]))
  }

  /** Inputs have their positions for names: the message may have other ones. */
  #viewOf(node: RewriteNode): NodeView {
    const { opType, domain } = node
    this.#inputsOfNode = node.inputs
    const inputs = node.inputs.map((value, at) => (value ? nameOf(at) : ''))
    const outputs = node.outputs.map((value, at) => (value ? nameOf(at) : ''))
    return new NodeView(node.source, this.#context, { opType, domain, inputs, outputs })
  }

  #knownInFile({ source, sourceName, isInput }: RewriteValue): Known | undefined {
    if (!source) return undefined
    if (this.#isFlat) {
      if (!isInput) return undefined
      this.#inputs ??= inputsOf(source)
      return this.#inputs.get(sourceName)
    }
    this.#whole ??= this.#inferWhole()
    return this.#whole.get(source)?.get(sourceName)
  }

  #inferWhole(): ReadonlyMap<Graph, ReadonlyMap<string, Known>> {
    const { graph, functions, opsetImports } = this.#body
    // Of an earlier version inference takes initializers that are inputs for constants, but a caller may replace them.
    const irVersion = FIRST_IR_WITH_FREE_INITIALIZERS
    return inferModel({ graph, functions, opsetImports, irVersion }, { isOpen: () => true }).known
  }
}

function inputsOf(graph: Graph): ReadonlyMap<string, Known> {
  const initializers = new Set(graph.initializerNames)
  return new Map(
    graph.inputs.flatMap(({ name, type }) => {
      const initializer = initializers.has(name) ? knownOfInitializer(graph, name)?.type : undefined
      const own = joined(type, initializer ?? NONE).type
      return own.kind === 'none' ? [] : [[name, { type: own }]]
    }),
  )
}

function hasType(known: Known | undefined): boolean {
  return known !== undefined && (known.type.kind !== 'tensor' || known.type.dtype !== 0)
}

/** What the file says where nothing follows from the operator: not the shape, which may be wrong. */
function declaredOf({ source, sourceName }: RewriteValue, found: Known | undefined): Known | undefined {
  if (!source) return found
  const { type } = joined(withoutShape(source.typeOf(sourceName)), found?.type ?? NONE)
  return type.kind === 'none' ? undefined : { ...found, type }
}

/** In the place of the names of inputs and outputs. */
const NAMES = Array.from({ length: 16 }, (_, at) => String(at))
const nameOf = (at: number): string => NAMES[at] ?? String(at)
