/** Shapes and types of the inputs of a converted graph. */

import type { Dtype } from '../../../dtype/dtypes.js'
import { TileworkError } from '../../../errors.js'
import type { Dimension, Graph, OnnxModel, ValueInfo } from '../../../models/onnx/index.js'
import { setBatch, setInputShape } from '../../../models/onnx/infer/input_shapes.js'
import type { TmfileDtype } from '../../../models/tmfile/index.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import type { Settings } from './options.js'

/** The model with the shapes of the options; a copy, unless none are given. */
export function preparedModel(model: OnnxModel, { inputShapes, batch }: Settings): OnnxModel {
  const shapes = Object.entries(inputShapes)
  if (shapes.length === 0 && batch === undefined) return model
  const names = graphInputs(model.graph).map(({ name }) => name)
  const unknown = shapes.find(([name]) => !names.includes(name))
  if (unknown) {
    const message = `inputShapes has ${valueText(unknown[0])}, which is not an input${nearestText(unknown[0], names)}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const copy = model.copy()
  const symbols = symbolsOf(copy.graph, inputShapes)
  for (const [name, shape] of shapes) setInputShape(copy, name, shape)
  if (batch !== undefined) setBatch(copy, batch)
  for (const { name, type } of graphInputs(copy.graph)) {
    if (type.kind !== 'tensor' || !type.shape || Object.hasOwn(inputShapes, name)) continue
    const shape = type.shape.map((extent) =>
      typeof extent === 'string' ? (symbols.get(extent) ?? extent) : extent,
    )
    if (shape.some((extent, axis) => extent !== type.shape![axis])) setInputShape(copy, name, shape)
  }
  return copy
}

/** Values of symbolic dimensions that the given shapes say. */
function symbolsOf(graph: Graph, inputShapes: Settings['inputShapes']): Map<string, number> {
  const symbols = new Map<string, number>()
  for (const { name, type } of graphInputs(graph)) {
    const given = inputShapes[name]
    if (!given || type.kind !== 'tensor') continue
    for (const [axis, extent] of (type.shape ?? []).entries()) {
      if (typeof extent === 'string' && given[axis] !== undefined) symbols.set(extent, given[axis])
    }
  }
  return symbols
}

/** Inputs that are not constants: an initializer of the same name is the value. */
export function graphInputs(graph: Graph): ValueInfo[] {
  return graph.inputs.filter(({ name }) => !graph.hasInitializer(name))
}

export interface InputShape {
  readonly name: string
  readonly shape: readonly number[]
  readonly dtype: Dtype | number
  /** Element type in the tmfile; undefined for a type that the engine does not compute. */
  readonly stored: TmfileDtype | undefined
}

const STORED: Readonly<Record<string, TmfileDtype>> = {
  ...{ float32: 'float32', float16: 'float32', float64: 'float32', bfloat16: 'float32' },
  ...{ int8: 'int8', uint8: 'uint8' },
}

/** @throws TileworkError ERR_ARGUMENT that names every input without a shape */
export function inputShapes(graph: Graph, { quantized }: Settings): InputShape[] {
  const inputs = graphInputs(graph)
  const open = inputs.flatMap(({ name, type }) => {
    if (type.kind !== 'tensor') return [`${valueText(name)} is no dense tensor`]
    if (!type.shape) return [`${valueText(name)} has no shape`]
    // An open batch becomes 1.
    return type.shape.every((extent, axis) => isExtent(extent) || (axis === 0 && typeof extent !== 'number'))
      ? []
      : [`${valueText(name)} is [${type.shape.map(dimensionText).join(', ')}]`]
  })
  if (open.length > 0) {
    const message = `A tmfile has static shapes, and ${open.join('; ')}. Set them with inputShapes (--input-shape NAME=1,3,224,224).`
    throw new TileworkError('ERR_ARGUMENT', message, { format: 'onnx' })
  }
  return inputs.map(({ name, type }) => {
    const { shape, dtype } = type as { shape: readonly Dimension[]; dtype: Dtype | number }
    const extents = shape.map((extent) => (isExtent(extent) ? Number(extent) : 1))
    const stored = STORED[dtype]
    const isReal = quantized === 'dequantize' && stored !== undefined
    return { name, shape: extents, dtype, stored: isReal ? 'float32' : stored }
  })
}

function isExtent(extent: Dimension): boolean {
  return typeof extent === 'number' && extent > 0
}

const dimensionText = (extent: Dimension): string => (extent === null ? '?' : String(extent))
