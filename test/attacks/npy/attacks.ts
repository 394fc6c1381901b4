/**
 * Hostile npy files and npz archives, one or more per rule, with the abuse and the expected result. `lenient` and
 * `strict` are the error codes of that level's read or check; null where the level may read the file. `at` is where the
 * fault is detected: `read` on opening, `check` only in a check (and, for compressed data, when the tensor is used).
 */
import { deflateRawSync } from 'node:zlib'
import type { ErrorCode } from '../../../lib/errors.js'
import { npyBytes } from '../../formats/npy/npy_bytes.js'
import { ascii, extra, join, type MemberFields, u32, u64, zipBytes } from '../../formats/npy/zip_bytes.js'

export interface Attack {
  readonly name: string
  readonly format: 'npy' | 'npz'
  /** Number of the rule in the table of the README beside this file. */
  readonly rule: number
  readonly reason: string
  readonly bytes: () => Uint8Array
  readonly lenient: ErrorCode | null
  readonly strict: ErrorCode | null
  readonly at: 'read' | 'check'
}

const literal = (change: string): Uint8Array =>
  npyBytes({ text: `{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }`.replace(...split(change)) })

/** `a -> b` as the two arguments of `replace`. */
function split(change: string): [string, string] {
  const [from = '', to = ''] = change.split(' -> ')
  return [from, to]
}

const refused = (code: ErrorCode) => ({ lenient: code, strict: code, at: 'read' }) as const
const tolerated = (code: ErrorCode) => ({ lenient: null, strict: code, at: 'read' }) as const

