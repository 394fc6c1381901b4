/**
 * Applies rules to the nodes of a model until none finds anything to do: a list of nodes to look at, to which each change adds the
 * nodes that it concerns. A node is looked at again only then, so the time follows the number of changes.
 */
import { TileworkError } from '../../../errors.js'
import { Message } from '../../../formats/onnx/protobuf/message.js'
import { FIRST_IR_WITH_FREE_INITIALIZERS, FORMAT_NAME } from '../../../formats/onnx/schema.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { FreshNames } from '../../onnx/document/fresh_names.js'
import { GRAPHS } from '../../onnx/document/graph.js'
import { checkNewNode, ProtoNode, standardDomain } from '../../onnx/document/node.js'
import type { Attribute, NewAttribute } from '../../onnx/document/types.js'
import type { Known } from '../../onnx/infer/node_view.js'
import { type Built, buildGraphs } from './build.js'
import type { Body } from './functions.js'
import { LazyInference } from './lazy_inference.js'
import { type RewriteContext, type RewriteGraph, RewriteNode, RewriteValue } from './rewrite_graph.js'
import { writeBack } from './write_back.js'

/** What takes the place of the outputs of a node: one value, or one for each output that is used. */
export type Replacement = RewriteValue | readonly (RewriteValue | undefined)[]

/** A rule as the rewriter runs it. */
export interface NodeRule {
  readonly name: string
  /** Operators of the nodes that it looks at. */
  readonly operators: 'all' | readonly { readonly opType: string; readonly domain: string }[]
  /** How often in a row it may replace what it made itself. Default: no limit, for rules that are known to end. */
  readonly maxGenerations?: number
  /** @returns undefined where it finds nothing to do */
  apply(node: RewriteNode, maker: NodeMaker): Replacement | undefined
}

/** Makes the nodes and constants of a replacement; they become part of the graph if the replacement does. */
export interface NodeMaker {
  /**
   * A new node.
   *
   * @param attributes - as `Graph.addNode` takes them, or attributes of another node
   * @returns the value of its first output
   */
  make(
    opType: string,
    inputs: readonly (RewriteValue | undefined)[],
    attributes?: Readonly<Record<string, NewAttribute | Attribute>>,
    options?: { readonly domain?: string; readonly outputs?: number },
  ): RewriteValue
  /** A constant: an initializer, or a Constant node where the model has no room for one. */
  constant(tensor: Tensor): RewriteValue
  /** @internal Looks at another node again. */
  revisit(node: RewriteNode): void
  /** @internal Moves the nodes of a subgraph into the graph of the node, with these values for its inputs. */
  inline(graph: RewriteGraph, inputs: readonly RewriteValue[]): readonly RewriteValue[]
}

/** Replacements for each node before rules are taken to have no end. */
const MAX_PER_NODE = 10

/** Nodes that a rule may replace, in a row, from what it made itself. */
export const MAX_GENERATIONS = 8

export class Rewriter implements RewriteContext {
  readonly #body: Body
  readonly #built: Built | undefined
  readonly #isOfModel: boolean
  readonly #opsets: ReadonlyMap<string, number | bigint>
  readonly #inference: LazyInference
  #names: FreshNames | undefined
  /** How often rules applied. */
  #applied = 0
  readonly #queue: RewriteNode[] = []
  /** A maker with which a rule made nothing: most rules find nothing to do. */
  #idle: Maker | undefined

  /** @param isOfModel - false for the body of a function, which has neither initializers nor types of its inputs */
  constructor(body: Body, isOfModel: boolean) {
    this.#body = body
    this.#isOfModel = isOfModel
    this.#opsets = body.opsetImports
    this.#built = buildGraphs(body.graph, this)
    this.#inference = new LazyInference(body, this.#built)
  }

