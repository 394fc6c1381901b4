/** Reads the values of a layer `Const`: its type, its shape, and which bytes of the `.bin` file it has. */
import type { Budget } from '../budget.js'
import { type Exact, exactByteLength, exactSizeOf } from '../exact_size.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import { type IrType, MAX_RANK, type PackedType, TYPES } from './schema.js'
import { findAttribute, type Layer } from './walk.js'

/** A constant of any graph. */
export interface Constant {
  /** Unique in the file: the path of its graph and its name, with `#ID` where another one has that name. */
  readonly key: string
  readonly typeName: string
  readonly type: IrType
  readonly shape: readonly number[]
  /** Byte offset in the `.bin` file. */
  readonly offset: number
  /** Bytes that the file gives it, which may be more than it needs. */
  readonly size: number
  /** Bytes that its elements take; of strings, all of them. */
  readonly byteLength: number
  /** Byte offset of its layer in the XML file. */
  readonly at: number
}

/** Elements that share bytes, and how many bytes. */
export const PACKED_GROUPS: Readonly<
  Record<PackedType, { readonly elements: number; readonly bytes: number }>
> = {
  u1: { elements: 8, bytes: 1 },
  u3: { elements: 8, bytes: 3 },
  u6: { elements: 4, bytes: 3 },
  nf4: { elements: 2, bytes: 1 },
}

/**
 * @throws FileFault for a type, shape, offset or size that is missing, malformed or does not fit the others; where the range
 * ends in the `.bin` file is checked later
 */
export function readConstant(layer: Layer, key: string, budget: Budget): Constant {
  const { start: at } = layer
  const text = (name: string): string => {
    const value = findAttribute(layer.data, name)
    if (value) return value.text
    throw new FileFault('ERR_HEADER', `${describe(layer)} has no ${name}.`, at)
  }
  const typeName = text('element_type')
  const type = TYPES.get(typeName)
  if (!type) {
    throw new FileFault(
      'ERR_DTYPE',
      `${describe(layer)} has the element type ${quote(typeName)}, which is not known.`,
      at,
    )
  }
  const shape = readShape(text('shape'), layer)
  const [offset, size] = [wholeNumber(text('offset'), layer), wholeNumber(text('size'), layer)]
  const { elements } = exactSizeOf(shape)
  const needed = type.dtype === 'string' ? stringHeadBytes(elements) : bytesOf(type, elements)
  // A tensor without elements has a size of 1.
  if (needed > size && elements > 0) {
    const message = `${describe(layer)} needs ${needed} bytes; its size is ${size}.`
    throw new FileFault('ERR_TRUNCATED', message, at)
  }
  const byteLength = type.dtype === 'string' ? size : Number(needed)
  budget.demand(
    'totalBytes',
    type.packed ? Number(elements) * (type.dtype === 'float32' ? 4 : 1) : byteLength,
    at,
  )
  return { key, typeName, type, shape, offset, size, byteLength, at }
}

/** Bytes of packed elements; those of a group that is partly filled count. */
export function bytesOf({ bits, packed }: IrType, elements: Exact): Exact {
  if (!packed) return exactByteLength(elements, bits)
  const group = PACKED_GROUPS[packed]
  if (typeof elements === 'number') return Math.ceil(elements / group.elements) * group.bytes
  const count = BigInt(group.elements)
  return ((elements + count - 1n) / count) * BigInt(group.bytes)
}

/** Bytes of a count, and of an offset for each text and the end of the last. */
function stringHeadBytes(elements: Exact): Exact {
  return typeof elements === 'number' ? 4 * (elements + 2) : 4n * (elements + 2n)
}

function readShape(text: string, layer: Layer): number[] {
  if (text.trim() === '') return []
  // Counted before it is split: a list of millions of numbers would take many times its text.
  const parts = text.split(',', MAX_RANK + 1)
  if (parts.length > MAX_RANK) {
    throw new FileFault('ERR_RANK', `${describe(layer)} has more than ${MAX_RANK} dimensions.`, layer.start)
  }
  return parts.map((part) => wholeNumber(part.trim(), layer))
}

/** Decimal digits alone: no sign, no other base. */
function wholeNumber(text: string, layer: Layer): number {
  if (!/^\d+$/.test(text)) {
    throw new FileFault(
      'ERR_VALUE',
      `${describe(layer)} has ${quote(text)} where a whole number is wanted.`,
      layer.start,
    )
  }
  const number = Number(text)
  if (Number.isSafeInteger(number)) return number
  throw new FileFault(
    'ERR_OVERFLOW',
    `${describe(layer)} has the number ${quote(text)}; the limit is 2^53 - 1.`,
    layer.start,
  )
}

export function describe({ name, id }: Layer): string {
  return `The constant ${quote(name)} (layer ${quote(id)})`
}
