/**
 * Hostile BTF files, one or more per rule, with the abuse and the expected result. `lenient` and `strict` are the error
 * codes of that level's read or check; null where the level may read the file. `at` is where the fault is detected:
 * `read` on opening, `check` only in a check (and, for indices, when the tensor is used).
 */
import type { ErrorCode } from '../../../lib/errors.js'
import {
  btfFile,
  cooRecord,
  data,
  denseRecord,
  joinFields,
  raw,
  sheetExample,
  u64,
} from '../../formats/btf/btf_bytes.js'

export interface Attack {
  readonly name: string
  /** Number of the rule in the table of the README beside this file. */
  readonly rule: number
  readonly reason: string
  readonly bytes: () => Uint8Array
  readonly lenient: ErrorCode | null
  readonly strict: ErrorCode | null
  readonly at: 'read' | 'check'
}

const int32 = (...values: number[]): Int32Array => Int32Array.from(values)
const float32 = (...values: number[]): Float32Array => Float32Array.from(values)
const good = denseRecord({ dims: [2], data: int32(1, 2) })

/** A file of one dense record whose dimensions lie. */
const withDims = (...dims: (number | bigint)[]): Uint8Array =>
  btfFile(denseRecord({ dims, data: int32(1, 2) }))

/** `bytes` with one byte replaced. */
function patched(bytes: Uint8Array, offset: number, value: number): Uint8Array {
  const copy = bytes.slice()
  copy[offset] = value
  return copy
}

/** One COO record of shape [2, 3] with two entries, some of it replaced. */
function sparseFile(change: Partial<Parameters<typeof cooRecord>[0]> = {}): Uint8Array {
  return btfFile(
    cooRecord({
      dims: [2, 3],
      indices: [
        [0, 1],
        [1, 2],
      ],
      values: float32(1, 2),
      ...change,
    }),
  )
}

/** `count` table entries that all point at one record. */
function repeated(count: number, record: Uint8Array): Uint8Array {
  const first = 8 + 8 * count
  return joinFields(u64(count), ...Array.from({ length: count }, () => u64(first)), data(record))
}

/** Headers inside headers: each record starts 16 bytes behind the one before, and its header has 224. */
function nestedHeaders(count: number): Uint8Array {
  const first = 8 + 8 * count
  const offsets = Array.from({ length: count }, (_, i) => u64(first + 16 * i))
  // Rank 26, dtype 0, layout 0; the same words are dimensions 26 and 0 of the record before: an empty tensor.
  const headers = Array.from({ length: count + 14 }, () => [u64(26), u64(0)]).flat()
  return joinFields(u64(count), ...offsets, ...headers)
}

