/** Gives every output of a model one more dimension, for a model that expects a batch. */

import { TileworkError } from '../../../errors.js'
import { tensor } from '../../../tensor/from_values.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import type { Dimension, Graph, NewNode, ValueType } from '../document/types.js'
import { inferTypes } from '../infer/infer.js'

/** First operator set with the axes of Unsqueeze as an input. */
const AXES_INPUT_OPSET = 13

/**
 * Inserts a dimension of extent 1 into every output, by an Unsqueeze node before it.
 *
 * @param axis - index of the new dimension; negative ones count from the end, as for Unsqueeze
 * @throws TileworkError ERR_ARGUMENT for an axis outside of a declared shape; ERR_GRAPH for an output that is no dense
 * tensor; ERR_UNSUPPORTED for an output that no node computes. Nothing is changed then
 */
export function expandOutputDims(model: OnnxModel, axis: number): void {
  checkModel(model, 'expandOutputDims')
  const { graph } = model
  if (!Number.isSafeInteger(axis)) {
    throw new TileworkError('ERR_ARGUMENT', `The axis is ${valueText(axis)}; it must be an integer.`)
  }
  for (const name of graph.outputNames) refuseUncomputed(graph, name)
  const declared = graph.outputs
  const inferred = declared.some(({ type }) => type.kind === 'none') ? inferTypes(model) : undefined
  const outputs = declared.map(({ name, type }) => {
    // What follows may be refused, but is not declared where the model leaves it open.
    const expanded = expandedType(name, type.kind === 'none' ? (inferred?.get(name) ?? type) : type, axis)
    return { name, type: type.kind === 'none' ? type : expanded }
  })
  if (outputs.length === 0) return
  const hasAxesInput = Number(model.opsetImports.get('') ?? 0) >= AXES_INPUT_OPSET
  const axes = hasAxesInput ? addAxes(graph, axis) : undefined
  for (const { name, type } of outputs) {
    const inner = graph.uniqueName(`${name}_collapsed_dim_${axis}`)
    insertAtOutput(graph, name, inner, {
      opType: 'Unsqueeze',
      name: `unsqueeze-${name}`,
      inputs: axes === undefined ? [inner] : [inner, axes],
      attributes: axes === undefined ? { axes: { type: 'INTS', value: [axis] } } : {},
    })
    graph.setType(name, type)
  }
}

function addAxes(graph: Graph, axis: number): string {
  const axes = graph.uniqueName('expanded_axes')
  const value = tensor(BigInt64Array.of(BigInt(axis)), { shape: [1] })
  graph.addNode({ opType: 'Constant', outputs: [axes], attributes: { value: { type: 'TENSOR', value } } })
  return axes
}

/** Puts a node between a value and the output of its name; nodes that use the value keep it. */
function insertAtOutput(graph: Graph, name: string, inner: string, node: NewNode): void {
  const order = [...graph.outputNames]
  const { type } = graph.outputs.find((each) => each.name === name)!
  graph.rename(name, inner)
  graph.removeOutput(inner)
  graph.addNode({ ...node, outputs: [name] })
  graph.addOutput(name, type)
  graph.reorderOutputs(order)
}

/** An input or initializer cannot give its name to an expanded output: callers know it by that. */
function refuseUncomputed(graph: Graph, name: string): void {
  if (graph.producerOf(name)) return
  const text = `No node computes the output ${valueText(name)}; insert an Identity node before it.`
  throw new TileworkError('ERR_UNSUPPORTED', text)
}

function expandedType(name: string, type: ValueType, axis: number): ValueType {
  if (type.kind === 'none') return type
  if (type.kind !== 'tensor') {
    throw new TileworkError(
      'ERR_GRAPH',
      `The output ${valueText(name)} is no dense tensor, so it has no dimensions.`,
    )
  }
  const { shape, denotations, ...others } = type
  if (!shape) return type
  const at = axis < 0 ? axis + shape.length + 1 : axis
  if (at < 0 || at > shape.length) {
    const text = `The axis is ${axis}; the output ${valueText(name)} of rank ${shape.length} takes ${-shape.length - 1} to ${shape.length}.`
    throw new TileworkError('ERR_ARGUMENT', text)
  }
  return {
    ...others,
    shape: inserted<Dimension>(shape, at, 1),
    ...(denotations && { denotations: inserted(denotations, at, '') }),
  }
}

function inserted<T>(items: readonly T[], at: number, item: T): readonly T[] {
  return [...items.slice(0, at), item, ...items.slice(at)]
}