const NPY: readonly Omit<Attack, 'format'>[] = [
  {
    name: 'shorter-than-its-prefix',
    rule: 1,
    reason: 'a reader that takes ten bytes without looking reads behind the end',
    bytes: () => npyBytes().subarray(0, 9),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'no-byte-at-all',
    rule: 1,
    reason: 'a mapping of length 0 fails on most systems',
    bytes: () => new Uint8Array(0),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'another-magic',
    rule: 1,
    reason: 'a pickle under the name of an array, which numpy would load with allow_pickle',
    bytes: () => join(Uint8Array.of(0x80, 4, 0x95), new Uint8Array(60)),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'version-of-the-future',
    rule: 1,
    reason: 'a header that an older reader understands wrongly',
    bytes: () => npyBytes({ version: [4, 0] }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'minor-version',
    rule: 1,
    reason: 'there is no version 1.7',
    bytes: () => npyBytes({ version: [1, 7] }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'header-beyond-file',
    rule: 2,
    reason: 'a length of 65,535 in a file of 136 bytes',
    bytes: () => npyBytes({ textBytes: 65_535 }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'header-of-4-gib',
    rule: 2,
    reason: 'twelve bytes that make a trusting reader allocate 4 GiB',
    bytes: () => npyBytes({ version: [2, 0], textBytes: 0xffffffff }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'long-header',
    rule: 2,
    reason: 'megabytes of header take a parser of literals minutes',
    bytes: () => npyBytes({ version: [2, 0], ending: ' '.repeat(1_000_000) }),
    ...refused('ERR_LIMIT'),
  },
  {
    name: 'length-field-cut',
    rule: 2,
    reason: 'version 2.0 has a longer length field than the file has bytes',
    bytes: () => npyBytes({ version: [2, 0] }).subarray(0, 11),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'code-in-the-header',
    rule: 3,
    reason: 'an expression, which a reader that evaluates would run',
    bytes: () => npyBytes({ text: "__import__('os').system('true')" }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'expression-as-extent',
    rule: 3,
    reason: '2**9 is an expression, not a number',
    bytes: () => literal('(2,) -> (2**9,)'),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'deep-brackets',
    rule: 3,
    reason: 'thousands of brackets overflow the stack of a recursive parser',
    bytes: () => literal(`(2,) -> ${'('.repeat(8000)}`),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'string-without-end',
    rule: 3,
    reason: 'a scan for the quote leads behind the header',
    bytes: () => literal("'shape': (2,), } -> 'shape"),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'text-behind-the-dictionary',
    rule: 3,
    reason: 'two dictionaries: which one holds?',
    bytes: () => literal("} -> } {'shape': (3,)}"),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'number-in-brackets',
    rule: 3,
    reason: '(2) is not a tuple to Python',
    bytes: () => literal('(2,) -> (2)'),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'invalid-utf-8',
    rule: 3,
    reason: 'version 3.0 is UTF-8; readers repair bad bytes differently',
    bytes: () => {
      const bytes = npyBytes({ version: [3, 0] })
      bytes[60] = 0xff
      return bytes
    },
    ...refused('ERR_HEADER'),
  },
  {
    name: 'key-twice',
    rule: 4,
    reason: 'Python takes the last of two shapes, others the first',
    bytes: () => literal("} -> 'shape': (1,)}"),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'key-missing',
    rule: 4,
    reason: 'a default would be a guess',
    bytes: () => literal("'fortran_order': False,  -> "),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'key-too-many',
    rule: 4,
    reason: 'numpy refuses it, so nobody checks what it says',
    bytes: () => literal("} -> 'order': 'F'}"),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'order-as-number',
    rule: 4,
    reason: "1 is true in some readers and no bool in numpy's",
    bytes: () => literal('False -> 1'),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'shape-as-string',
    rule: 4,
    reason: 'a string has a length and items too',
    bytes: () => literal("(2,) -> '22'"),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'negative-extent',
    rule: 5,
    reason: 'two negative extents have a positive product',
    bytes: () => literal('(2,) -> (-1, -2)'),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'extent-above-2-53',
    rule: 5,
    reason: '2^53 + 1 as a double is 2^53',
    bytes: () => literal('(2,) -> (9007199254740993,)'),
    ...refused('ERR_OVERFLOW'),
  },
  {
    name: 'extent-of-thousands-of-digits',
    rule: 5,
    reason: 'its product takes a parser of big numbers long',
    bytes: () => literal(`(2,) -> (${'9'.repeat(9000)},)`),
    ...refused('ERR_OVERFLOW'),
  },
  {
    name: 'product-wraps-to-8',
    rule: 5,
    reason: '2^31 * 2^31 * 4 * 2 wraps in 64 bits, so the data seem to be there',
    bytes: () => literal('(2,) -> (2147483648, 2147483648, 4)'),
    ...refused('ERR_OVERFLOW'),
  },
  {
    name: 'product-wraps-beside-0',
    rule: 5,
    reason: 'an empty array whose other extents overflow in readers that multiply from the front',
    bytes: () => npyBytes({ shape: [2 ** 40, 2 ** 40, 0], data: new Uint8Array(0) }),
    ...refused('ERR_OVERFLOW'),
  },
  {
    name: 'many-axes',
    rule: 5,
    reason: 'numpy has a fixed array of 64 extents',
    bytes: () => npyBytes({ shape: Array<number>(65).fill(1), data: Int32Array.of(1) }),
    ...refused('ERR_RANK'),
  },
  {
    name: 'data-cut',
    rule: 6,
    reason: 'the memory behind would be given out as numbers',
    bytes: () => npyBytes({ shape: [3] }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'data-of-an-exabyte',
    rule: 6,
    reason: 'a header alone that makes a trusting reader allocate',
    bytes: () => npyBytes({ shape: [2 ** 40, 2 ** 18], data: new Uint8Array(0) }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'bytes-behind-the-data',
    rule: 6,
    reason: 'room for a second file in this one',
    bytes: () => npyBytes({ data: Int32Array.of(1, 2, 3) }),
    ...tolerated('ERR_GAP'),
  },
  {
    name: 'pickled-objects',
    rule: 7,
    reason: 'a pickle runs code when it is loaded',
    bytes: () => npyBytes({ descr: '|O' }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'structured-type',
    rule: 7,
    reason: 'fields may overlap and nest',
    bytes: () => literal("'<i4' -> [('a', '<i4')]"),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'subarray-type',
    rule: 7,
    reason: 'a type with a shape of its own multiplies the array',
    bytes: () => literal("'<i4' -> ('<i4', (2,))"),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'long-double',
    rule: 7,
    reason: 'the same name is another type on another machine',
    bytes: () => npyBytes({ descr: '<f16', shape: [], data: new Uint8Array(16) }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'raw-items-of-3-bytes',
    rule: 7,
    reason: 'no number has 3 bytes',
    bytes: () => npyBytes({ descr: '|V3', data: new Uint8Array(6) }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'unknown-type',
    rule: 7,
    reason: 'Python would take the name for a type and ask for its size',
    bytes: () => npyBytes({ descr: '<f3' }),
    ...refused('ERR_DTYPE'),
  },
  {
    name: 'strings-of-no-bytes',
    rule: 7,
    reason: 'a quadrillion strings in no byte of data',
    bytes: () => npyBytes({ descr: '|S0', shape: [2 ** 50], data: new Uint8Array(0) }),
    ...refused('ERR_DTYPE'),
  },
  {
    name: 'strings-of-4-gib',
    rule: 7,
    reason: 'an item length beyond 32 bits wraps in numpy',
    bytes: () => npyBytes({ descr: '<U4294967297', shape: [0], data: new Uint8Array(0) }),
    ...refused('ERR_DTYPE'),
  },
  {
    name: 'long-numbers-of-python-2',
    rule: 8,
    reason: 'readers other than numpy stop at the L',
    bytes: () => literal('(2,) -> (2L,)'),
    ...tolerated('ERR_HEADER'),
  },
  {
    name: 'bools-of-2',
    rule: 9,
    reason: 'a bool that is neither true nor false takes branches that nobody wrote',
    bytes: () => npyBytes({ descr: '|b1', data: Uint8Array.of(2, 1) }),
    lenient: null,
    strict: 'ERR_DTYPE',
    at: 'check',
  },
  {
    name: 'text-beyond-unicode',
    rule: 9,
    reason: 'a code above 0x10ffff is not a character anywhere',
    bytes: () => npyBytes({ descr: '<U1', data: Uint32Array.of(65, 0x110000) }),
    lenient: null,
    strict: 'ERR_DTYPE',
    at: 'check',
  },
]

const good = npyBytes()
const member = (more: Partial<MemberFields> = {}): MemberFields => ({ name: 'a.npy', content: good, ...more })
const archive = (...members: Partial<MemberFields>[]): Uint8Array =>
  zipBytes(members.map((more) => member(more)))
const deflated = new Uint8Array(deflateRawSync(good))
const zeros = npyBytes({ descr: '|u1', shape: [1_000_000], data: new Uint8Array(1_000_000) })

/** One kernel of data that `count` directory entries point at: a bomb without nesting. */
function overlapBomb(count: number): Uint8Array {
  const names = Array.from({ length: count }, (_, i) => `${i}`.padStart(6, '0'))
  const last = zipBytes([{ name: `${names[0]}.npy`, content: zeros, method: 8 }])
  const entries = names.map((name) => zipBytes([{ name: `${name}.npy`, content: zeros, method: 8 }]))
  const directoryAt = new DataView(last.buffer).getUint32(last.length - 6, true)
  const directory = join(...entries.map((bytes) => bytes.slice(directoryAt, bytes.length - 22)))
  const end = last.slice(-22)
  const view = new DataView(end.buffer)
  view.setUint16(8, count, true)
  view.setUint16(10, count, true)
  view.setUint32(12, directory.length, true)
  return join(last.slice(0, directoryAt), directory, end)
}

const NPZ: readonly Omit<Attack, 'format'>[] = [
  {
    name: 'archive-cut',
    rule: 20,
    reason: 'the directory stands at the end and is gone',
    bytes: () => archive({}).slice(0, -1),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'shorter-than-an-end',
    rule: 20,
    reason: 'a search for the end record starts before the file',
    bytes: () => new Uint8Array(21),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'bytes-behind-the-end',
    rule: 20,
    reason: 'readers search the end record in different ways when it is not last',
    bytes: () => join(archive({}), Uint8Array.of(1)),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'two-ends',
    rule: 20,
    reason: 'the comment is an end record too: two readers see two archives',
    bytes: () => {
      const inner = join(u32(0x06054b50), new Uint8Array(16), Uint8Array.of(1, 0), Uint8Array.of(7))
      return zipBytes([member()], { comment: inner })
    },
    ...refused('ERR_HEADER'),
  },
  {
    name: 'comment',
    rule: 20,
    reason: 'room for another file',
    bytes: () => zipBytes([member()], { comment: ascii('hello') }),
    ...tolerated('ERR_GAP'),
  },
  {
    name: 'part-of-several',
    rule: 21,
    reason: 'offsets count in another file',
    bytes: () => zipBytes([member()], { disk: 1 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'entries-elsewhere',
    rule: 21,
    reason: 'some entries are said to lie in another part',
    bytes: () => zipBytes([member()], { countHere: 0 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'member-elsewhere',
    rule: 21,
    reason: 'a member in part 7 of one part',
    bytes: () => archive({ entry: { disk: 7 } }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'count-beyond-directory',
    rule: 22,
    reason: 'a count that makes a trusting reader allocate',
    bytes: () => zipBytes([member()], { count: 60_000, countHere: 60_000 }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'count-too-small',
    rule: 22,
    reason: 'Python reads the whole directory, others as many entries as are counted',
    bytes: () => zipBytes([member(), member({ name: 'b.npy' })], { count: 1, countHere: 1 }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'directory-beyond-end',
    rule: 22,
    reason: 'a directory that runs over the end record',
    bytes: () => zipBytes([member()], { byteLength: 1000 }),
    ...refused('ERR_OFFSET_RANGE'),
  },
  {
    name: 'directory-elsewhere',
    rule: 22,
    reason: 'the offset points into the data of a member',
    bytes: () => zipBytes([member()], { start: 0 }),
    lenient: 'ERR_HEADER',
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'entry-beyond-directory',
    rule: 22,
    reason: 'a name that is longer than the directory',
    bytes: () => {
      const bytes = archive({})
      const at = new DataView(bytes.buffer).getUint32(bytes.length - 6, true)
      bytes[at + 29] = 0xff
      return bytes
    },
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'bytes-before-the-end',
    rule: 22,
    reason: 'Python takes them for a program in front and moves all offsets',
    bytes: () => zipBytes([member()], { gap: new Uint8Array(10) }),
    ...tolerated('ERR_GAP'),
  },
  {
    name: 'zip64-end-elsewhere',
    rule: 23,
    reason: 'a locator that points behind itself',
    bytes: () => zipBytes([member()], { zip64: { at: 2n ** 63n } }),
    ...refused('ERR_OFFSET_RANGE'),
  },
  {
    name: 'zip64-end-missing',
    rule: 23,
    reason: 'a locator that points at data',
    bytes: () => zipBytes([member()], { zip64: { at: 0n } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'zip64-end-of-another-length',
    rule: 23,
    reason: 'room between the record and its locator',
    bytes: () => zipBytes([member()], { zip64: { length: 2n ** 64n - 12n } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'zip64-disagrees',
    rule: 23,
    reason: 'readers with and without 64 bits see two directories',
    bytes: () => zipBytes([member()], { zip64: { start: 0n }, start: 166 }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'zip64-directory-wraps',
    rule: 23,
    reason: 'start and length wrap to an offset inside the file',
    bytes: () => zipBytes([member()], { zip64: { start: 2n ** 64n - 8n } }),
    ...refused('ERR_OFFSET_RANGE'),
  },
  {
    name: 'zip64-in-parts',
    rule: 23,
    reason: 'the locator counts three parts',
    bytes: () => zipBytes([member()], { zip64: { parts: 3 } }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'zip64-field-too-short',
    rule: 23,
    reason: 'a size is said to stand where nothing stands',
    bytes: () =>
      archive({ entry: { bytes: 0xffffffff, compressedBytes: 0xffffffff, extra: extra(1, u64(1)) } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'zip64-field-twice',
    rule: 23,
    reason: 'readers take the first or the last',
    bytes: () => archive({ entry: { extra: join(extra(1, u64(1)), extra(1, u64(2))) } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'extra-field-too-long',
    rule: 23,
    reason: 'a field that reaches into the next entry',
    bytes: () => archive({ entry: { extra: Uint8Array.of(1, 0, 0xff, 0) } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'size-above-2-53',
    rule: 23,
    reason: 'a size that is not an exact double',
    bytes: () =>
      archive({
        entry: {
          bytes: 0xffffffff,
          compressedBytes: 0xffffffff,
          extra: extra(1, u64(2n ** 53n + 1n, 2n ** 53n + 1n)),
        },
      }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'member-behind-directory',
    rule: 24,
    reason: 'an offset behind all members',
    bytes: () => archive({ entry: { offset: 100_000 } }),
    ...refused('ERR_OFFSET_RANGE'),
  },
  {
    name: 'member-beyond-directory',
    rule: 24,
    reason: 'a size that runs over the directory',
    bytes: () => archive({ entry: { bytes: 1000, compressedBytes: 1000 } }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'name-pushes-the-data-out',
    rule: 24,
    reason: 'a local header that is longer than the directory allows for',
    bytes: () =>
      archive({
        local: { name: ascii('a'.repeat(300)), extra: new Uint8Array(0) },
        stored: good.slice(0, 0),
        entry: { bytes: 136, compressedBytes: 136 },
      }),
    ...refused('ERR_OVERLAP'),
  },
  {
    name: 'no-local-header',
    rule: 24,
    reason: 'data of a member are taken for another',
    bytes: () => archive({ entry: { offset: 3 } }),
    lenient: 'ERR_HEADER',
    strict: 'ERR_GAP',
    at: 'read',
  },
  {
    name: 'overlap-bomb',
    rule: 24,
    reason: 'thousands of entries share one kernel: some kilobytes become gigabytes',
    bytes: () => overlapBomb(200),
    ...refused('ERR_OVERLAP'),
  },
  {
    name: 'bytes-between-members',
    rule: 25,
    reason: 'a member that the directory does not name, which readers from the front see',
    bytes: () => archive({}, { name: 'b.npy', gap: new Uint8Array(40) }),
    ...tolerated('ERR_GAP'),
  },
  {
    name: 'bytes-in-front',
    rule: 25,
    reason: 'a program in front of the archive',
    bytes: () => archive({ gap: ascii('#!/bin/sh\n') }),
    ...tolerated('ERR_GAP'),
  },
  ...localLies(),
  {
    name: 'descriptor-lies',
    rule: 26,
    reason: 'readers from the front take the checksum from there',
    bytes: () =>
      archive({
        flags: 8,
        local: { crc: 0, bytes: 0, compressedBytes: 0 },
        descriptor: u32(0x08074b50, 1, good.length, good.length),
      }),
    ...tolerated('ERR_HEADER'),
  },
  {
    name: 'encrypted',
    rule: 27,
    reason: 'noise would be given out as numbers',
    bytes: () => archive({ flags: 1 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'masked',
    rule: 27,
    reason: 'an encrypted directory hides sizes',
    bytes: () => archive({ flags: 0x2000 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'patch',
    rule: 27,
    reason: 'data that are to be joined with another file',
    bytes: () => archive({ flags: 0x20 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'other-compression',
    rule: 27,
    reason: 'bzip2, lzma and others are not read',
    bytes: () => archive({ method: 12 }),
    ...refused('ERR_UNSUPPORTED'),
  },
  {
    name: 'stored-with-two-lengths',
    rule: 28,
    reason: 'readers map one length and check the other',
    bytes: () => archive({ entry: { bytes: 100 }, local: { bytes: 100 } }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'impossible-ratio',
    rule: 28,
    reason: 'a size that makes a trusting reader allocate: no deflate stream holds so much',
    bytes: () => archive({ method: 8, entry: { bytes: 2 ** 31 }, local: { bytes: 2 ** 31 } }),
    ...refused('ERR_COMPRESSED'),
  },
  {
    name: 'more-comes-out',
    rule: 28,
    reason: 'a bomb: a megabyte comes where an array of 8 bytes is declared',
    bytes: () => {
      const stored = new Uint8Array(deflateRawSync(join(good, new Uint8Array(1_000_000))))
      return archive({ method: 8, stored })
    },
    ...refused('ERR_COMPRESSED'),
  },
  {
    name: 'less-comes-out',
    rule: 28,
    reason: 'the tail of the array would be whatever was in memory',
    bytes: () => {
      const content = npyBytes({ descr: '|u1', shape: [20_000], data: new Uint8Array(20_000) })
      const stored = new Uint8Array(deflateRawSync(content.subarray(0, 15_000)))
      return archive({ method: 8, content, stored })
    },
    ...refused('ERR_COMPRESSED'),
  },
  {
    name: 'less-comes-out-of-much',
    rule: 28,
    reason: 'a long stream is not read when the archive is opened',
    bytes: () => {
      const content = npyBytes({ descr: '|u1', shape: [200_000], data: new Uint8Array(200_000) })
      const stored = new Uint8Array(deflateRawSync(content.subarray(0, 150_000)))
      return archive({ method: 8, content, stored })
    },
    lenient: 'ERR_COMPRESSED',
    strict: 'ERR_COMPRESSED',
    at: 'check',
  },
  {
    name: 'more-comes-out-of-much',
    rule: 28,
    reason: 'a long stream is stopped at the length that is declared',
    bytes: () => {
      const content = npyBytes({ descr: '|u1', shape: [200_000], data: new Uint8Array(200_000) })
      const stored = new Uint8Array(deflateRawSync(join(content, new Uint8Array(10_000_000))))
      return archive({ method: 8, content, stored })
    },
    lenient: 'ERR_COMPRESSED',
    strict: 'ERR_COMPRESSED',
    at: 'check',
  },
  {
    name: 'deflate-cut',
    rule: 28,
    reason: 'a stream that does not end',
    bytes: () => archive({ method: 8, stored: deflated.slice(0, 20) }),
    ...refused('ERR_COMPRESSED'),
  },
  {
    name: 'deflate-damaged',
    rule: 28,
    reason: 'a block type that does not exist',
    bytes: () => archive({ method: 8, stored: new Uint8Array(40).fill(0xff) }),
    ...refused('ERR_COMPRESSED'),
  },
  {
    name: 'bytes-behind-deflate',
    rule: 28,
    reason: 'room behind the end of the stream that no reader looks at',
    bytes: () => archive({ method: 8, stored: join(deflated, new Uint8Array(30)) }),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'check',
  },
  {
    name: 'checksum-differs',
    rule: 29,
    reason: 'data that were damaged or exchanged',
    bytes: () => archive({ entry: { crc: 1 }, local: { crc: 1 } }),
    lenient: 'ERR_CHECKSUM',
    strict: 'ERR_CHECKSUM',
    at: 'check',
  },
  {
    name: 'name-twice',
    rule: 30,
    reason: 'numpy takes the last, others the first',
    bytes: () => archive({}, { content: npyBytes({ data: Int32Array.of(8, 9) }) }),
    ...tolerated('ERR_DUPLICATE'),
  },
  {
    name: 'name-with-zero',
    rule: 30,
    reason: 'Python and C end the name there, others do not',
    bytes: () => archive({ name: 'a.npy\0.npy' }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'name-invalid',
    rule: 30,
    reason: 'names that are not UTF-8 are repaired differently',
    bytes: () => {
      const name = Uint8Array.of(0xff, 0x2e, 0x6e, 0x70, 0x79)
      return archive({ entry: { name }, local: { name } })
    },
    ...refused('ERR_HEADER'),
  },
  {
    name: 'name-leads-out',
    rule: 30,
    reason: 'who unpacks the archive writes elsewhere',
    bytes: () => archive({ name: '../../a.npy' }),
    ...tolerated('ERR_PATH_ESCAPE'),
  },
  {
    name: 'member-is-no-array',
    rule: 31,
    reason: 'numpy gives out the raw bytes of such a member instead of an array',
    bytes: () => archive({ content: new Uint8Array(100) }),
    ...refused('ERR_HEADER'),
  },
  {
    name: 'pickle-in-an-archive',
    rule: 31,
    reason: 'a pickle runs code when it is loaded; the other arrays are good',
    bytes: () => archive({ content: npyBytes({ descr: '|O' }) }),
    ...tolerated('ERR_UNSUPPORTED'),
  },
  {
    name: 'array-beyond-member',
    rule: 31,
    reason: 'the data would continue in the next member',
    bytes: () => archive({ content: npyBytes({ shape: [50] }) }, { name: 'b.npy' }),
    ...refused('ERR_TRUNCATED'),
  },
  {
    name: 'bytes-behind-the-array',
    rule: 31,
    reason: 'room inside a member',
    bytes: () => archive({ content: join(good, new Uint8Array(9)) }),
    ...tolerated('ERR_GAP'),
  },
]

/** The local header says otherwise than the directory, field by field. */
function localLies(): Omit<Attack, 'format'>[] {
  const lies: Record<string, Partial<MemberFields>> = {
    name: { local: { name: ascii('b.npy') } },
    method: { local: { method: 8 } },
    length: { local: { bytes: 12, compressedBytes: 12 } },
    checksum: { local: { crc: 7 } },
    'set of flags': { local: { flags: 8 } },
    'length in its zip64 field': {
      local: { bytes: 0xffffffff, compressedBytes: 0xffffffff, extra: extra(1, u64(2n ** 60n, 2n ** 60n)) },
    },
  }
  return Object.entries(lies).map(([field, more]) => ({
    name: `another ${field} in the local header`.replaceAll(' ', '-'),
    rule: 26,
    reason: 'readers from the front see another array than readers of the directory',
    bytes: () => archive(more),
    ...refused('ERR_HEADER'),
  }))
}

export const ATTACKS: readonly Attack[] = [
  ...NPY.map((attack) => ({ ...attack, format: 'npy' as const })),
  ...NPZ.map((attack) => ({ ...attack, format: 'npz' as const })),
]
