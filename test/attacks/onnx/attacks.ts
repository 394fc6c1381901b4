/**
 * Hostile ONNX files, at least one per rule, with the abuse and the expected outcome.
 *
 * `lenient` and `strict` are the expected error codes, null where the level may read the file. `at` is `read` for errors
 * of opening and `check` for errors of a check only.
 */
import type { ErrorCode } from '../../../lib/errors.js'
import {
  type Bytes,
  entry,
  type Folder,
  field,
  graphProto,
  int,
  join,
  modelProto,
  nodeProto,
  raw,
  sparseProto,
  tensorProto,
  varint,
} from '../../formats/onnx/onnx_bytes.js'

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

/** External data files beside the hostile models. */
export const FOLDER: Folder = { 'w.bin': new Uint8Array(64), l: new Uint8Array(65_536) }

type Made = () => Uint8Array

const attack = (
  rule: number,
  name: string,
  reason: string,
  [lenient, strict]: readonly [ErrorCode | null, ErrorCode | null],
  bytes: Made,
  at: 'read' | 'check' = 'read',
): Attack => ({ rule, name, reason, bytes, lenient, strict, at })

/** Both levels refuse to open the file. */
const refused = (rule: number, name: string, reason: string, code: ErrorCode, bytes: Made): Attack =>
  attack(rule, name, reason, [code, code], bytes)

/** Lenient opens the file, with a finding. */
const named = (rule: number, name: string, reason: string, code: ErrorCode, bytes: Made): Attack =>
  attack(rule, name, reason, [null, code], bytes)

/** A model of one initializer. */
const model =
  (tensor: Bytes): Made =>
  () =>
    modelProto({ initializers: [tensor] })

const outside = (external: Readonly<Record<string, string>>): Made =>
  model(tensorProto({ dims: [4], type: 2, name: 'w', external }))

const GOOD = tensorProto({ dims: [2], type: 2, name: 'a', values: raw(1, 0) })

const WIRE: readonly Attack[] = [
  refused(
    1,
    'empty-file',
    'an empty file: every message type may be empty, so the type is unknown',
    'ERR_TRUNCATED',
    () => new Uint8Array(0),
  ),
  refused(
    1,
    'length-beyond-file',
    'a trusting reader allocates 2 GB for a file of 7 bytes',
    'ERR_HEADER',
    () => join([0x3a], varint(2 ** 31 - 1), [1]),
  ),
  refused(1, 'length-beyond-message', 'an initializer that is longer than its graph', 'ERR_TRUNCATED', () =>
    modelProto(join(field(2, 'g'), [0x2a], varint(100), GOOD)),
  ),
  refused(1, 'length-of-64-bits', 'an end that wraps around lies before its start', 'ERR_TRUNCATED', () =>
    modelProto(join([0x2a], varint(-1), GOOD)),
  ),
  refused(1, 'endless-number', 'more than ten bytes without an end', 'ERR_HEADER', () =>
    modelProto({ initializers: [join([0x10], new Uint8Array(11).fill(0xff))] }),
  ),
  refused(
    1,
    'number-cut',
    'the message ends inside a varint',
    'ERR_TRUNCATED',
    model(join(GOOD, [0x10, 0x80])),
  ),
  named(
    1,
    'packed-numbers-cut-in-a-segment',
    'protobuf refuses packed numbers of a wrong length, also those of a tensor that is not decoded',
    'ERR_HEADER',
    model(join(GOOD, field(3, []), field(10, [1, 2, 3, 4]))),
  ),
  refused(1, 'field-zero', 'field number 0 is none', 'ERR_HEADER', model(join(GOOD, [0x00, 0x01]))),
  refused(
    1,
    'wire-type-6',
    'an invalid wire type has no length, so the next field cannot be found',
    'ERR_HEADER',
    model(join(GOOD, [0x16, 0x01])),
  ),
  refused(
    1,
    'group-without-end',
    'a group without end swallows all later fields',
    'ERR_TRUNCATED',
    model(join(GOOD, [0xa3, 0x06])),
  ),
  refused(
    1,
    'group-without-start',
    'the end of a group without a start',
    'ERR_HEADER',
    model(join(GOOD, [0xa4, 0x06])),
  ),
  refused(
    1,
    'groups-crossed',
    'groups that end in the wrong order',
    'ERR_HEADER',
    model(join(GOOD, [0xa3, 0x06, 0xab, 0x06, 0xa4, 0x06])),
  ),
  refused(
    1,
    'groups-in-groups',
    'a recursive reader overflows its stack',
    'ERR_LIMIT',
    model(join(GOOD, ...Array.from({ length: 200 }, () => [0xa3, 0x06]))),
  ),
  refused(1, 'nothing-of-onnx', 'fields that no message has', 'ERR_HEADER', () =>
    join(int(1, 1), field(77, 'x')),
  ),
]