  opsetOf(domain: string): number {
    return Number(this.#opsets.get(domain) ?? 0)
  }

  knownOf(value: RewriteValue): Known | undefined {
    return this.#inference.knownOf(value)
  }

  get names(): FreshNames {
    if (!this.#names) {
      const { graph } = this.#body
      this.#names = new FreshNames({ graphs: () => [graph, ...graph.subgraphs()] })
    }
    return this.#names
  }

  get hasFreeInitializers(): boolean {
    return this.#isOfModel && Number(this.#body.irVersion) >= FIRST_IR_WITH_FREE_INITIALIZERS
  }

  /**
   * Applies rules until none applies. The messages of the model stay as they are until `write`.
   *
   * @param note - is called for each node that a rule replaced
   * @throws TileworkError ERR_LIMIT for rules that have no end
   */
  run(rules: readonly NodeRule[], note: (rule: NodeRule, node: RewriteNode) => void = () => {}): void {
    if (!this.#built) return
    const rulesFor = rulesByOperator(rules)
    const { graphs } = this.#built
    for (const { nodes } of graphs) for (const node of nodes) this.enqueue(node)
    const limit = this.#queue.length * MAX_PER_NODE + 1000
    for (let at = 0; at < this.#queue.length; at++) {
      const node = this.#queue[at]!
      node.isQueued = false
      for (const rule of rulesFor(node)) {
        if (node.isRemoved) break
        if (!this.#apply(rule, node, note)) continue
        this.#applied += 1
        if (this.#applied > limit) throw endless(rule.name)
        if (!node.isRemoved) this.enqueue(node)
        break
      }
    }
  }

  /** Writes what rules changed into the messages of the model. @returns false where nothing changed */
  write(): boolean {
    if (this.#applied > 0) writeBack(this.#built!, this.hasFreeInitializers)
    return this.#applied > 0
  }

  #apply(rule: NodeRule, node: RewriteNode, note: (rule: NodeRule, node: RewriteNode) => void): boolean {
    const maker = this.#idle?.takenFor(node) ?? new Maker(this, node)
    this.#idle = undefined
    const replacement = rule.apply(node, maker)
    if (replacement === undefined) {
      if (maker.isUntouched) this.#idle = maker
      return false
    }
    const base = node.baseName
    const values = replacement instanceof RewriteValue ? [replacement] : replacement
    const pairs = node.outputs.flatMap((output, at) => {
      const value = values[at]
      return output && !output.isUnused ? [{ output, value }] : []
    })
    if (!pairs.every(({ output, value }) => value && this.#mayReplace(output, value, maker))) return false
    if (node.is(['Identity', 'Constant']) && pairs.some(({ output, value }) => keepsName(output, value!)))
      return false
    if (node.generation >= (rule.maxGenerations ?? Number.POSITIVE_INFINITY) && maker.made.length > 0)
      throw endless(rule.name)
    note(rule, node)
    this.#adopt(maker, node)
    for (const { output, value } of pairs) this.#replace(output, value!, node)
    this.#remove(node)
    for (const made of maker.made) this.#dropIfUnused(made)
    this.#name(maker, node, base)
    return true
  }

  /** Whether users of a value may take another one: nothing outside refers to its name, and no graph between hides the other. */
  #mayReplace(output: RewriteValue, value: RewriteValue, { inlined }: Maker): boolean {
    if (output === value || output.isPinned) return false
    // Values of a graph that takes the place of a node get names that no other graph has.
    const isMoved = inlined.some((each) => each.inlined === value.graph)
    if (isMoved || !this.#built!.repeated.has(value.name)) return true
    for (const { graph } of output.users) if (graph !== value.graph) return false
    return true
  }

  #adopt(maker: Maker, root: RewriteNode): void {
    const { graph } = root
    for (const { inlined, inputs } of maker.inlined) {
      this.#moveInto(graph, inlined, root)
      for (const [at, input] of inlined.inputs.entries()) this.#replaceUses(input, inputs[at]!)
    }
    for (const node of maker.made) {
      for (const value of node.inputs) value?.users.add(node)
      place(node, root)
      this.enqueue(node)
    }
    for (const value of maker.constants) graph.constants.add(value)
    graph.isChanged = true
  }

  /** Names for what took over none; a node that is new has that of the one that it is in the place of. */
  #name({ made, constants }: Maker, root: RewriteNode, base: string): void {
    const values = [...made.flatMap(({ outputs }) => outputs), ...constants]
    for (const value of values)
      if (value && value.name === '' && !value.isUnused) value.name = this.names.take(base)
    const { name } = root.source
    if (name === '') return
    const nodes = made.filter(({ isRemoved }) => !isRemoved)
    for (const [at, { source }] of nodes.reverse().entries())
      source.name = at === 0 ? name : this.names.take(name)
  }

  /** Moves the nodes and initializers of a subgraph into the graph around; names that other graphs have, too, are changed. */
  #moveInto(graph: RewriteGraph, inlined: RewriteGraph, root: RewriteNode): void {
    const { repeated } = this.#built!
    const move = (value: RewriteValue): void => {
      value.graph = graph
      value.isOutput = false
      if (repeated.has(value.name)) this.#rename(value, this.names.take(value.name))
    }
    for (const value of inlined.constants) {
      move(value)
      graph.constants.add(value)
    }
    const nodes = [...inlined.present()]
    for (const node of nodes) {
      node.graph = graph
      node.followers = []
      for (const value of node.outputs) if (value) move(value)
      place(node, root)
      this.enqueue(node)
    }
    inlined.isInlined = true
  }

  #rename(value: RewriteValue, name: string): void {
    value.name = name
    if (value.producer) value.producer.isChanged = true
    for (const user of value.users) {
      user.isChanged = true
      user.graph.isChanged = true
    }
  }

  #replace(output: RewriteValue, value: RewriteValue, root: RewriteNode): void {
    this.#replaceUses(output, value)
    if (!output.isOutput) {
      // The name of what is gone is the best one for what is new.
      if (value.name === '') [value.name, output.name] = [output.name, '']
      return
    }
    if (keepsName(output, value)) this.#keepName(output, value, root)
    else this.#takeOver(output, value)
  }

  #replaceUses(output: RewriteValue, value: RewriteValue): void {
    for (const user of output.users) {
      for (const [at, input] of user.inputs.entries()) if (input === output) user.inputs[at] = value
      value.users.add(user)
      user.isChanged = true
      user.graph.isChanged = true
      this.enqueue(user)
      this.#enqueueUsers(user)
    }
    if (value.mayBeKnown && !output.mayBeKnown) noteKnown(value)
    output.users.clear()
  }

