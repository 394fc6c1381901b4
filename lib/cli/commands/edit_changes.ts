/** Applies the changes of `tilework edit` in a fixed order, and describes each of them. */
import {
  asTensor,
  type DenseTensor,
  DTYPES,
  type Dtype,
  lazyTensor,
  TileworkError,
  tensor,
} from '../../index.js'
import * as tmfile from '../../tmfile.js'
import {
  NODE_FIELDS,
  type ShapeChange,
  type TmfileModel,
  type TmfileNode,
  type TmfileNodeDescription,
  type TmfileQuantizedDtype,
  type TmfileQuantizeOptions,
  type TmfileTensor,
} from '../../tmfile.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { checkFields, type JsonObject, objectOf } from './edit_arguments.js'
import type { EditChoice } from './edit_choice.js'
import { type ConstantFiles, constantNamed } from './edit_constants.js'
import { refuseOptionsOfOthers } from './edit_formats.js'
import { type Constant, checkFits, weightsOf } from './edit_weights.js'

/** The argument of `--fill-weights` that is not a path. */
const ZEROS = 'zeros'

export const isZeros = (source: string): boolean => source === ZEROS

/** The JSON fields of a node, by flag. */
const NODE_FLAGS = {
  '--insert-node': [...NODE_FIELDS, 'constants', 'replaces'],
  '--replace-node': [...NODE_FIELDS, 'constants'],
} as const satisfies Readonly<Record<string, readonly string[]>>

type NodeFlag = keyof typeof NODE_FLAGS

const NO_SHAPES: ShapeChange = { reshaped: [], blocked: [], unknown: [] }

/** Applies changes to a model and keeps a description of each. */
export class ModelChanges {
  readonly made: string[] = []
  /** Reasons why the model fails although every change was made. */
  readonly notes: string[] = []
  /** Names of Reshape nodes that may not fit the new shapes. */
  readonly blocked = new Set<string>()
  /** Tensors whose shapes are not known before the runtime infers them. */
  readonly #unknown = new Set<TmfileTensor>()
  readonly #model: TmfileModel
  readonly #files: ConstantFiles

  /** @param files - provides constants from other files */
  constructor(model: TmfileModel, files: ConstantFiles) {
    this.#model = model
    this.#files = files
  }

  get model(): TmfileModel {
    return this.#model
  }

  /** @throws TileworkError as the methods of `TmfileModel`, and ERR_ARGUMENT for wrong JSON fields */
  async make(choice: EditChoice): Promise<void> {
    refuseOptionsOfOthers(choice, 'tmfile')
    this.#cut(choice)
    await this.#changeNodes(choice)
    await this.#changeConstants(choice)
    this.#changeShapes(choice)
    for (const { from, to } of choice.rename ?? []) {
      this.#note(
        `renamed ${from} to ${to} in ${formatCount(tmfile.rename(this.#model, from, to), 'reference')}`,
      )
    }
    if (choice.castWeights) {
      const count = tmfile.castWeights(this.#model, choice.castWeights)
      this.#note(`${formatCount(count, 'constant')} cast to ${choice.castWeights}`)
    }
    if (choice.mergeConstants) {
      this.#note(`constants share ${formatBytes(await tmfile.mergeConstants(this.#model))}`)
    }
    this.#strip(choice)
    if (choice.castWeights === 'float16') {
      this.notes.push('Builds of Tengine for x86 CPUs do not run float16 models.')
    }
    this.#noteMixedTypes()
  }

  /** The runtime assumes one dtype for the model. */
  #noteMixedTypes(): void {
    const mixed = tmfile.nodesOfMixedTypes(this.#model)
    if (mixed.length === 0) return
    const nodes = formatCount(mixed.length, 'node')
    this.notes.push(
      `${nodes} with constants of another dtype than their data, first ${JSON.stringify(mixed[0]!.name)}: Tengine crashes on most of them, because it assumes one dtype for the model.`,
    )
  }