function nestedGraphs(levels: number): Bytes {
  let graph = graphProto({})
  for (let level = 0; level < levels; level++) {
    graph = graphProto({ nodes: [nodeProto({ attributes: [field(6, graph)] })] })
  }
  return modelProto(graph)
}

function nestedSequences(levels: number): Bytes {
  let sequence = join(int(2, 1), field(3, GOOD))
  for (let level = 0; level < levels; level++) sequence = join(int(2, 3), field(5, sequence))
  return join(field(1, 'deep'), sequence)
}

const DEPTH: readonly Attack[] = [
  attack(
    2,
    'graphs-in-graphs',
    'each subgraph is three levels; a recursive walk overflows its stack',
    ['ERR_LIMIT', 'ERR_LIMIT'],
    () => nestedGraphs(40),
    'check',
  ),
  refused(2, 'sequences-in-sequences', 'a value that holds itself thousands of times', 'ERR_LIMIT', () =>
    nestedSequences(3000),
  ),
]

const ONE_VALUE = tensorProto({ dims: [1], type: 2, name: 'v', values: raw(1) })
const ONE_INDEX = tensorProto({ dims: [1], type: 7, values: field(7, [0]) })

const SHAPES: readonly Attack[] = [
  refused(
    3,
    'negative-extent',
    'a product of two negative extents is positive',
    'ERR_HEADER',
    model(tensorProto({ dims: [-2, -1], type: 2, values: raw(1, 0) })),
  ),
  refused(
    3,
    'extent-beyond-2-53',
    'an extent that a double cannot hold',
    'ERR_OVERFLOW',
    model(tensorProto({ dims: [2n ** 62n], type: 2, values: raw(1) })),
  ),
  refused(
    3,
    'product-wraps',
    '2^32 x 2^32 is 0 in 64 bits, so no byte would seem to be missing',
    'ERR_OVERFLOW',
    model(tensorProto({ dims: [2 ** 32, 2 ** 32], type: 2, values: raw() })),
  ),
  refused(
    3,
    'product-wraps-to-some',
    'extents whose product is 4 in 64 bits',
    'ERR_OVERFLOW',
    model(tensorProto({ dims: [2 ** 40, 2 ** 24, 4], type: 2, values: raw(1, 2, 3, 4) })),
  ),
  refused(
    3,
    'too-many-axes',
    '300 axes: a product of thousands of digits',
    'ERR_RANK',
    model(tensorProto({ dims: Array.from({ length: 300 }, () => 1), type: 2, values: raw(1) })),
  ),
  refused(
    3,
    'too-many-axes-packed',
    'a million extents of one byte each, which take eight bytes in memory',
    'ERR_RANK',
    model(join(field(1, new Uint8Array(1_000_000).fill(1)), int(2, 2), raw(1))),
  ),
  refused(3, 'too-many-axes-sparse', 'the same in a sparse tensor', 'ERR_COO_SHAPE', () =>
    modelProto({
      sparse: [join(sparseProto(ONE_VALUE, ONE_INDEX, [1]), field(3, new Uint8Array(1_000_000).fill(1)))],
    }),
  ),
  refused(
    3,
    'linear-indices-of-many-axes',
    'an index of eight bytes expands to a row of two thousand',
    'ERR_COO_SHAPE',
    () => modelProto({ sparse: [sparseProto(ONE_VALUE, ONE_INDEX, new Array(255).fill(1))] }),
  ),
  named(
    3,
    'no-dtype',
    'data_type is absent or 0, so no size is known',
    'ERR_DTYPE',
    model(join(int(1, 1), raw(1))),
  ),
  named(
    3,
    'unknown-dtype',
    'an unknown data_type',
    'ERR_DTYPE',
    model(tensorProto({ dims: [1], type: 99, values: raw(1) })),
  ),
]

