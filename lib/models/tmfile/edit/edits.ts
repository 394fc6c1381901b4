/** Edits of models: each function checks its model and changes it in place. The files beside this one work on graphs. */
import type {
  TmfileGraph,
  TmfileNode,
  TmfileQuantization,
  TmfileTensor,
} from '../../../formats/tmfile/types.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { checkModel, type TmfileModel } from '../document/model.js'
import type { TmfileNodeDescription } from './create_node.js'
import * as nodes from './create_node.js'
import * as constants from './edit_constants.js'
import * as graphs from './edit_graph.js'
import * as names from './edit_names.js'
import type { ShapeChange } from './edit_shapes.js'
import * as shapes from './edit_shapes.js'
import type { TmfileQuantizedDtype, TmfileQuantizeOptions } from './quantize.js'
import * as quantized from './quantize.js'

function graphOf(model: TmfileModel, caller: string): TmfileGraph {
  checkModel(model, caller)
  return model.graph
}

/**
 * Renames every tensor and node with a name. Returns their number.
 * Errors: ERR_ARGUMENT for an invalid name; ERR_GRAPH where nothing has the old name, or the new name is taken.
 */
export function rename(model: TmfileModel, from: string, to: string): number {
  return names.rename(graphOf(model, 'rename'), from, to)
}

/** Removes the names of all tensors and nodes. The reference runs such a model, and aborts when it saves it. */
export function stripNames(model: TmfileModel): void {
  names.stripNames(graphOf(model, 'stripNames'))
}

/**
 * Sets the shape of an input, and the shapes that follow where the rule of the operator is known; the others become unknown
 * until the runtime infers them. Where only the batch size changes, dependent shapes and Reshape targets that contain the batch
 * size change with it.
 * Errors: ERR_ARGUMENT, also for a different rank; ERR_RANK; ERR_GRAPH for a tensor that is not an input.
 */
export function setInputShape(
  model: TmfileModel,
  input: TmfileTensor | string,
  shape: readonly number[],
): ShapeChange {
  return shapes.setInputShape(graphOf(model, 'setInputShape'), input, shape)
}

/** Sets the first dimension of every input. Errors: as `setInputShape`. */
export function setBatch(model: TmfileModel, batch: number): ShapeChange {
  return shapes.setBatch(graphOf(model, 'setBatch'), batch)
}

/**
 * Removes a node. Its consumers take its first non-constant input instead, and constants that become unused are removed
 * too. Errors: ERR_ARGUMENT; ERR_GRAPH where no input can replace a used output.
 */
export function removeNode(model: TmfileModel, node: TmfileNode | string): void {
  graphs.removeNode(graphOf(model, 'removeNode'), node)
}

/**
 * A new node for `insertNode` and `replaceNode`, from its operator, tensor names, and the parameters that differ from
 * their defaults. Errors: ERR_ARGUMENT.
 */
export function createNode(model: TmfileModel, description: TmfileNodeDescription): TmfileNode {
  return nodes.createNode(graphOf(model, 'createNode'), description)
}

/** Adds a constant and its Const node. Errors: ERR_GRAPH for a name that is taken; otherwise as `replaceConstant`. */
export function addConstant(
  model: TmfileModel,
  name: string,
  data: DenseTensor,
  quantization?: TmfileQuantization | null,
): TmfileTensor {
  return constants.addConstant(graphOf(model, 'addConstant'), name, data, quantization)
}

/**
 * Makes every consumer of `from`, except the producer of `to`, take `to`. Where the producer of `from` is a graph output,
 * the producer of `to` replaces it. Errors: ERR_ARGUMENT; ERR_GRAPH where a consumer runs before `to` is produced.
 */
export function replaceAllUses(
  model: TmfileModel,
  from: TmfileTensor | string,
  to: TmfileTensor | string,
): void {
  graphs.replaceAllUses(graphOf(model, 'replaceAllUses'), from, to)
}

/** Inserts a node and its tensors at `index`, by default after the producers of its inputs. Errors: ERR_GRAPH. */
export function insertNode(model: TmfileModel, node: TmfileNode, index?: number): void {
  graphs.insertNode(graphOf(model, 'insertNode'), node, index)
}

/** Replaces a node by another. Errors: ERR_ARGUMENT; ERR_GRAPH where the new node does not produce a used output. */
export function replaceNode(model: TmfileModel, old: TmfileNode | string, node: TmfileNode): void {
  graphs.replaceNode(graphOf(model, 'replaceNode'), old, node)
}