  /** The value becomes the output of the graph, and gets its name. */
  #takeOver(output: RewriteValue, value: RewriteValue): void {
    const { graph, name } = output
    graph.outputs = graph.outputs.map((each) => (each === output ? value : each))
    graph.isChanged = true
    output.isOutput = false
    value.isOutput = true
    if (value.name !== '') graph.goneNames.push(value.name)
    output.name = ''
    this.#rename(value, name)
    if (value.producer) this.enqueue(value.producer)
  }

  /** A node that gives the value the name of an output stays. */
  #keepName(output: RewriteValue, value: RewriteValue, root: RewriteNode): void {
    const maker = new Maker(this, root)
    const made = isMadeConstant(value)
      ? maker.make('Constant', [], { value: { type: 'TENSOR', value: value.constant! } as NewAttribute })
      : maker.make('Identity', [value])
    const node = made.producer!
    node.outputs[0] = output
    output.producer = node
    node.isChanged = true
    for (const input of node.inputs) input?.users.add(node)
    place(node, root)
    root.outputs[root.outputs.indexOf(output)] = undefined
  }

  /** Removes a node, and the nodes before it that nothing needs any more. */
  #remove(first: RewriteNode): void {
    const waiting = [first]
    for (let node = waiting.pop(); node; node = waiting.pop()) {
      if (node.isRemoved) continue
      node.isRemoved = true
      node.graph.isChanged = true
      for (const output of node.outputs)
        if (output && output.name !== '') node.graph.goneNames.push(output.name)
      for (const value of usedBy(node)) {
        value.users.delete(node)
        this.#noteLessUsed(value, waiting)
      }
      for (const inner of nodesInside(node)) {
        inner.isRemoved = true
        for (const value of usedBy(inner)) {
          value.users.delete(inner)
          this.#noteLessUsed(value, waiting)
        }
      }
    }
  }

  #noteLessUsed(value: RewriteValue, waiting: RewriteNode[]): void {
    const { producer } = value
    value.hasLostUsers = true
    if (value.isUnused) {
      if (value.isInitializer) value.graph.isChanged = true
      if (producer?.outputs.every((output) => !output || output.isUnused)) waiting.push(producer)
      return
    }
    if (producer) this.enqueue(producer)
    if (value.onlyUser) {
      this.enqueue(value.onlyUser)
      this.#enqueueUsers(value.onlyUser)
    }
  }

  #dropIfUnused(node: RewriteNode): void {
    if (!node.isRemoved && node.outputs.every((output) => !output || output.isUnused)) this.#remove(node)
  }

  enqueue(node: RewriteNode): void {
    if (node.isQueued || node.isRemoved) return
    node.isQueued = true
    this.#queue.push(node)
  }

  #enqueueUsers(node: RewriteNode): void {
    for (const output of node.outputs)
      if (output && output.users.size <= MAX_REVISITED) for (const user of output.users) this.enqueue(user)
  }
}

/** Users of a user that are looked at again: rules that look further than one node away find single users. */
const MAX_REVISITED = 4

/** Users of a value that may be known have outputs that may be, and so on. */
function noteKnown(first: RewriteValue): void {
  const waiting = [first]
  for (let value = waiting.pop(); value; value = waiting.pop()) {
    for (const user of value.users) {
      if (user.mayHaveValues) continue
      user.noteInputs()
      if (user.mayHaveValues) for (const output of user.outputs) if (output) waiting.push(output)
    }
  }
}