/** Each takes 15 bytes of the model and names a whole external file. */
const ALL_OUTSIDE = tensorProto({ dims: [65_536], type: 2, external: { location: 'l' } })

const SIZES: readonly Attack[] = [
  refused(
    4,
    'raw-too-short',
    'memory after the values would be returned as numbers',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [1000], type: 1, values: raw(1, 2, 3, 4) })),
  ),
  refused(
    4,
    'raw-not-a-multiple',
    'raw_data that ends inside an element: a copy by elements runs over its end',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [2], type: 1, values: raw(1, 2, 3, 4, 5, 6, 7) })),
  ),
  refused(
    4,
    'nibbles-too-few',
    'too few packed 4-bit values, which a reader pads silently',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [9], type: 22, values: raw(1, 2, 3, 4) })),
  ),
  refused(
    4,
    'nibble-entries-too-few',
    'a checker that assumes four bytes per entry accepts 9 elements in 2 entries',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [9], type: 22, values: field(5, [1, 2]) })),
  ),
  refused(
    4,
    'crumbs-too-few',
    '2-bit values in a quarter of the entries',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [17], type: 26, values: field(5, [1, 2]) })),
  ),
  refused(
    4,
    'entries-too-few',
    'three int64 in a field of two bytes',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [3], type: 7, values: field(7, [1, 2]) })),
  ),
  attack(
    4,
    'entries-fewer-than-bytes',
    'three int64 in three bytes that hold two varints: found by counting',
    ['ERR_TRUNCATED', 'ERR_TRUNCATED'],
    model(tensorProto({ dims: [3], type: 7, name: 'a', values: field(7, [1, 0x80, 1]) })),
    'check',
  ),
  refused(
    4,
    'floats-too-few',
    'a typed field of fixed size that is too short',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [3], type: 1, values: field(4, new Uint8Array(8)) })),
  ),
  refused(
    4,
    'floats-cut',
    'packed runs of 3 and 5 bytes are two numbers to one reader and none to protobuf',
    'ERR_HEADER',
    model(
      tensorProto({
        dims: [2],
        type: 1,
        values: join(field(4, new Uint8Array(3)), field(4, new Uint8Array(5))),
      }),
    ),
  ),
  refused(
    4,
    'strings-too-few',
    'a list of strings that is shorter than the shape',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [3], type: 8, values: join(field(6, 'a'), field(6, 'b')) })),
  ),
  attack(
    4,
    'raw-empty-beside-floats',
    'an empty raw_data hides the values of the typed field',
    ['ERR_TRUNCATED', 'ERR_HEADER'],
    model(tensorProto({ dims: [1], type: 1, values: join(field(4, new Uint8Array(4)), raw()) })),
  ),
  named(
    4,
    'raw-too-long',
    'bytes that belong to no element can hide other content',
    'ERR_GAP',
    model(tensorProto({ dims: [1], type: 2, values: raw(1, 2) })),
  ),
  named(
    4,
    'two-value-fields',
    'two readers that prefer different fields see different values',
    'ERR_HEADER',
    model(tensorProto({ dims: [1], type: 1, values: join(field(4, new Uint8Array(4)), raw(1, 2, 3, 4)) })),
  ),
  named(
    4,
    'no-values',
    'elements without data become zeros of the declared shape elsewhere',
    'ERR_NO_DATA',
    model(tensorProto({ dims: [2 ** 20, 2 ** 20], type: 1 })),
  ),
  refused(
    4,
    'claims-terabytes',
    'a short file that claims 2^45 elements',
    'ERR_TRUNCATED',
    model(tensorProto({ dims: [2 ** 25, 2 ** 20], type: 2, values: raw(1) })),
  ),
  refused(
    4,
    'claims-more-than-all',
    'many tensors name the same external bytes: loading all of them exhausts memory',
    'ERR_LIMIT',
    () => modelProto({ initializers: Array.from({ length: 5000 }, () => ALL_OUTSIDE) }),
  ),
]

/** The same bytes `count` times. */
function repeated(bytes: Bytes, count: number): Bytes {
  const all = new Uint8Array(count * bytes.length)
  for (let at = 0; at < all.length; at += bytes.length) all.set(bytes, at)
  return all
}

