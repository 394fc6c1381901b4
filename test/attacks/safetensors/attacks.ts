/**
 * Hostile safetensors files, one or more per rule, with the abuse and the expected result. `lenient` and `strict` are the
 * error codes of that level's read or check; null where the level may read the file. `at` is where the fault is
 * detected: `read` on opening, `check` only in a check.
 */
import type { ErrorCode } from '../../../lib/errors.js'
import { MAX_DEPTH } from '../../../lib/formats/json_events.js'
import { FORMAT_HEADER_BYTES, MAX_RANK } from '../../../lib/formats/safetensors/schema.js'
import { entryText, headerText, safetensorsFile } from '../../formats/safetensors/safetensors_bytes.js'

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

const GOOD = { name: 'a', dtype: 'U8', shape: [2], offsets: [0, 2] }
const FIELDS = '"dtype":"U8","shape":[2],"data_offsets":[0,2]'

/** A file of two bytes of data under a header as it stands. */
const raw = (header: string | Uint8Array): Uint8Array => safetensorsFile(header, [1, 0])

/** A file of one entry with some of it replaced. */
const entry = (change: Partial<typeof GOOD> | Record<string, unknown>, data: ArrayLike<number> = [1, 0]) =>
  safetensorsFile(headerText([{ ...GOOD, ...change }]), data)

/** The length of a header that is not there. */
function lengthOnly(length: bigint, rest: ArrayLike<number> = []): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(length)
  return new Uint8Array(Buffer.concat([bytes, Uint8Array.from(rest)]))
}

/** An attack that both levels refuse when the file is opened. */
function refused(
  rule: number,
  name: string,
  reason: string,
  code: ErrorCode,
  bytes: () => Uint8Array,
): Attack {
  return { rule, name, reason, bytes, lenient: code, strict: code, at: 'read' }
}

/** An attack that lenient reads, with a finding. */
function named(rule: number, name: string, reason: string, code: ErrorCode, bytes: () => Uint8Array): Attack {
  return { rule, name, reason, bytes, lenient: null, strict: code, at: 'read' }
}

/** Something legal that both levels read, with a finding. */
function legal(rule: number, name: string, reason: string, bytes: () => Uint8Array): Attack {
  return { rule, name, reason, bytes, lenient: null, strict: null, at: 'read' }
}

const LENGTHS: readonly Attack[] = [
  refused(
    1,
    'empty-file',
    'no byte at all: a mapping of length 0 fails on most systems',
    'ERR_TRUNCATED',
    () => new Uint8Array(0),
  ),
  refused(
    1,
    'file-without-length',
    'a reader that takes 8 bytes without looking reads behind the end',
    'ERR_TRUNCATED',
    () => new Uint8Array(7),
  ),
  refused(
    1,
    'header-beyond-file',
    'a trusting reader allocates 90 MB for a file of 8 bytes',
    'ERR_TRUNCATED',
    () => lengthOnly(90_000_000n),
  ),
  refused(1, 'header-one-too-long', 'the header ends one byte behind the file', 'ERR_TRUNCATED', () =>
    lengthOnly(3n, [0x7b, 0x7d]),
  ),
  refused(1, 'header-wraps', '8 + 2^64 - 8 is 0 in 64 bits', 'ERR_LIMIT', () =>
    lengthOnly(2n ** 64n - 8n, [0x7b, 0x7d]),
  ),
  refused(
    1,
    'header-beyond-limit',
    'a header of any length keeps a reader parsing for hours',
    'ERR_LIMIT',
    () => lengthOnly(BigInt(FORMAT_HEADER_BYTES) + 1n, [0x7b, 0x7d]),
  ),
  refused(1, 'header-empty', 'a length of 0 passes every comparison of lengths', 'ERR_HEADER', () =>
    lengthOnly(0n),
  ),
]

