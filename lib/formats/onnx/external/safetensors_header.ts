/**
 * The header of a data file that is a safetensors file at once, so that its readers find the values by name:
 *
 *     u64 length of the text, { name: {dtype, shape, data_offsets}, … } padded with spaces, values without gaps
 *
 * As the Python package onnx-safetensors writes it: an element type that the format lacks, and sub-byte elements that end inside a
 * byte, are a vector of U8. The model has their type and shape.
 */
import { DTYPES } from '../../../dtype/dtypes.js'
import { storedShape } from '../../../tensor/stored_shape.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import { isWellFormed } from '../../../utf8.js'

/** The values begin at a multiple of it: the size of a cache line. */
const DATA_ALIGNMENT = 64
const LENGTH_BYTES = 8

/** A name that the format reserves. */
const METADATA_KEY = '__metadata__'

/** A tensor of the file, with the name that it has there. */
export interface NamedValues {
  readonly name: string
  readonly tensor: DenseTensor
}

/**
 * The order of the reference's writer for values without gaps: larger elements first, so that each starts at a multiple of its
 * size; then by name.
 */
export function compareValues(a: NamedValues, b: NamedValues): number {
  const difference = DTYPES[b.tensor.dtype].bits - DTYPES[a.tensor.dtype].bits
  if (difference !== 0) return difference
  return a.name < b.name ? -1 : 1
}

/** Length prefix and text for values in this order. */
export function safetensorsHeader(values: readonly NamedValues[]): Uint8Array {
  let end = 0
  const entries = values.map(({ name, tensor }) => {
    const begin = end
    end += tensor.storage.byteLength
    return `${JSON.stringify(name)}:${entryText(tensor, begin, end)}`
  })
  const text = Buffer.from(`{${entries.join(',')}}`, 'utf8')
  const padded = Math.ceil((LENGTH_BYTES + text.byteLength) / DATA_ALIGNMENT) * DATA_ALIGNMENT
  const header = new Uint8Array(padded).fill(0x20)
  new DataView(header.buffer).setBigUint64(0, BigInt(padded - LENGTH_BYTES), true)
  header.set(text, LENGTH_BYTES)
  return header
}

/** Most bytes that a tensor adds to the header. */
export function headerBytesOf({ name, tensor }: NamedValues): number {
  const end = Number.MAX_SAFE_INTEGER
  return Buffer.byteLength(`${JSON.stringify(name)}:${entryText(tensor, end, end)},`, 'utf8')
}

/** Bytes of a header without tensors, and of its padding. */
export const EMPTY_HEADER_BYTES = 2 * DATA_ALIGNMENT

function entryText(tensor: DenseTensor, begin: number, end: number): string {
  const { safetensors, bits } = DTYPES[tensor.dtype]
  const shape = storedShape(tensor)
  const isWhole = bits >= 8 || shape.reduce((rest, extent) => (rest * (extent % 8)) % 8, bits) % 8 === 0
  const [code, extents] =
    safetensors !== undefined && isWhole ? [safetensors, shape] : ['U8', [tensor.storage.byteLength]]
  return `{"dtype":"${code}","shape":[${extents}],"data_offsets":[${begin},${end}]}`
}

/** A name of its own for each tensor: its name where that is possible. */
export class ValueNames {
  readonly #taken = new Set<string>([METADATA_KEY])
  #next = 0

  take(wanted: string): string {
    let name = wanted !== '' && isWellFormed(wanted) ? wanted : this.#numbered('tensor')
    while (this.#taken.has(name)) name = this.#numbered(wanted === '' ? 'tensor' : wanted)
    this.#taken.add(name)
    return name
  }

  #numbered(stem: string): string {
    return `${isWellFormed(stem) ? stem : 'tensor'}_${this.#next++}`
  }
}