  #cut({ from = [], to = [], outputs }: EditChoice): void {
    if (from.length > 0 && to.length === 0) {
      throw new TileworkError('ERR_ARGUMENT', 'A cut with --from needs --to.')
    }
    const before = this.#model.graph.nodes.length
    if (to.length > 0) {
      tmfile.cut(this.#model, from, to)
      const after = this.#model.graph.nodes.length
      const start = from.length > 0 ? `from ${from.join(', ')} ` : ''
      this.#note(`cut ${start}to ${to.join(', ')}: ${after} of ${before} nodes`)
    }
    if (outputs) {
      tmfile.setOutputs(this.#model, outputs)
      this.#note(`outputs are ${outputs.join(', ')}`)
    }
  }

  async #changeNodes({ removeNode = [], replaceNode = [], insertNode = [] }: EditChoice): Promise<void> {
    for (const name of removeNode) {
      tmfile.removeNode(this.#model, name)
      this.#note(`removed node ${name}`)
    }
    for (const { name, value } of replaceNode) {
      const old = this.#model.graph.nodes.find((node) => node.name === name)
      const known = old && { name, inputs: old.inputs, outputs: old.outputs }
      const { node } = await this.#describe({ ...known, ...value }, '--replace-node')
      tmfile.replaceNode(this.#model, name, node)
      this.#note(`replaced node ${name} by ${node.operator}`)
    }
    for (const description of insertNode) await this.#insert(description)
  }

  async #insert(description: JsonObject): Promise<void> {
    const { node, replaces } = await this.#describe(description, '--insert-node')
    tmfile.insertNode(this.#model, node)
    if (replaces !== undefined) tmfile.replaceAllUses(this.#model, replaces, node.outputs[0]!)
    const target = replaces === undefined ? '' : `, which replaces ${replaces} as input of other nodes`
    this.#note(`inserted node ${node.name} (${node.operator})${target}`)
  }

  /** Creates the node that the JSON describes, and adds its constants to the graph. */
  async #describe(
    given: JsonObject,
    flag: NodeFlag,
  ): Promise<{ readonly node: TmfileNode; readonly replaces?: string }> {
    checkFields(given, `the node of ${flag}`, NODE_FLAGS[flag])
    const { constants = {}, replaces, ...description } = given
    const objectAt = (value: unknown, path: string) =>
      objectOf(value, `${flag}: ${path} must be a JSON object.`)
    for (const [name, values] of Object.entries(objectAt(constants, 'constants'))) {
      const numbers = await this.#constant(name, objectAt(values, `constants.${name}`))
      tmfile.addConstant(this.#model, name, numbers)
    }
    const node = tmfile.createNode(this.#model, description as unknown as TmfileNodeDescription)
    if (replaces === undefined) return { node }
    if (typeof replaces === 'string') return { node, replaces }
    throw new TileworkError('ERR_ARGUMENT', `${flag}: "replaces" must be the name of a tensor.`)
  }

  async #constant(name: string, given: JsonObject): Promise<DenseTensor> {
    checkFields(given, `constant ${name}`, ['file', 'values', 'dtype', 'shape'])
    const { file, values, ...about } = given
    if (typeof file === 'string' && Object.keys(about).length === 0 && values === undefined) {
      return this.#files.constant(name, file)
    }
    if (file === undefined)
      return tensor(values as never, { dtype: 'float32', ...about, name }) as DenseTensor
    const message = `Constant ${name} must have "file", or "values" with "dtype" and "shape".`
    throw new TileworkError('ERR_ARGUMENT', message)
  }

  async #changeConstants(choice: EditChoice): Promise<void> {
    for (const { name, value } of choice.replaceConstant ?? []) {
      const numbers = await this.#files.constant(name, value)
      const old = this.#model.graph.tensors.find((each) => each.name === name)
      if (old) checkFits({ ...old, name }, numbers, value, choice.force)
      tmfile.replaceConstant(this.#model, name, numbers)
      this.#note(`constant ${name} is ${numbers.dtype} [${numbers.shape.join(', ')}] of ${value}`)
    }
    if (choice.weights !== undefined) await this.#setWeights(choice.weights, choice.force)
    if (choice.fillWeights !== undefined) await this.#fill(choice.fillWeights)
    for (const name of choice.dequantize ?? []) {
      tmfile.replaceConstant(this.#model, name, await tmfile.dequantizeConstant(this.#model, name))
      this.#note(`constant ${name} is float32`)
    }
    for (const { name, value } of choice.quantize ?? []) {
      checkFields(value, `--quantize ${name}`, ['dtype', 'perChannel', 'scales', 'zeroPoints'])
      const { dtype, ...options } = value
      const parameters = await tmfile.quantizeConstant(
        this.#model,
        name,
        dtype as TmfileQuantizedDtype,
        options as TmfileQuantizeOptions,
      )
      this.#note(`constant ${name} is ${dtype} with ${formatCount(parameters.scales.length, 'scale')}`)
    }
  }

  async #setWeights(path: string, force: boolean | undefined): Promise<void> {
    const constants = new Map<string, TmfileTensor & Constant>()
    for (const each of this.#model.graph.tensors) {
      if (each.role === 'constant' && each.name !== null)
        constants.set(each.name, { ...each, name: each.name })
    }
    const replacements = weightsOf(await this.#files.open(path), path, constants, force)
    for (const { name, numbers } of replacements) {
      const { dtype, quantization } = constants.get(name)!
      // Quantized values from a file format without scales keep the scales of the constant.
      const isSame = numbers.dtype === dtype && numbers.quantization === undefined
      tmfile.replaceConstant(this.#model, name, numbers, isSame ? quantization : undefined)
    }
    const others = formatCount(constants.size - replacements.length, 'other')
    this.#note(`${formatCount(replacements.length, 'constant')} of ${path}; ${others} unchanged`)
  }

  async #fill(from: string): Promise<void> {
    const file = from === ZEROS ? undefined : await this.#files.open(from)
    const links = this.#model.links()
    const left: string[] = []
    let filled = 0
    tmfile.fillWeights(this.#model, (constant) => {
      const { name, dtype, shape } = constant
      if (!file && isAboutShapes(constant, links.get(constant)?.consumers ?? [])) {
        left.push(name ?? '-')
        return null
      }
      filled += 1
      if (file) return constantNamed(file, name, from)
      return zeros(dtype, shape!)
    })
    this.#note(`${formatCount(filled, 'constant')} filled from ${from}`)
    for (const name of left) this.made.push(`constant ${name} describes a shape and was not filled`)
  }

  #changeShapes({ setInput = [], setBatch: batches }: EditChoice): void {
    for (const { name, shape } of setInput) {
      this.#note(
        `input ${name} is [${shape.join(', ')}]`,
        tmfile.setInputShape(this.#model, name, shape as readonly number[]),
      )
    }
    if (!batches) return
    const [batch] = batches
    if (typeof batch !== 'number')
      throw new TileworkError(
        'ERR_ARGUMENT',
        `--set-batch of a tmfile is "${batch ?? '?'}"; it must be a number.`,
      )
    this.#note(`batch is ${batch}`, tmfile.setBatch(this.#model, batch))
  }

  #strip({ removeUnused, stripWeights, stripNames }: EditChoice): void {
    if (removeUnused) {
      const before = this.#model.graph.nodes.length
      tmfile.removeUnused(this.#model)
      this.#note(`${before - this.#model.graph.nodes.length} unused nodes removed`)
    }
    if (stripWeights) {
      tmfile.stripWeights(this.#model)
      this.#note('values of all constants removed')
    }
    if (stripNames) {
      tmfile.stripNames(this.#model)
      this.#note('all names removed')
    }
  }

  /** Names of tensors whose shapes are not known before the runtime infers them. */
  get unknown(): string[] {
    return [...this.#unknown].filter(({ shape }) => shape === null).map(({ name }) => name ?? '-')
  }

  #note(change: string, { reshaped, blocked, unknown }: ShapeChange = NO_SHAPES): void {
    this.made.push(change)
    for (const { name } of reshaped) this.made.push(`Reshape ${name ?? '-'} follows`)
    for (const node of blocked) {
      if (node.operator === 'Reshape') this.blocked.add(node.name ?? '-')
      else this.notes.push(misfitText(node))
    }
    for (const tensor of unknown) this.#unknown.add(tensor)
  }
}

function misfitText({ name, operator, inputs: [input, weights] }: TmfileNode): string {
  return `${operator} ${name ?? '-'} gets the input [${input?.shape?.join(', ')}], which does not fit its weights [${weights?.shape?.join(', ')}]: it fails with this input shape.`
}

/** Operators whose third input is a bias, which is int32 where the weights are quantized. */
const BIASED: ReadonlySet<string> = new Set(['Convolution', 'Deconvolution', 'FullyConnected'])
const BIAS_INPUT = 2

/** Integer constants other than biases are dimensions, axes and indices, which must not be replaced by zeros. */
function isAboutShapes(constant: TmfileTensor, consumers: readonly TmfileNode[]): boolean {
  if (constant.dtype !== 'int32' && constant.dtype !== 'int16') return false
  return !consumers.some(({ operator, inputs }) => BIASED.has(operator) && inputs[BIAS_INPUT] === constant)
}

/** Lazy, because a small file may describe constants that do not fit into memory together (CWE-770). */
export function zeros(dtype: Dtype, shape: readonly number[]): DenseTensor {
  const size = shape.reduce((product, extent) => product * extent, 1)
  const byteLength = Math.ceil((size * DTYPES[dtype].bits) / 8)
  const load = () => asTensor(new Uint8Array(byteLength), { dtype, shape })
  return lazyTensor(load, { dtype, shape, keep: false })
}