const BOMBS: readonly Attack[] = [
  attack(
    8,
    'empty-nodes',
    'a node of two bytes needs hundreds in memory',
    ['ERR_LIMIT', 'ERR_LIMIT'],
    () => modelProto(join(field(2, 'g'), repeated(field(1, []), 70_000))),
    'check',
  ),
  attack(
    8,
    'empty-functions',
    'more functions than any reader accepts',
    ['ERR_LIMIT', 'ERR_LIMIT'],
    () => modelProto({}, repeated(field(25, []), 10_001)),
    'check',
  ),
  refused(8, 'sparse-tensors', 'an object for every ten bytes', 'ERR_LIMIT', () =>
    modelProto(join(field(2, 'g'), repeated(field(15, sparseProto(ONE_VALUE, ONE_INDEX, [1])), 10_001))),
  ),
  refused(
    8,
    'metadata',
    'millions of metadata entries, which are parsed each time the tensor is made',
    'ERR_LIMIT',
    model(join(GOOD, repeated(field(16, []), 10_001))),
  ),
]

const EXTERNAL: readonly Attack[] = [
  refused(
    5,
    'parent-folder',
    'CVE-2022-25882: a location with ../ reads any file',
    'ERR_PATH_ESCAPE',
    outside({ location: '../../etc/passwd' }),
  ),
  refused(
    5,
    'parent-after-a-name',
    'CVE-2024-27318: passes a check of the first characters only',
    'ERR_PATH_ESCAPE',
    outside({ location: 'x/../../y' }),
  ),
  refused(
    5,
    'memory-address',
    'a location that onnxruntime read as an address in its memory',
    'ERR_PATH_ESCAPE',
    outside({ location: '*/_ORT_MEM_ADDR_/*', offset: '4096', length: '4' }),
  ),
  refused(
    5,
    'no-location',
    'a folder, or the model itself, would be opened',
    'ERR_HEADER',
    outside({ offset: '0' }),
  ),
  refused(5, 'empty-location', 'the same by an empty text', 'ERR_HEADER', outside({ location: '' })),
  refused(
    5,
    'huge-length',
    'CVE-2026-34445: a length of exabytes is allocated before anything is read',
    'ERR_OVERFLOW',
    outside({ location: 'w.bin', length: '9223372036854775807' }),
  ),
  refused(
    5,
    'negative-length',
    'CVE-2026-34445: a negative length reads to the end',
    'ERR_HEADER',
    outside({ location: 'w.bin', length: '-1' }),
  ),
  refused(
    5,
    'negative-offset',
    'an offset before the file',
    'ERR_HEADER',
    outside({ location: 'w.bin', offset: '-64' }),
  ),
  refused(
    5,
    'offset-wraps',
    'an offset that wraps to a small number in 64 bits',
    'ERR_OVERFLOW',
    outside({ location: 'w.bin', offset: '18446744073709551616' }),
  ),
  refused(
    5,
    'beyond-the-file',
    'PR 8319 and others: a range beyond the end is returned truncated',
    'ERR_OFFSET_RANGE',
    outside({ location: 'w.bin', offset: '61' }),
  ),
  refused(
    5,
    'length-too-short',
    'fewer bytes than the shape needs',
    'ERR_TRUNCATED',
    outside({ location: 'w.bin', length: '3' }),
  ),
  named(
    5,
    'missing-file',
    'a missing file; other tensors can be read without it',
    'ERR_IO',
    outside({ location: 'gone.bin' }),
  ),
  attack(
    5,
    'key-as-property',
    'CVE-2026-34445: keys become object attributes elsewhere; here they are strings',
    [null, null],
    outside({ location: 'w.bin', __proto__0: 'x', constructor: 'y', basepath: '/' }),
    'check',
  ),
  named(
    5,
    'external-strings',
    'strings have no fixed size, so a range cannot hold them',
    'ERR_DTYPE',
    model(tensorProto({ dims: [4], type: 8, external: { location: 'w.bin' } })),
  ),
  named(
    5,
    'internal-and-external',
    'values in the model and in an external file',
    'ERR_HEADER',
    model(tensorProto({ dims: [4], type: 2, values: raw(1, 2, 3, 4), external: { location: 'w.bin' } })),
  ),
  attack(
    5,
    'wrong-checksum',
    'replaced data',
    [null, 'ERR_CHECKSUM'],
    outside({ location: 'w.bin', checksum: '00' }),
    'check',
  ),
]

const VALUES = tensorProto({ dims: [2], type: 2, name: 'c', values: raw(1, 2) })
const indices = (...numbers: number[]): Bytes =>
  tensorProto({
    dims: [numbers.length],
    type: 7,
    values: field(7, join(...numbers.map((number) => varint(number)))),
  })