export const ATTACKS: readonly Attack[] = [
  {
    name: 'file-without-count',
    rule: 1,
    reason: 'a reader that takes 8 bytes without looking reads behind the end',
    bytes: () => new Uint8Array(7),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'empty-file',
    rule: 1,
    reason: 'no byte at all: a mapping of length 0 fails on most systems',
    bytes: () => new Uint8Array(0),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'count-beyond-file',
    rule: 2,
    reason: '16 bytes that make a trusting reader allocate a table of a gigabyte',
    bytes: () => joinFields(u64(2 ** 27), u64(24)),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'count-wraps-table-length',
    rule: 2,
    reason: '8 * 2^61 is 0 in 64 bits: the table seems to fit',
    bytes: () => joinFields(u64(2n ** 61n), raw(0)),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'count-one-too-many',
    rule: 2,
    reason: 'the last table entry lies just behind the end',
    bytes: () => joinFields(u64(2), u64(24)),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'byte-swapped-file',
    rule: 2,
    reason: 'a big-endian file read as little-endian gives wrong numbers everywhere',
    bytes: () => {
      const bytes = btfFile(good)
      for (let at = 0; at < 24; at += 8) bytes.subarray(at, at + 8).reverse()
      return bytes
    },
    lenient: 'ERR_UNSUPPORTED',
    strict: 'ERR_UNSUPPORTED',
    at: 'read',
  },
  {
    name: 'record-inside-table',
    rule: 3,
    reason: 'the table is read as a record, so offsets become a rank and dimensions',
    bytes: () => joinFields(u64(1), u64(8), data(good)),
    lenient: 'ERR_OFFSET_RANGE',
    strict: 'ERR_OFFSET_RANGE',
    at: 'read',
  },
  {
    name: 'record-at-count',
    rule: 3,
    reason: 'offset 0 makes the count the rank of its own first record',
    bytes: () => joinFields(u64(1), u64(0), data(good)),
    lenient: 'ERR_OFFSET_RANGE',
    strict: 'ERR_OFFSET_RANGE',
    at: 'read',
  },
  {
    name: 'record-at-end',
    rule: 4,
    reason: 'an empty tensor needs no data, but its header still needs 16 bytes',
    bytes: () => joinFields(u64(1), u64(16 + good.length), data(good)),
    lenient: 'ERR_OFFSET_RANGE',
    strict: 'ERR_OFFSET_RANGE',
    at: 'read',
  },
  {
    name: 'offset-wraps',
    rule: 4,
    reason: 'offset + 16 is 8 in 64 bits, which lies inside the file',
    bytes: () => joinFields(u64(1), u64(2n ** 64n - 8n), data(good)),
    lenient: 'ERR_OFFSET_RANGE',
    strict: 'ERR_OFFSET_RANGE',
    at: 'read',
  },
  {
    name: 'record-misaligned',
    rule: 5,
    reason: 'elements of 8 bytes at odd addresses trap on some machines and are slow on others',
    bytes: () => joinFields(u64(1), u64(20), raw(0, 0, 0, 0), data(good)),
    lenient: null,
    strict: 'ERR_MISALIGNED',
    at: 'read',
  },
  {
    name: 'rank-256',
    rule: 6,
    reason: 'one byte keeps the rank in TFRT: 256 comes out as a scalar there and as a tensor elsewhere',
    bytes: () => btfFile(denseRecord({ dims: Array(256).fill(1), data: int32(1, 2) })),
    lenient: 'ERR_RANK',
    strict: 'ERR_RANK',
    at: 'read',
  },
  {
    name: 'rank-huge',
    rule: 6,
    reason: 'a reader that allocates the dimensions before it reads them takes all memory',
    bytes: () => joinFields(u64(1), u64(16), u64(2n ** 61n), raw(2, 0, 0, 0, 0, 0, 0, 0)),
    lenient: 'ERR_RANK',
    strict: 'ERR_RANK',
    at: 'read',
  },
  {
    name: 'rank-beyond-file',
    rule: 6,
    reason: 'a legal rank whose dimensions lie behind the end',
    bytes: () => joinFields(u64(1), u64(16), u64(255), raw(2, 0, 0, 0, 0, 0, 0, 0), u64(1)),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'dtype-10',
    rule: 7,
    reason: 'a table of element sizes is read behind its end',
    bytes: () => btfFile(denseRecord({ dtype: 10, dims: [2], data: int32(1, 2) })),
    lenient: 'ERR_DTYPE',
    strict: 'ERR_DTYPE',
    at: 'read',
  },
  {
    name: 'layout-3',
    rule: 7,
    reason: 'an unknown layout that an inspector ignores without a report hides a payload',
    bytes: () => btfFile(denseRecord({ layout: 3, dims: [2], data: int32(1, 2) })),
    lenient: 'ERR_UNSUPPORTED',
    strict: 'ERR_UNSUPPORTED',
    at: 'read',
  },
  {
    name: 'layout-2',
    rule: 7,
    reason: 'COO to a reader of the public document, unknown to every program: two readers, two meanings',
    bytes: () => sparseFile({ layout: 2 }),
    lenient: null,
    strict: 'ERR_UNSUPPORTED',
    at: 'read',
  },
  {
    name: 'dim-negative',
    rule: 8,
    reason: '2^64 - 1 is -1 where dimensions are signed; products of it come out small',
    bytes: () => withDims(2n ** 64n - 1n),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'dim-inexact',
    rule: 8,
    reason: '2^53 + 1 becomes 2^53 as a JavaScript number: the check and the use would see two values',
    bytes: () => withDims(2n ** 53n + 1n, 0),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'dims-product-wraps',
    rule: 8,
    reason: '2^32 * 2^32 is 0 in 64 bits: no data, 2^64 elements',
    bytes: () => withDims(2 ** 32, 2 ** 32),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'dims-bytes-wrap',
    rule: 8,
    reason: '2^62 elements of 4 bytes are 0 bytes in 64 bits',
    bytes: () => withDims(2 ** 31, 2 ** 31),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'dims-empty-with-overflowing-prefix',
    rule: 8,
    reason:
      'the product is 0, and overflows on the way there: readers that multiply in another order disagree',
    bytes: () => withDims(2 ** 40, 2 ** 40, 0),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'data-beyond-end',
    rule: 9,
    reason: 'memory behind the file is given out as elements',
    bytes: () => withDims(3),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'data-far-beyond-end',
    rule: 9,
    reason: 'a file of 40 bytes that makes a trusting reader allocate a petabyte',
    bytes: () => withDims(2 ** 48),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'coo-index-columns',
    rule: 10,
    reason: 'as many index numbers in another shape: rows are then taken behind the end of the shape',
    bytes: () => sparseFile({ indexDims: [1, 4] }),
    lenient: 'ERR_COO_SHAPE',
    strict: 'ERR_COO_SHAPE',
    at: 'read',
  },
  {
    name: 'coo-more-values-than-indices',
    rule: 10,
    reason: 'a value without an index',
    bytes: () => sparseFile({ valueCount: 3, values: float32(1, 2, 3) }),
    lenient: 'ERR_COO_SHAPE',
    strict: 'ERR_COO_SHAPE',
    at: 'read',
  },
  {
    name: 'coo-values-beyond-end',
    rule: 9,
    reason: 'indices fit, values end behind the file',
    bytes: () => sparseFile({ values: float32() }),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'coo-entry-count-wraps',
    rule: 11,
    reason: '2^60 entries of 2 indices of 8 bytes are 0 bytes in 64 bits',
    bytes: () => sparseFile({ indexDims: [2n ** 60n, 2] }),
    lenient: 'ERR_OVERFLOW',
    strict: 'ERR_OVERFLOW',
    at: 'read',
  },
  {
    name: 'coo-entries-beyond-end',
    rule: 11,
    reason: 'more entries than the file has bytes',
    bytes: () => sparseFile({ indexDims: [2 ** 40, 2] }),
    lenient: 'ERR_TRUNCATED',
    strict: 'ERR_TRUNCATED',
    at: 'read',
  },
  {
    name: 'coo-more-entries-than-cells',
    rule: 11,
    reason: 'entries must repeat: whoever sums and whoever stores the last get two tensors',
    bytes: () =>
      sparseFile({
        dims: [1, 1],
        indices: [
          [0, 0],
          [0, 0],
        ],
      }),
    lenient: null,
    strict: 'ERR_COO_DUPLICATE',
    at: 'read',
  },
  {
    name: 'coo-index-beyond-dim',
    rule: 12,
    reason: 'densifying writes outside the tensor',
    bytes: () =>
      sparseFile({
        indices: [
          [0, 1],
          [1, 3],
        ],
      }),
    lenient: 'ERR_COO_INDEX',
    strict: 'ERR_COO_INDEX',
    at: 'check',
  },
  {
    name: 'coo-index-negative',
    rule: 12,
    reason: 'a reader that looks at the upper bound alone writes before the tensor',
    bytes: () =>
      sparseFile({
        indices: [
          [0, 1],
          [-1n, 2],
        ],
      }),
    lenient: 'ERR_COO_INDEX',
    strict: 'ERR_COO_INDEX',
    at: 'check',
  },
  {
    name: 'coo-entry-in-empty-shape',
    rule: 12,
    reason: 'with an extent of 0 there is no cell that an entry could name',
    bytes: () => sparseFile({ dims: [2, 0], indices: [[0, 0]], values: float32(1) }),
    lenient: 'ERR_COO_INDEX',
    strict: 'ERR_COO_INDEX',
    at: 'read',
  },
  {
    name: 'coo-duplicate',
    rule: 13,
    reason: 'whoever sums repeated entries and whoever stores the last get two tensors',
    bytes: () =>
      sparseFile({
        indices: [
          [0, 1],
          [0, 1],
        ],
      }),
    lenient: null,
    strict: 'ERR_COO_DUPLICATE',
    at: 'check',
  },
  {
    name: 'coo-unsorted',
    rule: 13,
    reason: 'a binary search for an entry does not find it',
    bytes: () =>
      sparseFile({
        indices: [
          [1, 2],
          [0, 1],
        ],
      }),
    lenient: null,
    strict: 'ERR_COO_DUPLICATE',
    at: 'check',
  },
  {
    name: 'records-at-one-offset',
    rule: 14,
    reason: 'two names for the same bytes: writing to one changes the other',
    bytes: () => repeated(2, good),
    lenient: 'ERR_OVERLAP',
    strict: 'ERR_OVERLAP',
    at: 'read',
  },
  {
    name: 'record-inside-record',
    rule: 14,
    reason: 'the data of one record are the header of the next: two readers see two models',
    bytes: () =>
      joinFields(u64(2), u64(24), u64(48), data(denseRecord({ dtype: 0, dims: [good.length], data: good }))),
    lenient: 'ERR_OVERLAP',
    strict: 'ERR_OVERLAP',
    at: 'read',
  },
  {
    name: 'reserved-bytes',
    rule: 15,
    reason: 'six bytes a record that no reader looks at carry a message',
    bytes: () => btfFile(denseRecord({ dims: [2], data: int32(1, 2), reserved: [0, 0, 7, 0, 0, 0] })),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'padding-bytes',
    rule: 15,
    reason: 'padding that is not zero carries a message',
    bytes: () => patched(btfFile(denseRecord({ dims: [1], data: int32(1) })), 46, 1),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'padding-bytes-of-last-record',
    rule: 15,
    reason: 'no header follows these, so a reader that goes from header to header never sees them',
    bytes: () => patched(btfFile(good, denseRecord({ dims: [1], data: int32(1) })), 86, 1),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'gap-before-first-record',
    rule: 15,
    reason: 'bytes that belong to nothing hide another file',
    bytes: () => joinFields(u64(1), u64(24), u64(0), data(good)),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'bytes-behind-last-record',
    rule: 15,
    reason: 'a second file behind the first: the same bytes are two formats',
    bytes: () => joinFields(data(btfFile(good)), u64(0)),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'bytes-behind-empty-list',
    rule: 15,
    reason: 'a list of no tensors in front of anything',
    bytes: () => joinFields(u64(0), u64(1)),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'table-points-at-one-record',
    rule: 18,
    reason: 'a small file whose tensors together decode to far more than it has bytes',
    bytes: () => repeated(64, denseRecord({ dtype: 0, dims: [4096], data: new Int8Array(4096) })),
    lenient: 'ERR_OVERLAP',
    strict: 'ERR_OVERLAP',
    at: 'read',
  },
  {
    name: 'headers-inside-headers',
    rule: 18,
    reason: 'each 16 bytes are the start of a header of 224: the list alone would take many times the file',
    bytes: () => nestedHeaders(400),
    lenient: 'ERR_OVERLAP',
    strict: 'ERR_OVERLAP',
    at: 'read',
  },
]

/** A sparse tensor of some hundred bytes whose dense form has an exabyte (rule 16). */
export function hugeSparseFile(): Uint8Array {
  return sparseFile({
    dims: [2 ** 30, 2 ** 28],
    indices: [
      [0, 0],
      [2 ** 30 - 1, 2 ** 28 - 1],
    ],
  })
}

/** Good files that the mutations start from. */
export function seedFiles(): Uint8Array[] {
  return [
    new Uint8Array(8),
    btfFile(good),
    sheetExample(),
    sparseFile(),
    btfFile(
      denseRecord({ dims: [], dtype: 5, data: Float64Array.of(0.1) }),
      denseRecord({ dims: [0] }),
      denseRecord({ dims: [3, 1, 5], dtype: 7, data: new Uint16Array(15) }),
      cooRecord({
        dims: [4, 4, 4],
        dtype: 1,
        indices: [
          [0, 0, 1],
          [3, 3, 3],
        ],
        values: Int16Array.of(4, 5),
      }),
      denseRecord({ dims: Array(20).fill(1), dtype: 3, data: BigInt64Array.of(-1n) }),
    ),
    repeated(3, good),
  ]
}