const JSON_TEXT: readonly Attack[] = [
  refused(2, 'header-no-brace', 'another format behind a length', 'ERR_HEADER', () => raw(`[{${FIELDS}}]`)),
  refused(2, 'header-number', 'a JSON text that is not an object', 'ERR_HEADER', () => raw('12')),
  refused(2, 'header-byte-order-mark', 'three bytes that many readers drop', 'ERR_HEADER', () =>
    raw(`\ufeff${headerText([GOOD])}`),
  ),
  refused(2, 'header-byte-order-mark-inside', 'a mark behind the last brace', 'ERR_HEADER', () =>
    safetensorsFile('{}\ufeff'),
  ),
  {
    rule: 2,
    name: 'header-space-and-byte-order-mark',
    reason: 'a mark behind a blank, which a tokenizer passed over',
    bytes: () => raw(` \ufeff${headerText([GOOD])}`),
    lenient: 'ERR_HEADER',
    strict: 'ERR_HEADER',
    at: 'read',
  },
  named(
    2,
    'header-leading-space',
    'a reader that detects the format by its ninth byte fails',
    'ERR_HEADER',
    () => raw(` ${headerText([GOOD])}`),
  ),
  named(2, 'header-trailing-line-feed', 'only spaces pad a header', 'ERR_HEADER', () =>
    raw(`${headerText([GOOD])}\n`),
  ),
  refused(2, 'header-trailing-zero', 'padding that JSON readers refuse', 'ERR_HEADER', () =>
    raw(`${headerText([GOOD])}\0`),
  ),
  refused(2, 'header-second-text', 'room for a second header that another reader takes', 'ERR_HEADER', () =>
    raw(`${headerText([GOOD])}${headerText([GOOD])}`),
  ),
  refused(2, 'header-ends-early', 'half of a header that was cut', 'ERR_HEADER', () =>
    raw(`{"a":{${FIELDS}`),
  ),
  refused(
    2,
    'header-comment',
    'comments are not JSON; a reader that knows them sees another file',
    'ERR_HEADER',
    () => raw(`{/*"b":0,*/"a":{${FIELDS}}}`),
  ),
  refused(2, 'header-trailing-comma', 'a comma more', 'ERR_HEADER', () => raw(`{"a":{${FIELDS}},}`)),
  refused(2, 'header-missing-comma', 'a comma less', 'ERR_HEADER', () =>
    raw(`{"a":{"dtype":"U8" "shape":[2]}}`),
  ),
  refused(2, 'header-crossed-brackets', 'brackets that close each other', 'ERR_HEADER', () =>
    raw('{"a":[}]'),
  ),
  refused(2, 'header-single-quotes', 'a text that only tolerant readers know', 'ERR_HEADER', () =>
    raw(`{'a':{${FIELDS}}}`),
  ),
  refused(2, 'header-control-character', 'a raw line feed inside a name', 'ERR_HEADER', () =>
    raw(`{"a\n":{${FIELDS}}}`),
  ),
  refused(2, 'header-not-utf8', 'a name that is not text', 'ERR_HEADER', () =>
    raw(Buffer.concat([Buffer.from('{"a'), Buffer.of(0xff), Buffer.from(`":{${FIELDS}}}`)])),
  ),
  refused(2, 'header-overlong-utf8', 'two bytes for one slash: filters see another name', 'ERR_HEADER', () =>
    raw(Buffer.concat([Buffer.from('{"a'), Buffer.of(0xc0, 0xaf), Buffer.from(`":{${FIELDS}}}`)])),
  ),
  refused(2, 'header-encoded-surrogate', 'half of a pair in UTF-8', 'ERR_HEADER', () =>
    raw(Buffer.concat([Buffer.from('{"a'), Buffer.of(0xed, 0xa0, 0x80), Buffer.from(`":{${FIELDS}}}`)])),
  ),
  named(
    2,
    'name-lone-surrogate',
    'half of a pair as an escape: no reader can write the name again',
    'ERR_HEADER',
    () => raw(`{"\\ud800":{${FIELDS}}}`),
  ),
  refused(3, 'deep-arrays', 'a recursive reader overflows its stack', 'ERR_LIMIT', () =>
    raw(`{"a":{${FIELDS},"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`),
  ),
  refused(3, 'deep-objects', 'the same with keys', 'ERR_LIMIT', () =>
    raw(`{"a":${'{"a":'.repeat(100_000)}0${'}'.repeat(100_000)}}`),
  ),
  refused(3, 'deep-without-end', 'brackets that nobody closes', 'ERR_LIMIT', () =>
    raw(`{"a":{"x":${'['.repeat(200_000)}`),
  ),
  legal(3, 'deep-as-allowed', 'as deep as the reference reads', () => {
    const depth = MAX_DEPTH - 2
    return raw(`{"a":{${FIELDS},"x":${'['.repeat(depth)}${']'.repeat(depth)}}}`)
  }),
]

