/**
 * The editable model. Its objects refer to each other directly; indices are assigned when the model is written. Each
 * method delegates to an edit function on the graph.
 */
import { inspect } from 'node:util'
import { isInstance } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { MODEL_FORMAT } from '../../../formats/model_brand.js'
import type {
  TensorLinks,
  TmfileGraph,
  TmfileModelFields,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { uncloneable } from '../../../uncloneable.js'
import { valueText } from '../../../value_text.js'
import { createNode, type TmfileNodeDescription } from '../edit/create_node.js'
import {
  addConstant,
  castWeights,
  fillWeights,
  mergeConstants,
  nodesOfMixedTypes,
  replaceConstant,
  stripWeights,
} from '../edit/edit_constants.js'
import {
  cut,
  insertNode,
  removeNode,
  removeUnused,
  replaceAllUses,
  replaceNode,
  setOutputs,
} from '../edit/edit_graph.js'
import { rename, stripNames } from '../edit/edit_names.js'
import { type ShapeChange, setBatch, setInputShape } from '../edit/edit_shapes.js'
import {
  dequantizeConstant,
  quantizeConstant,
  type TmfileQuantizedDtype,
  type TmfileQuantizeOptions,
} from '../edit/quantize.js'
import { linksOf } from './lookup.js'

const UNCLONEABLE = uncloneable('a tmfile model; send the bytes of serialize() instead')

export class TmfileModel implements TmfileModelFields {
  /** @internal The first own property, so that its text is what a failed clone reports. */
  readonly uncloneable = UNCLONEABLE
  readonly kind = 'tmfile'
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number] = [2, 0, 0]
  /** The framework that the model was converted from, by number; informative only. */
  originalFormat = 0
  subFormat = 0
  name: string | null = null
  graph: TmfileGraph

  constructor(graph: Partial<TmfileGraph> = {}) {
    this.graph = { ...emptyGraph(), ...graph }
  }

  get [MODEL_FORMAT](): 'tmfile' {
    return 'tmfile'
  }

  /** @internal */
  [inspect.custom](): string {
    const { nodes, tensors } = this.graph
    const name = this.name ? `${inspect(this.name)} ` : ''
    return `TmfileModel ${name}(${nodes.length} nodes, ${tensors.length} tensors)`
  }

  /** Producer and consumers of every tensor, in the current state of the graph. */
  links(): Map<TmfileTensor, TensorLinks> {
    return linksOf(this.graph)
  }

  /**
   * Renames every tensor and node with a name. Returns their number.
   * Errors: ERR_ARGUMENT for an invalid name; ERR_GRAPH where nothing has the old name, or the new name is taken.
   */
  rename(from: string, to: string): number {
    return rename(this.graph, from, to)
  }

  /** Removes the names of all tensors and nodes. The reference runs such a model, and aborts when it saves it. */
  stripNames(): void {
    stripNames(this.graph)
  }

  /**
   * Sets the shape of an input, and the shapes that follow where the rule of the operator is known; the others become unknown
   * until the runtime infers them. Where only the batch size changes, dependent shapes and Reshape targets that contain the batch
   * size change with it.
   * Errors: ERR_ARGUMENT, also for a different rank; ERR_RANK; ERR_GRAPH for a tensor that is not an input.
   */
  setInputShape(input: TmfileTensor | string, shape: readonly number[]): ShapeChange {
    return setInputShape(this.graph, input, shape)
  }

  /** Sets the first dimension of every input. Errors: as `setInputShape`. */
  setBatch(batch: number): ShapeChange {
    return setBatch(this.graph, batch)
  }

  /**
   * Removes a node. Its consumers take its first non-constant input instead, and constants that become unused are removed
   * too. Errors: ERR_ARGUMENT; ERR_GRAPH where no input can replace a used output.
   */
  removeNode(node: TmfileNode | string): void {
    removeNode(this.graph, node)
  }

  /**
   * A new node for `insertNode` and `replaceNode`, from its operator, tensor names, and the parameters that differ from
   * their defaults. Errors: ERR_ARGUMENT.
   */
  createNode(description: TmfileNodeDescription): TmfileNode {
    return createNode(this.graph, description)
  }

  /** Adds a constant and its Const node. Errors: ERR_GRAPH for a name that is taken; otherwise as `replaceConstant`. */
  addConstant(name: string, data: DenseTensor, quantization?: TmfileQuantization | null): TmfileTensor {
    return addConstant(this.graph, name, data, quantization)
  }

  /**
   * Makes every consumer of `from`, except the producer of `to`, take `to`. Where the producer of `from` is a graph output,
   * the producer of `to` replaces it. Errors: ERR_ARGUMENT; ERR_GRAPH where a consumer runs before `to` is produced.
   */
  replaceAllUses(from: TmfileTensor | string, to: TmfileTensor | string): void {
    replaceAllUses(this.graph, from, to)
  }

  /** Inserts a node and its tensors at `index`, by default after the producers of its inputs. Errors: ERR_GRAPH. */
  insertNode(node: TmfileNode, index?: number): void {
    insertNode(this.graph, node, index)
  }

  /** Replaces a node by another. Errors: ERR_ARGUMENT; ERR_GRAPH where the new node does not produce a used output. */
  replaceNode(old: TmfileNode | string, node: TmfileNode): void {
    replaceNode(this.graph, old, node)
  }

  /**
   * Makes the producers of these tensors the graph outputs. The runtime reuses the memory of an output that a node reads, so nodes
   * behind the outputs are removed, and an output that another one needs is copied: the copy takes over its name.
   * Errors: ERR_ARGUMENT, ERR_GRAPH.
   */
  setOutputs(tensors: readonly (TmfileTensor | string)[]): void {
    setOutputs(this.graph, tensors)
  }

  /**
   * Keeps only the nodes between the given inputs and outputs; without inputs, what leads to the outputs. An output that another one
   * needs is copied. Errors: ERR_ARGUMENT, ERR_GRAPH.
   */
  cut(inputs: readonly (TmfileTensor | string)[], outputs: readonly (TmfileTensor | string)[]): void {
    cut(this.graph, inputs, outputs)
  }

  /** Removes nodes that no output depends on, and tensors and buffers without a user. */
  removeUnused(): void {
    removeUnused(this.graph)
  }

  /**
   * Replaces the data of a constant, and its dtype and shape. `quantization` defaults to the parameters of `data`.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_UNSUPPORTED, ERR_RANK, ERR_NO_DATA.
   */
  replaceConstant(
    tensor: TmfileTensor | string,
    data: DenseTensor,
    quantization?: TmfileQuantization | null,
  ): void {
    replaceConstant(this.graph, tensor, data, quantization)
  }

  /** Removes the data of all constants and keeps their sizes. */
  stripWeights(): void {
    stripWeights(this.graph)
  }

  /** Gives data to constants without any; null leaves one as it is. Errors: ERR_ARGUMENT for another dtype or shape. */
  fillWeights(dataFor: (tensor: TmfileTensor) => DenseTensor | null): void {
    fillWeights(this.graph, dataFor)
  }

  /**
   * Casts every constant of the other float type, when the file is written, and gives activations that type: the runtime wants one type
   * for the whole model. In quantized parts halves stay. Builds of the runtime for x86 CPUs run no float16.
   * Returns the number of constants.
   */
  castWeights(dtype: 'float32' | 'float16'): number {
    return castWeights(this.graph, dtype)
  }

  /**
   * Nodes with a constant of another type than their data has, as after `quantize` of some constants: the runtime crashes on most of
   * them. Empty for a model that has one type, or that is quantized as a whole.
   */
  nodesOfMixedTypes(): readonly TmfileNode[] {
    return nodesOfMixedTypes(this.graph)
  }

  /**
   * The real values of a quantized constant, `(stored - zero point) * scale`, as a lazy float32 tensor. With one scale per
   * channel, a channel is a contiguous run of stored values.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  async dequantize(constant: TmfileTensor | string): Promise<DenseTensor> {
    return dequantizeConstant(this.graph, constant)
  }

  /**
   * Quantizes a constant to int8 (symmetric, one scale per channel), uint8 (one scale and zero point) or int32 (given
   * scales). Sets its quantization parameters and returns them.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_DTYPE, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  quantize(
    constant: TmfileTensor | string,
    dtype: TmfileQuantizedDtype,
    options: TmfileQuantizeOptions = {},
  ): Promise<TmfileQuantization> {
    return quantizeConstant(this.graph, constant, dtype, options)
  }

  /** Makes constants with equal bytes share one buffer. Returns the bytes saved. Errors: ERR_GRAPH for NHWC models. */
  mergeConstants(): Promise<number> {
    return mergeConstants(this.graph)
  }
}

function emptyGraph(): TmfileGraph {
  return {
    id: 0,
    name: null,
    graphLayout: 0,
    modelLayout: 0,
    nodes: [],
    tensors: [],
    buffers: [],
    inputs: [],
    outputs: [],
    devices: null,
  }
}

/** @throws TileworkError ERR_ARGUMENT unless `model` is a TmfileModel */
export function checkModel(model: TmfileModel, caller: string): void {
  if (isInstance(model, TmfileModel)) return
  throw new TileworkError('ERR_ARGUMENT', `${caller} takes a TmfileModel; ${valueText(model)} was given.`)
}