const SPARSE: readonly Attack[] = [
  refused(6, 'values-no-list', 'values of two axes', 'ERR_COO_SHAPE', () =>
    modelProto({
      sparse: [sparseProto(tensorProto({ dims: [1, 2], type: 2, values: raw(1, 2) }), indices(0, 1), [4])],
    }),
  ),
  refused(6, 'indices-too-few', 'an entry without index', 'ERR_COO_SHAPE', () =>
    modelProto({ sparse: [sparseProto(VALUES, indices(0), [4])] }),
  ),
  refused(6, 'no-indices', 'entries without indices', 'ERR_COO_SHAPE', () =>
    modelProto({ sparse: [sparseProto(VALUES, undefined, [4])] }),
  ),
  named(6, 'indices-without-data', 'indices that are declared and not there', 'ERR_NO_DATA', () =>
    modelProto({ sparse: [sparseProto(VALUES, tensorProto({ dims: [2], type: 7 }), [4])] }),
  ),
  refused(6, 'no-dims', 'a sparse tensor without a shape', 'ERR_COO_SHAPE', () =>
    modelProto({ sparse: [sparseProto(VALUES, indices(0, 1), [])] }),
  ),
  refused(6, 'values-twice', 'a reader that does not merge them takes other values', 'ERR_DUPLICATE', () =>
    modelProto({ sparse: [join(field(1, VALUES), sparseProto(VALUES, indices(0, 1), [4]))] }),
  ),
  refused(6, 'indices-twice', 'the same of the indices', 'ERR_DUPLICATE', () =>
    modelProto({ sparse: [join(field(2, indices(0, 1)), sparseProto(VALUES, indices(0, 1), [4]))] }),
  ),
  refused(6, 'indices-of-floats', 'indices of another type', 'ERR_COO_SHAPE', () =>
    modelProto({
      sparse: [sparseProto(VALUES, tensorProto({ dims: [2], type: 6, values: field(5, [0, 1]) }), [4])],
    }),
  ),
  attack(
    6,
    'index-outside',
    'an index outside of the shape writes outside of the dense tensor',
    ['ERR_COO_INDEX', 'ERR_COO_INDEX'],
    () => modelProto({ sparse: [sparseProto(VALUES, indices(0, 4), [4])] }),
    'check',
  ),
  attack(
    6,
    'index-twice',
    'two values for one element',
    [null, 'ERR_COO_DUPLICATE'],
    () => modelProto({ sparse: [sparseProto(VALUES, indices(1, 1), [4])] }),
    'check',
  ),
]

const NAMES: readonly Attack[] = [
  attack(
    7,
    'name-twice',
    'two initializers of one name: readers differ in which one they use',
    [null, 'ERR_DUPLICATE'],
    () => modelProto({ initializers: [GOOD, GOOD] }),
    'check',
  ),
  attack(
    7,
    'name-no-utf8',
    'a name that is not UTF-8',
    [null, 'ERR_HEADER'],
    model(join(int(1, 1), int(2, 2), raw(1), field(8, [0xff]))),
    'check',
  ),
  attack(
    7,
    'cycle',
    'nodes that depend on each other: a recursive walk never ends',
    [null, 'ERR_GRAPH'],
    () =>
      modelProto({
        nodes: [nodeProto({ inputs: ['a'], outputs: ['b'] }), nodeProto({ inputs: ['b'], outputs: ['a'] })],
      }),
    'check',
  ),
  attack(
    7,
    'wrong-wire-type',
    'a known field with another wire type is read as an unknown field',
    [null, 'ERR_HEADER'],
    () => modelProto(join(field(2, 'g'), int(11, 1))),
    'check',
  ),
  attack(
    7,
    'repeated-property',
    'a repeated key of external_data: the last one wins',
    [null, null],
    model(
      join(
        tensorProto({ dims: [4], type: 2, name: 'w', external: { location: '../x' } }),
        field(13, entry('location', 'w.bin')),
      ),
    ),
    'check',
  ),
]

export const ATTACKS: readonly Attack[] = [
  ...WIRE,
  ...DEPTH,
  ...SHAPES,
  ...SIZES,
  ...BOMBS,
  ...EXTERNAL,
  ...SPARSE,
  ...NAMES,
]