/**
 * Makes the producers of these tensors the graph outputs. The runtime reuses the memory of an output that a node reads, so nodes
 * behind the outputs are removed, and an output that another one needs is copied: the copy takes over its name.
 * Errors: ERR_ARGUMENT, ERR_GRAPH.
 */
export function setOutputs(model: TmfileModel, tensors: readonly (TmfileTensor | string)[]): void {
  graphs.setOutputs(graphOf(model, 'setOutputs'), tensors)
}

/**
 * Keeps only the nodes between the given inputs and outputs; without inputs, what leads to the outputs. An output that another one
 * needs is copied. Errors: ERR_ARGUMENT, ERR_GRAPH.
 */
export function cut(
  model: TmfileModel,
  inputs: readonly (TmfileTensor | string)[],
  outputs: readonly (TmfileTensor | string)[],
): void {
  graphs.cut(graphOf(model, 'cut'), inputs, outputs)
}

/** Removes nodes that no output depends on, and tensors and buffers without a user. */
export function removeUnused(model: TmfileModel): void {
  graphs.removeUnused(graphOf(model, 'removeUnused'))
}

/**
 * Replaces the data of a constant, and its dtype and shape. `quantization` defaults to the parameters of `data`.
 * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_UNSUPPORTED, ERR_RANK, ERR_NO_DATA.
 */
export function replaceConstant(
  model: TmfileModel,
  tensor: TmfileTensor | string,
  data: DenseTensor,
  quantization?: TmfileQuantization | null,
): void {
  constants.replaceConstant(graphOf(model, 'replaceConstant'), tensor, data, quantization)
}

/** Removes the data of all constants and keeps their sizes. */
export function stripWeights(model: TmfileModel): void {
  constants.stripWeights(graphOf(model, 'stripWeights'))
}

/** Gives data to constants without any; null leaves one as it is. Errors: ERR_ARGUMENT for another dtype or shape. */
export function fillWeights(model: TmfileModel, dataFor: (tensor: TmfileTensor) => DenseTensor | null): void {
  constants.fillWeights(graphOf(model, 'fillWeights'), dataFor)
}

/**
 * Casts every constant of the other float type, when the file is written, and gives activations that type: the runtime wants one type
 * for the whole model. In quantized parts halves stay. Builds of the runtime for x86 CPUs run no float16.
 * Returns the number of constants.
 */
export function castWeights(model: TmfileModel, dtype: 'float32' | 'float16'): number {
  return constants.castWeights(graphOf(model, 'castWeights'), dtype)
}

/**
 * Nodes with a constant of another type than their data has, as after `quantizeConstant` of some constants: the runtime crashes on most of
 * them. Empty for a model that has one type, or that is quantized as a whole.
 */
export function nodesOfMixedTypes(model: TmfileModel): readonly TmfileNode[] {
  return constants.nodesOfMixedTypes(graphOf(model, 'nodesOfMixedTypes'))
}

/**
 * The real values of a quantized constant, `(stored - zero point) * scale`, as a lazy float32 tensor. With one scale per
 * channel, a channel is a contiguous run of stored values.
 * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_QUANTIZATION, ERR_NO_DATA.
 */
export async function dequantizeConstant(
  model: TmfileModel,
  constant: TmfileTensor | string,
): Promise<DenseTensor> {
  return quantized.dequantizeConstant(graphOf(model, 'dequantizeConstant'), constant)
}

/**
 * Quantizes a constant to int8 (symmetric, one scale per channel), uint8 (one scale and zero point) or int32 (given
 * scales). Sets its quantization parameters and returns them.
 * Errors: ERR_ARGUMENT, ERR_GRAPH, ERR_DTYPE, ERR_QUANTIZATION, ERR_NO_DATA.
 */
export function quantizeConstant(
  model: TmfileModel,
  constant: TmfileTensor | string,
  dtype: TmfileQuantizedDtype,
  options: TmfileQuantizeOptions = {},
): Promise<TmfileQuantization> {
  return quantized.quantizeConstant(graphOf(model, 'quantizeConstant'), constant, dtype, options)
}

/** Makes constants with equal bytes share one buffer. Returns the bytes saved. Errors: ERR_GRAPH for NHWC models. */
export function mergeConstants(model: TmfileModel): Promise<number> {
  return constants.mergeConstants(graphOf(model, 'mergeConstants'))
}
