/**
 * GGUF, the file of llama.cpp and its relatives: the constants of the format and the limits of reading it.
 *
 *     file    = "GGUF" · version u32 · tensor count u64 · key count u64 · keys · infos · zeros · data
 *     key     = text · value type u32 · value
 *     value   = a number, a bool of one byte, a text, or an array: type u32 · count u64 · elements
 *     info    = name · rank u32 · dims u64 × rank, the fastest first · type u32 · offset u64 from the start of the data
 *     text    = length u64 · UTF-8
 *
 * Nothing in the header is aligned; the data and each tensor in them start at multiples of `general.alignment`. Version 1 has
 * 32 bits for counts, lengths and dims. The version of a big-endian file, read as little-endian, has 16 zero bits at its end.
 *
 * Sources: the package gguf 0.19 (`gguf_reader.py`, `gguf_writer.py`, `constants.py`) and `gguf.cpp` of llama.cpp.
 */
import { BLOCK_DTYPES, type BlockDtype } from '../../dtype/block_types.js'
import type { Dtype } from '../../dtype/dtypes.js'
import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'gguf'

export const MAGIC: Uint8Array = Buffer.from('GGUF')
/** Magic number, version and both counts of version 2 and 3. */
export const HEADER_BYTES = 24
/** The same of version 1. */
export const OLD_HEADER_BYTES = 16
export const VERSIONS: readonly number[] = [1, 2, 3]
/** The version that is written. */
export const VERSION = 3

export const U32_BYTES = 4
export const U64_BYTES = 8

/** A key has at least a length, a type and a byte of value; an info a length, rank, type and offset. */
export const MIN_KEY_BYTES = 13
export const MIN_INFO_BYTES = 24
/** The same of version 1. */
export const OLD_MIN_KEY_BYTES = 9
export const OLD_MIN_INFO_BYTES = 20

/** Types of values by number, with the bytes of one; 0 for those whose length is in the file. */
export const VALUE_TYPES = [
  { name: 'uint8', bytes: 1 },
  { name: 'int8', bytes: 1 },
  { name: 'uint16', bytes: 2 },
  { name: 'int16', bytes: 2 },
  { name: 'uint32', bytes: 4 },
  { name: 'int32', bytes: 4 },
  { name: 'float32', bytes: 4 },
  { name: 'bool', bytes: 1 },
  { name: 'string', bytes: 0 },
  { name: 'array', bytes: 0 },
  { name: 'uint64', bytes: 8 },
  { name: 'int64', bytes: 8 },
  { name: 'float64', bytes: 8 },
] as const

/** Type of a value in the metadata of a GGUF file. */
export type GgufValueType = (typeof VALUE_TYPES)[number]['name']

/** ggml tensors have four dims, and llama.cpp refuses more. */
export const MAX_RANK = 4

/** ggml holds dims, element counts and sizes as signed 64-bit numbers: from here on they are negative. */
export const SIZE_LIMIT = 2n ** 63n

/** Longest tensor name that llama.cpp takes: 64 bytes with the zero that ends it. */
export const MAX_NAME_BYTES = 63

/** Longest key by the specification of the format. */
export const MAX_KEY_BYTES = 65_535

/** Arrays in arrays: no writer makes any, and each level is a call of the reader. */
export const MAX_ARRAY_DEPTH = 4

/** Known files have below 100 keys; each takes some 700 bytes of memory, whatever it takes of the file. */
export const MAX_KEYS = 65_536

export const ALIGNMENT_KEY = 'general.alignment'
export const ARCHITECTURE_KEY = 'general.architecture'
export const DEFAULT_ALIGNMENT = 32

/** Element types that are no blocks, by ggml's number. */
const PLAIN_DTYPES: readonly (readonly [number, Dtype])[] = [
  [0, 'float32'],
  [1, 'float16'],
  [30, 'bfloat16'],
  [28, 'float64'],
  [24, 'int8'],
  [25, 'int16'],
  [26, 'int32'],
  [27, 'int64'],
]

/** Element types by ggml's number. */
export const DTYPE_BY_NUMBER: ReadonlyMap<number, Dtype | BlockDtype> = new Map<number, Dtype | BlockDtype>([
  ...PLAIN_DTYPES,
  ...Object.values(BLOCK_DTYPES).map(({ ggml, name }) => [ggml, name] as const),
])

/** ggml's numbers by element type. */
export const NUMBER_BY_DTYPE: ReadonlyMap<Dtype | BlockDtype, number> = new Map(
  Array.from(DTYPE_BY_NUMBER, ([number, dtype]) => [dtype, number]),
)

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /** The largest known model has some thousand tensors; the memory of a million is bounded by the bytes of their infos. */
  tensors: 2 ** 24,
  /** The header is read whole and kept. The longest known vocabularies take some 20 MB. */
  headerBytes: 2 ** 28,
} as const satisfies DefaultLimits

/** How errors and findings call a tensor: by its name, or its index where the name is empty. */
export function tensorPath(name: string, index: number): string {
  return name === '' ? `tensors[${index}]` : `tensors[${JSON.stringify(name)}]`
}

/** `size` rounded up to a multiple of the alignment. */
export function aligned(size: number, alignment: number): number {
  return Math.ceil(size / alignment) * alignment
}
