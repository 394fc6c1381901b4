/**
 * A model as objects that may be changed: nodes hold their tensors and tensors their buffers, so nothing has a number
 * that an edit would have to renumber. Numbers are made when the model is written.
 */
import type { DenseTensor } from '../../../tensor/tensor.js'
import { MODEL_FORMAT } from '../../model_brand.js'
import { createNode, type TmfileNodeDescription } from './create_node.js'
import {
  addConstant,
  castWeights,
  fillWeights,
  mergeConstants,
  replaceConstant,
  stripWeights,
} from './edit_constants.js'
import {
  cut,
  insertNode,
  removeNode,
  removeUnused,
  replaceAllUses,
  replaceNode,
  setOutputs,
} from './edit_graph.js'
import { rename, stripNames } from './edit_names.js'
import { type ShapeChange, setBatch, setInputShape } from './edit_shapes.js'
import { linksOf } from './lookup.js'
import {
  dequantizeConstant,
  quantizeConstant,
  type TmfileCodes,
  type TmfileQuantizeOptions,
} from './quantize.js'
import type {
  TensorLinks,
  TmfileGraph,
  TmfileModelFields,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from './types.js'

export class TmfileModel implements TmfileModelFields {
  readonly kind = 'tmfile'
  /** Main, sub and compile version of the file; the main version is 2. */
  version: readonly [number, number, number] = [2, 0, 0]
  /** The framework that the model came from, by number; informative only. */
  originalFormat = 0
  subFormat = 0
  name: string | null = null
  graph: TmfileGraph

  get [MODEL_FORMAT](): 'tmfile' {
    return 'tmfile'
  }

  constructor(graph: Partial<TmfileGraph> = {}) {
    this.graph = { ...emptyGraph(), ...graph }
  }

  /** Producer and consumers of every tensor, as the graph is now. */
  links(): Map<TmfileTensor, TensorLinks> {
    return linksOf(this.graph)
  }

  /**
   * Renames every tensor and node of a name. Returns how many there were.
   * Errors: ERR_ARGUMENT for an empty name; ERR_GRAPH where nothing has the old one, or another one of its kind the new one.
   */
  rename(from: string, to: string): number {
    return rename(this.graph, from, to)
  }

  /** Leaves all names of tensors and nodes away. The reference runs such a model and aborts when it is to save it. */
  stripNames(): void {
    stripNames(this.graph)
  }

  /**
   * Sets the shape of an input. Shapes that depend on it become unknown until the runtime infers them; where only the
   * batch is another, they follow it, and so do Reshape nodes that have it written down.
   * Errors: ERR_ARGUMENT, also for another number of axes; ERR_RANK, ERR_GRAPH for a tensor that is no input.
   */
  setInputShape(input: TmfileTensor | string, shape: readonly number[]): ShapeChange {
    return setInputShape(this.graph, input, shape)
  }

  /** Sets the first extent of every input. Errors: as `setInputShape`. */
  setBatch(batch: number): ShapeChange {
    return setBatch(this.graph, batch)
  }

  /**
   * Takes a node out; its consumers get its first input that is no constant. Constants that nobody takes any more go
   * with it. Errors: ERR_ARGUMENT, ERR_GRAPH where nothing can take its place.
   */
  removeNode(node: TmfileNode | string): void {
    removeNode(this.graph, node)
  }

  /**
   * A node for `insertNode` and `replaceNode`: its operator, names of tensors, and the parameters that differ from their
   * defaults. Errors: ERR_ARGUMENT.
   */
  createNode(description: TmfileNodeDescription): TmfileNode {
    return createNode(this.graph, description)
  }

  /**
   * Adds a constant and the node that gives it to others. Errors: ERR_GRAPH for a name that a tensor or a node has; as
   * `replaceConstant`.
   */
  addConstant(name: string, numbers: DenseTensor, quantization?: TmfileQuantization | null): TmfileTensor {
    return addConstant(this.graph, name, numbers, quantization)
  }

  /**
   * Lets every node but the maker of `to` take it in place of `from`, as an output of the graph too.
   * Errors: ERR_ARGUMENT, ERR_GRAPH where a node would run before its input is made.
   */
  replaceAllUses(from: TmfileTensor | string, to: TmfileTensor | string): void {
    replaceAllUses(this.graph, from, to)
  }

  /** Puts a node at `index`, behind the makers of its inputs by default, with its tensors. Errors: ERR_GRAPH. */
  insertNode(node: TmfileNode, index?: number): void {
    insertNode(this.graph, node, index)
  }

  /** Puts a node in the place of another one. Errors: ERR_ARGUMENT, ERR_GRAPH where an output is lost that is needed. */
  replaceNode(old: TmfileNode | string, node: TmfileNode): void {
    replaceNode(this.graph, old, node)
  }

  /** Makes the nodes that make these tensors the outputs. Errors: ERR_ARGUMENT, ERR_GRAPH. */
  setOutputs(tensors: readonly (TmfileTensor | string)[]): void {
    setOutputs(this.graph, tensors)
  }

  /** Keeps what leads from some tensors to others. Errors: ERR_ARGUMENT, ERR_GRAPH. */
  cut(inputs: readonly (TmfileTensor | string)[], outputs: readonly (TmfileTensor | string)[]): void {
    cut(this.graph, inputs, outputs)
  }

  /** Removes nodes that no output needs, and tensors and buffers that no node has. */
  removeUnused(): void {
    removeUnused(this.graph)
  }

  /**
   * Gives a constant other numbers with their type and shape, and these quantization parameters, or those that the numbers
   * bring.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_UNSUPPORTED, ERR_RANK, ERR_NO_DATA.
   */
  replaceConstant(
    tensor: TmfileTensor | string,
    numbers: DenseTensor,
    quantization?: TmfileQuantization | null,
  ): void {
    replaceConstant(this.graph, tensor, numbers, quantization)
  }

  /** Leaves the numbers of all constants away and keeps their sizes. */
  stripWeights(): void {
    stripWeights(this.graph)
  }

  /** Gives numbers to constants that have none; null leaves one as it is. Errors: ERR_ARGUMENT for another type or shape. */
  fillWeights(numbersFor: (tensor: TmfileTensor) => DenseTensor | null): void {
    fillWeights(this.graph, numbersFor)
  }

  /** Casts every constant that is a float of the other width, as the file is written. Returns how many there are. */
  castWeights(dtype: 'float32' | 'float16'): number {
    return castWeights(this.graph, dtype)
  }

  /**
   * The real values of a quantized constant, (stored - zero point) * scale, as float32, computed when they are read. With
   * one scale a channel a channel is a run of stored values.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  async dequantize(constant: TmfileTensor | string): Promise<DenseTensor> {
    return dequantizeConstant(this.graph, constant)
  }

  /**
   * Replaces a constant's real numbers by codes of int8 (symmetric, a scale a channel), uint8 (one scale and zero point) or
   * int32 (by given scales), and gives it the parameters, which are returned.
   * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_DTYPE, ERR_QUANTIZATION, ERR_NO_DATA.
   */
  quantize(
    constant: TmfileTensor | string,
    dtype: TmfileCodes,
    options: TmfileQuantizeOptions = {},
  ): Promise<TmfileQuantization> {
    return quantizeConstant(this.graph, constant, dtype, options)
  }

  /** Lets constants with the same bytes share a buffer. Returns the bytes saved. Errors: ERR_GRAPH for NHWC models. */
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