const NAMES: readonly Attack[] = [
  named(4, 'tensor-twice', 'two readers, two models', 'ERR_DUPLICATE', () =>
    raw(`{"a":{${FIELDS}},"a":{${FIELDS}}}`),
  ),
  named(4, 'tensor-twice-by-escapes', 'the same name spelled twice', 'ERR_DUPLICATE', () =>
    raw(`{"ab":{${FIELDS}},"\\u0061b":{${FIELDS}}}`),
  ),
  named(4, 'field-twice', 'the first reader sees U8, the second I8', 'ERR_DUPLICATE', () =>
    raw(`{"a":{${FIELDS},"dtype":"I8"}}`),
  ),
  {
    rule: 4,
    name: 'field-twice-of-two-kinds',
    reason: 'the first value must not stand when the last is none',
    bytes: () => raw(`{"a":{${FIELDS},"shape":null}}`),
    lenient: 'ERR_HEADER',
    strict: 'ERR_DUPLICATE',
    at: 'read',
  },
  named(4, 'metadata-twice', 'two sets of metadata', 'ERR_DUPLICATE', () =>
    raw(`{"__metadata__":{},"a":{${FIELDS}},"__metadata__":{"x":"y"}}`),
  ),
  named(4, 'metadata-key-twice', 'two values of a key', 'ERR_DUPLICATE', () =>
    raw(`{"__metadata__":{"x":"1","x":"2"},"a":{${FIELDS}}}`),
  ),
  named(5, 'metadata-number', 'a value that is not text', 'ERR_HEADER', () =>
    raw(`{"__metadata__":{"x":1},"a":{${FIELDS}}}`),
  ),
  named(5, 'metadata-nested', 'a tree where a text should be', 'ERR_HEADER', () =>
    raw(`{"__metadata__":{"x":{"dtype":"U8"},"y":[["z"]]},"a":{${FIELDS}}}`),
  ),
  named(5, 'metadata-list', 'no object at all', 'ERR_HEADER', () =>
    raw(`{"__metadata__":["x"],"a":{${FIELDS}}}`),
  ),
  legal(5, 'metadata-null', 'null, which the reference takes as none', () =>
    raw(`{"__metadata__":null,"a":{${FIELDS}}}`),
  ),
  legal(6, 'unknown-key', 'an unknown key, which the reference ignores', () =>
    raw(`{"a":{${FIELDS},"strides":[1],"x":{"dtype":"I8"}}}`),
  ),
  refused(6, 'entry-null', 'no entry where one must be', 'ERR_HEADER', () => raw('{"a":null}')),
  refused(6, 'entry-list', 'the fields as a list, which one library reads and no other', 'ERR_HEADER', () =>
    raw('{"a":["U8",[2],[0,2]]}'),
  ),
  refused(6, 'field-missing', 'an entry without a shape', 'ERR_HEADER', () =>
    raw('{"a":{"dtype":"U8","data_offsets":[0,2]}}'),
  ),
  refused(6, 'field-of-another-kind', 'an object where a list must be', 'ERR_HEADER', () =>
    raw('{"a":{"dtype":"U8","shape":{"0":2},"data_offsets":[0,2]}}'),
  ),
  named(7, 'dtype-unknown', 'a type that nobody knows: its tensor is left out', 'ERR_DTYPE', () =>
    entry({ dtype: 'C128' }),
  ),
  named(7, 'dtype-constructor', 'a name that every object of JavaScript has', 'ERR_DTYPE', () =>
    entry({ dtype: 'constructor' }),
  ),
]

