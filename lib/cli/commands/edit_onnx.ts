/** Applies the changes of `tilework edit` to an ONNX model in a fixed order, and describes each of them. */

import { type DenseTensor, TileworkError } from '../../index.js'
import { nearestText } from '../../internal.js'
import type { Graph, InputShapeChange, Node, OnnxModel, OptimizePass } from '../../onnx.js'
import {
  channelsLast,
  convertOpset,
  extract,
  narrowInts,
  optimize,
  setBatch,
  setInputShape,
  stripWeights,
} from '../../onnx.js'
import { formatCount } from '../text/byte_count.js'
import { isZeros, zeros } from './edit_changes.js'
import type { EditChoice } from './edit_choice.js'
import { type ConstantFiles, constantNamed } from './edit_constants.js'
import { refuseOptionsOfOthers } from './edit_formats.js'
import { type Constant, checkFits, weightsOf } from './edit_weights.js'

/** Types of shapes, axes and conditions, which zeros would change. */
const STRUCTURAL: ReadonlySet<string> = new Set(['int32', 'int64', 'bool'])

/** Most constants that a line names. */
const MAX_NAMED = 8

/** Applies changes to a model and keeps a description of each. */
export class OnnxChanges {
  readonly made: string[] = []
  /** What may make the model fail although every change was made. */
  readonly notes: string[] = []
  readonly blocked: ReadonlySet<string> = new Set()
  readonly unknown: readonly string[] = []
  #model: OnnxModel
  readonly #files: ConstantFiles

  /** @param files - provides constants of other files */
  constructor(model: OnnxModel, files: ConstantFiles) {
    this.#model = model
    this.#files = files
  }

  /** The changed model; a cut replaces the model object. */
  get model(): OnnxModel {
    return this.#model
  }

