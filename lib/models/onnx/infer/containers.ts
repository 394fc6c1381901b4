/** Types of sequences and optional values, and of what is taken from them. */
import type { Dtype } from '../../../dtype/dtypes.js'
import { DTYPE_OF_CODE } from '../../../formats/onnx/schema.js'
import { ownEntry } from '../../../own_entry.js'
import type { ValueType } from '../document/types.js'
import { axisOf, commonDims, dimsOf, isKnown } from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

/** The type of output 0 of an operator of sequences, maps or optional values; undefined for others. */
export function containerTypeOf(node: NodeView): ValueType | undefined {
  if (node.domain === 'ai.onnx.ml' && node.opType === 'ZipMap') return zipMap(node)
  return node.domain === '' ? ownEntry(RULES, node.opType)?.(node) : undefined
}

/** A map from labels to numbers for each row. */
function zipMap(node: NodeView): ValueType | undefined {
  const [strings, integers] = ['classlabels_strings', 'classlabels_int64s'].map((name) =>
    node.attribute(name),
  )
  if (!strings === !integers) return undefined
  const value = { kind: 'tensor', dtype: 'float32', shape: [] } as const
  return sequenceOf({ kind: 'map', key: strings ? 'string' : 'int64', value })
}

const RULES: Readonly<Record<string, (node: NodeView) => ValueType | undefined>> = {
  SequenceEmpty: (node) => sequenceOf({ kind: 'tensor', dtype: dtypeOf(node.int('dtype', FLOAT)) }),
  SequenceConstruct: (node) => {
    const [first, ...others] = node.inputs.map((_, input) => node.type(input))
    return sequenceOf(others.reduce(commonType, first))
  },
  SequenceInsert: (node) => {
    const type = node.type(0)
    return type?.kind === 'sequence' ? sequenceOf(commonType(type.of, node.type(1))) : undefined
  },
  SequenceErase: (node) => node.type(0),
  SequenceAt: elementType,
  ConcatFromSequence: concatFromSequence,
  SplitToSequence: splitToSequence,
  Optional: (node) => {
    const of =
      node.inputs.length > 0 ? node.type(0) : (node.attribute('type')?.value as ValueType | undefined)
    return of && { kind: 'optional', of }
  },
  OptionalGetElement: (node) => {
    const type = node.type(0)
    return type?.kind === 'optional' ? type.of : type
  },
}

/** Code of float32. */
const FLOAT = 1

const dtypeOf = (code: number): Dtype | number => DTYPE_OF_CODE.get(code) ?? code

function sequenceOf(of: ValueType | undefined): ValueType | undefined {
  return of && { kind: 'sequence', of }
}

function elementType(node: NodeView): ValueType | undefined {
  const type = node.type(0)
  return type?.kind === 'sequence' ? type.of : undefined
}

/** What holds of both types; undefined where they have nothing in common. */
export function commonType(one: ValueType | undefined, other: ValueType | undefined): ValueType | undefined {
  if (!one || one.kind !== other?.kind) return undefined
  if ((one.kind === 'sequence' || one.kind === 'optional') && other.kind === one.kind) {
    const of = commonType(one.of, other.of)
    return of && { kind: one.kind, of }
  }
  if (one.kind === 'tensor' && other.kind === 'tensor') {
    if (one.dtype !== other.dtype) return undefined
    const shape = commonDims(dimsOf(one.shape), dimsOf(other.shape))
    return { kind: 'tensor', dtype: one.dtype, ...(shape && { shape }) }
  }
  return one.kind === 'map' || one.kind === 'sparse' ? one : undefined
}

function concatFromSequence(node: NodeView): ValueType | undefined {
  const type = elementType(node)
  if (type?.kind !== 'tensor') return undefined
  const dims = dimsOf(type.shape)
  const isNew = node.int('new_axis', 0) !== 0
  const axis = dims && axisOf(node.int('axis', Number.NaN), dims.length + (isNew ? 1 : 0))
  const shape =
    axis === undefined ? undefined : isNew ? dims!.toSpliced(axis, 0, null) : dims!.with(axis, null)
  return { kind: 'tensor', dtype: type.dtype, ...(shape && { shape }) }
}

function splitToSequence(node: NodeView): ValueType | undefined {
  const [dtype, dims] = [node.dtype(0), node.dims(0)]
  if (dtype === undefined) return undefined
  const axis = dims && axisOf(node.int('axis', 0), dims.length)
  if (!dims || axis === undefined) return sequenceOf({ kind: 'tensor', dtype })
  if (!node.has(1)) {
    const isKept = node.int('keepdims', 1) !== 0
    return sequenceOf({ kind: 'tensor', dtype, shape: isKept ? dims.with(axis, 1) : dims.toSpliced(axis, 1) })
  }
  const [size, length] = [node.integers(1), dims[axis]!]
  const isEven =
    size?.length === 1 && node.dims(1)?.length === 0 && isKnown(length) && length % size[0]! === 0
  return sequenceOf({ kind: 'tensor', dtype, shape: dims.with(axis, isEven ? size[0]! : null) })
}