const NUMBERS: readonly Attack[] = [
  ...['-1', '-0', '2.0', '2e0', '1e400', '"2"', 'null', 'true', '[2]', '{}'].map((text) =>
    refused(8, `dimension-${text}`, 'a dimension that is not a whole number', 'ERR_HEADER', () =>
      raw(`{"a":{"dtype":"U8","shape":[${text}],"data_offsets":[0,2]}}`),
    ),
  ),
  refused(8, 'dimension-leading-zero', '02 is not JSON, and octal elsewhere', 'ERR_HEADER', () =>
    raw('{"a":{"dtype":"U8","shape":[02],"data_offsets":[0,2]}}'),
  ),
  refused(
    8,
    'offset-minus-one',
    'an offset before the byte buffer reads the header as numbers',
    'ERR_HEADER',
    () => entry({ offsets: [-1, 1] }),
  ),
  refused(8, 'offset-fraction', 'half of a byte', 'ERR_HEADER', () =>
    raw('{"a":{"dtype":"U8","shape":[2],"data_offsets":[0.0,2]}}'),
  ),
  refused(8, 'offsets-three', 'a third offset that some readers take as the second', 'ERR_HEADER', () =>
    entry({ offsets: [0, 1, 2] }),
  ),
  refused(8, 'offsets-one', 'an end that is undefined', 'ERR_HEADER', () => entry({ offsets: [0] })),
  refused(9, 'dimension-2^53', 'as a double it is another number', 'ERR_OVERFLOW', () =>
    entry({ shape: [2n ** 53n + 1n] }),
  ),
  refused(9, 'dimension-2^64', 'wraps to 0', 'ERR_OVERFLOW', () => entry({ shape: [2n ** 64n] })),
  refused(9, 'dimension-of-a-million-digits', 'a number that takes minutes to convert', 'ERR_OVERFLOW', () =>
    raw(`{"a":{"dtype":"U8","shape":[${'9'.repeat(1_000_000)}],"data_offsets":[0,2]}}`),
  ),
  refused(9, 'product-wraps', '2^32 * 2^32 is 0 in 64 bits', 'ERR_OVERFLOW', () =>
    entry({ shape: [2 ** 32, 2 ** 32] }),
  ),
  refused(9, 'bits-wrap', '2^61 bytes are 0 bits in 64 bits', 'ERR_OVERFLOW', () =>
    entry({ shape: [2 ** 31, 2 ** 30] }),
  ),
  named(9, 'empty-behind-overflow', 'readers that multiply in another order disagree', 'ERR_OVERFLOW', () =>
    entry({ shape: [2 ** 40, 2 ** 40, 0], offsets: [0, 0] }, []),
  ),
  refused(9, 'rank-beyond-limit', 'each axis costs memory in whoever keeps it', 'ERR_RANK', () =>
    entry({ shape: [...Array(MAX_RANK).fill(1), 2] }),
  ),
]