function place(node: RewriteNode, root: RewriteNode): void {
  if (root.followers.length === 0) root.followers = [node]
  else (root.followers as RewriteNode[]).push(node)
}

/** Whether a rule made it, so that it has no place in the file yet. */
function isMadeConstant(value: RewriteValue): boolean {
  return value.isInitializer && value.source === undefined
}

/** Whether a value cannot take over the name of an output. */
function keepsName(output: RewriteValue, value: RewriteValue): boolean {
  return (
    output.isOutput &&
    (!value.producer || value.graph !== output.graph || value.isOutput || value.isPinned || value.isInput)
  )
}

function endless(rule: string): TileworkError {
  const message = `The rule ${rule} finds something to do in what it made, again and again.`
  return new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
}

/** What a node makes for a replacement. */
class Maker implements NodeMaker {
  /** In the order in which they were made. */
  readonly made: RewriteNode[] = []
  readonly constants: RewriteValue[] = []
  readonly inlined: { readonly inlined: RewriteGraph; readonly inputs: readonly RewriteValue[] }[] = []
  readonly #rewriter: Rewriter
  #root: RewriteNode

  constructor(rewriter: Rewriter, root: RewriteNode) {
    this.#rewriter = rewriter
    this.#root = root
  }

  get isUntouched(): boolean {
    return this.made.length === 0 && this.constants.length === 0 && this.inlined.length === 0
  }

  takenFor(root: RewriteNode): this {
    this.#root = root
    return this
  }

  /** Rules take these functions out of the object. */
  readonly make: NodeMaker['make'] = (opType, inputs, attributes = {}, { domain, outputs = 1 } = {}) => {
    const root = this.#root
    // In no graph, which would keep an index of names; values have their own, which are written at the end.
    const node = {
      opType,
      inputs: inputs.map((value) => (value ? 'input' : '')),
      outputs: Array.from({ length: outputs }, (_, at) => `${at}`),
      ...(domain !== undefined && { domain }),
    }
    const source = ProtoNode.of(new Message('NodeProto'), GRAPHS)
    source.fill(checkNewNode(source.message, node, GRAPHS))
    for (const [name, attribute] of Object.entries(attributes)) {
      // Copied as it is: also one whose type the file does not say.
      if ('message' in attribute) source.message.adopt('attribute', attribute.message)
      else source.setAttribute(name, attribute)
    }
    const parts = { source, opType, domain: standardDomain(domain ?? ''), subgraphs: source.subgraphs }
    const made = new RewriteNode(this.#rewriter, root.graph, parts, root)
    made.isChanged = true
    made.setInputs([...inputs])
    made.noteInputs()
    made.setOutputs(Array.from({ length: outputs }, () => new RewriteValue(this.#rewriter, root.graph, {})))
    for (const value of made.outputs) value!.producer = made
    this.made.push(made)
    return made.outputs[0]!
  }

  readonly constant: NodeMaker['constant'] = (tensor) => {
    const value = new RewriteValue(this.#rewriter, this.#root.graph, { tensor })
    this.constants.push(value)
    return value
  }

  readonly revisit: NodeMaker['revisit'] = (node) => this.#rewriter.enqueue(node)

  readonly inline: NodeMaker['inline'] = (graph, inputs) => {
    this.inlined.push({ inlined: graph, inputs })
    return graph.outputs.map((value) => {
      const at = graph.inputs.indexOf(value)
      return at < 0 ? value : inputs[at]!
    })
  }
}

function* usedBy(node: RewriteNode): Generator<RewriteValue> {
  for (const value of node.inputs) if (value) yield value
}

/** Nodes of graphs inside a node, which go with it; not those that have moved out. */
function* nodesInside(node: RewriteNode): Generator<RewriteNode> {
  const waiting = [...node.subgraphs]
  for (let graph = waiting.pop(); graph; graph = waiting.pop()) {
    if (graph.isInlined) continue
    for (const inner of graph.present()) {
      for (const each of inner.subgraphs) waiting.push(each)
      yield inner
    }
  }
}

/** Finds the rules for a node, in the order in which they are given. */
function rulesByOperator(rules: readonly NodeRule[]): (node: RewriteNode) => readonly NodeRule[] {
  const found = new Map<string, readonly NodeRule[]>()
  return (node) => {
    const key = node.domain === '' ? node.opType : `${node.domain}:${node.opType}`
    let own = found.get(key)
    if (!own) {
      own = rules.filter(({ operators }) => operators === 'all' || operators.some((each) => isOf(node, each)))
      found.set(key, own)
    }
    return own
  }
}

function isOf(node: RewriteNode, operator: { readonly opType: string; readonly domain: string }): boolean {
  return node.opType === operator.opType && node.domain === operator.domain
}