  get #graph(): Graph {
    return this.#model.graph
  }

  /** @throws TileworkError as the functions on an `OnnxModel`, and ERR_UNSUPPORTED for options of tmfiles alone */
  async make(choice: EditChoice): Promise<void> {
    refuseOptionsOfOthers(choice, 'onnx')
    for (const { name, dtype, shape } of choice.setType ?? []) {
      this.#graph.setType(name, { kind: 'tensor', dtype, ...(shape && { shape }) })
      this.made.push(
        `type of ${name} is ${dtype} ${shape ? `[${shape.map((extent) => extent ?? '?').join(', ')}]` : 'of any rank'}`,
      )
    }
    this.#cut(choice)
    for (const name of choice.removeNode ?? []) this.#removeNode(name)
    await this.#changeConstants(choice)
    this.#changeShapes(choice)
    for (const { from, to } of choice.rename ?? []) this.#rename(from, to)
    if (choice.mergeConstants) {
      const count = await this.#countOf('deduplicate-initializers')
      this.made.push(`${formatCount(count, 'equal initializer')} removed`)
    }
    if (choice.removeUnused) {
      const nodes = this.#graph.nodes.length
      const count = await this.#countOf('remove-unused')
      const removed = nodes - this.#graph.nodes.length
      this.made.push(
        `${formatCount(removed, 'unused node')} and ${formatCount(count - removed, 'unused initializer')} removed`,
      )
    }
    if (choice.optimize) await this.#optimize(choice.optimize)
    if (choice.channelsLast) await this.#channelsLast()
    if (choice.narrowInts) await this.#narrowInts()
    if (choice.stripWeights) {
      this.made.push(`values of ${formatCount(stripWeights(this.#model), 'initializer')} removed`)
    }
    this.#describeModel(choice)
  }

  #cut({ from = [], to = [], outputs }: EditChoice): void {
    if ((from.length === 0) !== (to.length === 0)) {
      throw new TileworkError('ERR_ARGUMENT', 'A cut needs both --from and --to.')
    }
    // Nodes of branches and bodies count: a cut may be inside them.
    const nodeCount = (): number => Array.from(this.#graph.allNodes()).length
    const before = nodeCount()
    if (to.length > 0) {
      this.#model = extract(this.#model, from, to)
      this.made.push(`cut from ${from.join(', ')} to ${to.join(', ')}: ${nodeCount()} of ${before} nodes`)
      this.#nameUntyped(to)
    }
    if (outputs) {
      const graph = this.#graph
      const inputs = graph.inputs.map(({ name }) => name).filter((name) => !graph.hasInitializer(name))
      this.#model = extract(this.#model, inputs, outputs)
      this.made.push(`outputs are ${outputs.join(', ')}: ${nodeCount()} of ${before} nodes`)
      this.#nameUntyped(outputs)
    }
  }

  /** Reports outputs without a declared type: runtimes infer it, but onnx.checker refuses the model. */
  #nameUntyped(outputs: readonly string[]): void {
    const untyped = outputs.filter((name) => this.#graph.typeOf(name).kind === 'none')
    if (untyped.length === 0) return
    const [verb, them] = untyped.length === 1 ? ['declares no type', 'it'] : ['declare no types', 'them']
    const advice = `declare ${them} with --set-type`
    this.made.push(`${untyped.join(', ')} ${verb}, which onnx.checker refuses: ${advice}`)
  }

  /** Removes a node; its consumers then use its first input that is not a constant. */
  #removeNode(name: string): void {
    const graph = this.#graph
    const node = this.#nodeNamed(name)
    const used = node.outputs.filter(
      (output) => graph.usersOf(output).length > 0 || graph.outputNames.has(output),
    )
    const input = node.inputs.find((each) => each !== '' && !graph.hasInitializer(each))
    const [output] = used
    if (output !== undefined && (input === undefined || used.length > 1)) {
      const reason =
        input === undefined
          ? 'it has no input that can replace its output'
          : 'several of its outputs are used'
      throw new TileworkError('ERR_GRAPH', `The node ${JSON.stringify(name)} cannot be removed: ${reason}.`)
    }
    if (output !== undefined) graph.replaceAllUses(output, input!)
    graph.removeNode(node)
    this.made.push(`removed node ${name}`)
  }

  /** The node with this name, or with an output of this name, because many nodes have no name. */
  #nodeNamed(name: string): Node {
    const { nodes } = this.#graph
    const node = nodes.find((each) => each.name === name) ?? this.#graph.producerOf(name)
    if (node) return node
    const known = nodes.flatMap((each) => [each.name, ...each.outputs])
    throw new TileworkError(
      'ERR_ARGUMENT',
      `The graph has no node ${JSON.stringify(name)}${nearestText(name, new Set(known))}`,
    )
  }

  async #changeConstants({ replaceConstant = [], weights, fillWeights, force }: EditChoice): Promise<void> {
    for (const { name, value } of replaceConstant) {
      const numbers = await this.#files.constant(name, value)
      const old = this.#initializer(name)
      checkFits(old, numbers, value, force)
      this.#replace(old, numbers)
      this.made.push(`constant ${name} is ${numbers.dtype} [${numbers.shape.join(', ')}] of ${value}`)
    }
    if (weights !== undefined) await this.#setWeights(weights, force)
    if (fillWeights !== undefined) await this.#fill(fillWeights)
  }

  async #setWeights(path: string, force: boolean | undefined): Promise<void> {
    const constants = this.#initializers()
    const replacements = weightsOf(await this.#files.open(path), path, constants, force)
    for (const { name, numbers } of replacements) this.#replace(constants.get(name)!, numbers)
    const others = formatCount(constants.size - replacements.length, 'other')
    this.made.push(`${formatCount(replacements.length, 'initializer')} of ${path}; ${others} unchanged`)
  }

  /** Replaces an initializer. Which dtypes its consumers accept is not in the model, so a change of dtype is only noted. */
  #replace({ name, dtype }: Constant, numbers: DenseTensor): void {
    this.#graph.setInitializer(name, numbers)
    if (numbers.dtype === dtype) return
    this.notes.push(`${name} was ${dtype}: its consumers may refuse ${numbers.dtype}.`)
  }

  async #fill(from: string): Promise<void> {
    const file = isZeros(from) ? undefined : await this.#files.open(from)
    const empty = [...this.#graph.initializers()].filter(({ kind, hasData }) => kind === 'dense' && !hasData)
    const left: string[] = []
    for (const { name, dtype, shape } of empty) {
      if (!file && STRUCTURAL.has(dtype)) {
        left.push(name)
        continue
      }
      const numbers = file ? constantNamed(file, name, from) : zeros(dtype, shape)
      checkFits({ name, dtype, shape }, numbers, from)
      this.#graph.setInitializer(name, numbers)
    }
    this.made.push(`${formatCount(empty.length - left.length, 'initializer')} filled from ${from}`)
    for (const name of left) this.made.push(`initializer ${name} describes a shape and was not filled`)
  }

  /** All inputs at once: they may share a batch. */
  #changeShapes({ setInput = [], setBatch: batches, allowPartial = false }: EditChoice): void {
    const options = { allowPartial }
    if (setInput.length > 0) {
      const shapes = Object.fromEntries(setInput.map(({ name, shape }) => [name, shape]))
      for (const [name, shape] of Object.entries(shapes))
        this.made.push(`input ${name} is [${shape.map((dim) => dim ?? '?').join(', ')}]`)
      this.#note(setInputShape(this.#model, shapes, options))
    }
    if (!batches) return
    const [batch] = batches
    this.made.push(`batch is ${batch ?? 'unknown'}`)
    this.#note(setBatch(this.#model, batch, options))
  }

  #note({ reshaped, blocked, unknown }: InputShapeChange): void {
    for (const node of reshaped) this.made.push(`${node.opType} ${titleOf(node)} follows the batch`)
    for (const node of blocked) this.notes.push(`${node.opType} ${titleOf(node)} does not fit the new shape.`)
    if (unknown.length > 0) this.made.push(`shapes that follow when the model runs: ${unknown.join(', ')}`)
  }

  #initializer(name: string): DenseTensor {
    const tensor = this.#graph.initializer(name)
    if (tensor?.kind === 'dense') return tensor
    const what = tensor ? `is a ${tensor.kind} tensor` : 'is not an initializer of the graph'
    const advice = tensor ? '.' : nearestText(name, this.#graph.initializerNames)
    throw new TileworkError('ERR_ARGUMENT', `${JSON.stringify(name)} ${what}${advice}`)
  }

  #initializers(): Map<string, Constant> {
    const dense = [...this.#graph.initializers()].filter(({ kind }) => kind === 'dense')
    return new Map(dense.map(({ name, dtype, shape }) => [name, { name, dtype, shape }]))
  }

  #rename(from: string, to: string): void {
    const graph = this.#graph
    const value = graph.value(from)
    const nodes = graph.nodes.filter(({ name }) => name === from)
    if (!value && nodes.length === 0) {
      const known = [...graph.values().map(({ name }) => name), ...graph.nodes.map(({ name }) => name)]
      throw new TileworkError(
        'ERR_GRAPH',
        `No value or node has the name ${JSON.stringify(from)}${nearestText(from, new Set(known))}`,
      )
    }
    if (nodes.length > 0 && graph.nodes.some(({ name }) => name === to)) {
      throw new TileworkError('ERR_GRAPH', `The name ${JSON.stringify(to)} is taken by another node.`)
    }
    const uses = value ? value.uses.length + 1 : 0
    if (value) graph.rename(from, to)
    for (const node of nodes) node.name = to
    this.made.push(`renamed ${from} to ${to} in ${formatCount(uses + nodes.length, 'reference')}`)
  }

  async #countOf(pass: OptimizePass): Promise<number> {
    const [change] = await optimize(this.#model, { only: [pass] })
    return change!.changes
  }

  async #optimize(passes: readonly OptimizePass[] | true): Promise<void> {
    const changes = await optimize(this.#model, passes === true ? {} : { only: passes })
    for (const { pass, changes: count } of changes)
      if (count > 0) this.made.push(`${pass}: ${formatCount(count, 'change')}`)
    if (changes.every(({ changes: count }) => count === 0)) this.made.push('optimize: nothing to do')
  }

  async #channelsLast(): Promise<void> {
    const { inputs, outputs, transposes } = await channelsLast(this.#model)
    const names = (ends: readonly string[]): string => (ends.length === 0 ? 'none' : ends.join(', '))
    this.made.push(`channels last: inputs ${names(inputs)}; outputs ${names(outputs)}`)
    this.made.push(`Transposes: ${transposes.before} before, ${transposes.after} stay`)
  }

  async #narrowInts(): Promise<void> {
    const { narrowed, stays } = await narrowInts(this.#model)
    this.made.push(`${formatCount(narrowed.length, 'int64 value')} stored as int32`)
    const byReason = new Map<string, string[]>()
    for (const { name, reason } of stays) {
      const names = byReason.get(reason)
      if (names) names.push(name)
      else byReason.set(reason, [name])
    }
    for (const [reason, names] of byReason) {
      const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ''
      this.made.push(`int64 stays, because ${reason}: ${names.slice(0, MAX_NAMED).join(', ')}${more}`)
    }
  }

  #describeModel({ metadata = [], opset = [] }: EditChoice): void {
    for (const { name, value } of metadata) {
      this.#model.setMetadata(name, value)
      this.made.push(`metadata ${name} is ${value}`)
    }
    for (const { name, value } of opset) {
      if (name === '') this.#convertOpset(value)
      else {
        this.#model.setOpsetImport(name, value)
        this.made.push(`opset ${name} has version ${value}`)
      }
    }
  }

  #convertOpset(version: number): void {
    const { from, adapted } = convertOpset(this.#model, version)
    const nodes = formatCount(adapted.length, 'node')
    this.made.push(`opset ${from} converted to ${version}: ${nodes} rewritten`)
  }
}

/** The name of a node, or of its first output, because many nodes have no name. */
function titleOf({ name, outputs }: Node): string {
  return name === '' ? (outputs[0] ?? '') : name
}