const RANGES: readonly Attack[] = [
  refused(
    10,
    'end-beyond-file',
    'memory of someone else would be given out as numbers',
    'ERR_TRUNCATED',
    () => entry({ shape: [3], offsets: [0, 3] }),
  ),
  refused(10, 'offset-2^53', 'an end that is not an exact double', 'ERR_OVERFLOW', () =>
    entry({ offsets: [0, 2n ** 53n] }),
  ),
  refused(10, 'begin-behind-end', 'a length below zero', 'ERR_OFFSET_RANGE', () =>
    entry({ offsets: [2, 0] }),
  ),
  refused(
    10,
    'range-shorter-than-shape',
    'elements behind the range belong to the next tensor',
    'ERR_OFFSET_RANGE',
    () => entry({ shape: [2], offsets: [0, 1] }, [1]),
  ),
  refused(
    10,
    'range-longer-than-shape',
    'room for hidden bytes behind the elements',
    'ERR_OFFSET_RANGE',
    () => entry({ shape: [1] }),
  ),
  refused(10, 'range-of-an-empty-shape', 'all of it is hidden', 'ERR_OFFSET_RANGE', () =>
    entry({ shape: [0] }),
  ),
  named(11, 'hole-before-first', 'bytes that belong to nobody hold a second format', 'ERR_GAP', () =>
    entry({ shape: [1], offsets: [1, 2] }),
  ),
  named(11, 'hole-between', 'the same between tensors', 'ERR_GAP', () =>
    safetensorsFile(headerText([GOOD, { ...GOOD, name: 'b', offsets: [3, 5] }]), [1, 0, 9, 0, 1]),
  ),
  named(11, 'bytes-behind-last', 'a zip archive reads from the end: two files in one', 'ERR_GAP', () =>
    entry({}, [1, 0, 0x50, 0x4b]),
  ),
  named(11, 'bytes-without-tensors', 'a file of nothing but hidden bytes', 'ERR_GAP', () =>
    safetensorsFile('{}', [1]),
  ),
  named(12, 'overlap', 'two tensors that share bytes', 'ERR_OVERLAP', () =>
    safetensorsFile(headerText([GOOD, { ...GOOD, name: 'b', offsets: [1, 3] }]), [1, 0, 1]),
  ),
  named(12, 'same-bytes', 'two names for the same bytes', 'ERR_OVERLAP', () =>
    safetensorsFile(headerText([GOOD, { ...GOOD, name: 'b' }]), [1, 0]),
  ),
  named(12, 'empty-inside-another', 'shares no byte, and the reference refuses it', 'ERR_OVERLAP', () =>
    safetensorsFile(headerText([GOOD, { ...GOOD, name: 'b', shape: [0], offsets: [1, 1] }]), [1, 0]),
  ),
  refused(
    12,
    'many-names-for-the-same-bytes',
    'a small file whose tensors together fill all memory',
    'ERR_LIMIT',
    () => {
      const names = Array.from({ length: 64 }, (_, at) => `t${at}`)
      const entries = names.map((name) => entryText({ name, dtype: 'U8', shape: [4096], offsets: [0, 4096] }))
      return safetensorsFile(`{${entries.join(',')}}`, new Uint8Array(4096))
    },
  ),
  named(
    13,
    'ends-inside-a-byte',
    'three elements of four bits: where the next tensor begins is unclear',
    'ERR_MISALIGNED',
    () => entry({ dtype: 'F4', shape: [3] }),
  ),
]

const PAYLOADS: readonly Attack[] = [
  {
    rule: 13,
    name: 'unused-bits',
    reason: 'bits that belong to no element',
    bytes: () => entry({ dtype: 'F4', shape: [3] }, [1, 0x10]),
    lenient: null,
    strict: 'ERR_GAP',
    at: 'check',
  },
  {
    rule: 14,
    name: 'boolean-of-two',
    reason: 'a byte of 2 is undefined behaviour where a boolean is a byte; the format does not forbid it',
    bytes: () => entry({ dtype: 'BOOL' }, [1, 2]),
    lenient: null,
    strict: null,
    at: 'check',
  },
]

export const ATTACKS: readonly Attack[] = [
  ...LENGTHS,
  ...JSON_TEXT,
  ...NAMES,
  ...NUMBERS,
  ...RANGES,
  ...PAYLOADS,
]

/** Good files, for mutations. */
export function seedFiles(): Uint8Array[] {
  const entries = [
    { name: 'w', dtype: 'F32', shape: [2, 2], offsets: [0, 16] },
    { name: 'mask', dtype: 'BOOL', shape: [3], offsets: [16, 19] },
    { name: 'codes', dtype: 'F4', shape: [2, 3], offsets: [19, 22] },
    { name: 'empty', dtype: 'I64', shape: [0, 5], offsets: [22, 22] },
    { name: '__proto__', dtype: 'BF16', shape: [], offsets: [22, 24] },
  ]
  const data = Array.from({ length: 24 }, (_, at) => at % 2)
  const blocked = { name: 'conv', dtype: 'U8', shape: [1, 2, 1, 1, 16], offsets: [0, 32] }
  const layout = { 'tilework.layout.conv': '{"layout":"b_fs_yx_fsv16","shape":[1,19,1,1]}' }
  return [
    safetensorsFile(headerText(entries, { format: 'pt', note: 'ü"\\' }), data),
    safetensorsFile(headerText([blocked], layout), new Uint8Array(32)),
    safetensorsFile('{}'),
    safetensorsFile(`${headerText([GOOD])}     `, [1, 0]),
  ]
}
