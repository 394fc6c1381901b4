/** Hostile and odd GGUF files; README.md argues each. */
import {
  ARCHITECTURE,
  alignmentKey,
  Encoder,
  floats,
  ggufFile,
  oneTensor,
} from '../../formats/gguf/gguf_bytes.js'

export interface Attack {
  readonly name: string
  readonly bytes: () => Uint8Array
  /** The code of the refusal; null where a lenient open reports `strict` and continues. */
  readonly lenient: string | null
  readonly strict: string | null
}

const to = new Encoder()
const TWO_63 = 2n ** 63n

function refused(name: string, code: string, bytes: () => Uint8Array): Attack {
  return { name, bytes, lenient: code, strict: code }
}

function deviates(name: string, code: string, bytes: () => Uint8Array): Attack {
  return { name, bytes, lenient: null, strict: code }
}

function withInfo(fields: object, data = floats(0, 1, 2, 3, 4, 5, 6, 7)): Uint8Array {
  return ggufFile({ infos: [{ name: 'a', dims: [8], type: 0, offset: 0, ...fields }], data })
}

function twoTensors(offset: number, data: Uint8Array, name = 'b', dims = [8]): Uint8Array {
  const infos = [
    { name: 'a', dims, type: 0, offset: 0 },
    { name, dims, type: 0, offset },
  ]
  return ggufFile({ infos, data })
}

function deepArray(depth: number): Uint8Array {
  const levels = Array.from({ length: depth }, () => Buffer.concat([to.number(9, 4), to.size(1)]))
  const value = Buffer.concat([...levels, to.number(0, 4), to.size(0)])
  return ggufFile({ keys: [to.key('k', 9, value)] })
}

export const ATTACKS: readonly Attack[] = [
  refused('empty', 'ERR_TRUNCATED', () => new Uint8Array(0)),
  refused('magic', 'ERR_HEADER', () => Buffer.concat([Buffer.from('GGUX'), oneTensor().subarray(4)])),
  refused('version 0', 'ERR_VALUE', () => oneTensor({ version: 0 })),
  refused('version 4', 'ERR_VALUE', () => oneTensor({ version: 4 })),
  refused('tensor count 2^63', 'ERR_TRUNCATED', () => oneTensor({ tensorCount: TWO_63 })),
  refused('tensor count above the file', 'ERR_TRUNCATED', () => oneTensor({ tensorCount: 100 })),
  refused('key count 2^64 - 1', 'ERR_TRUNCATED', () => oneTensor({ keyCount: 2n ** 64n - 1n })),
  refused('key longer than the file', 'ERR_TRUNCATED', () =>
    ggufFile({ keys: [Buffer.concat([to.text('k', 2n ** 40n), Buffer.alloc(12)])] }),
  ),
  refused('text of 2^64 - 1 bytes', 'ERR_TRUNCATED', () =>
    ggufFile({ keys: [to.key('key', 8, to.text('x', 2n ** 64n - 1n))] }),
  ),
  refused('array whose bytes are 0 modulo 2^64', 'ERR_TRUNCATED', () =>
    ggufFile({ keys: [to.key('key', 9, to.array(10, [Buffer.alloc(8)], 2n ** 61n))] }),
  ),
  refused('array of 2^53 texts', 'ERR_TRUNCATED', () =>
    ggufFile({ keys: [to.key('key', 9, to.array(8, [to.text('x')], 2n ** 53n))] }),
  ),
  refused('arrays 5 deep', 'ERR_LIMIT', () => deepArray(5)),
  refused('arrays 20,000 deep', 'ERR_LIMIT', () => deepArray(20_000)),
  refused('value type 13', 'ERR_VALUE', () => ggufFile({ keys: [to.key('key', 13, Buffer.alloc(8))] })),
  refused('item type 13', 'ERR_VALUE', () =>
    ggufFile({ keys: [to.key('key', 9, to.array(13, [Buffer.alloc(8)]))] }),
  ),
  refused('a key twice', 'ERR_DUPLICATE', () => ggufFile({ keys: [ARCHITECTURE, ARCHITECTURE] })),
  refused('a tensor twice', 'ERR_DUPLICATE', () => twoTensors(32, Buffer.alloc(64), 'a')),
  refused('5 dims', 'ERR_RANK', () => withInfo({ dims: [2, 2, 2, 1, 1] })),
  refused('2^32 - 1 dims', 'ERR_RANK', () => withInfo({ rank: 2 ** 32 - 1 })),
  refused('dims whose product is 0 modulo 2^64', 'ERR_OVERFLOW', () =>
    withInfo({ dims: [2 ** 32, 2 ** 32] }),
  ),
  refused('a dimension of 2^63', 'ERR_OVERFLOW', () => withInfo({ dims: [TWO_63] })),
  refused('dims of 2^63 bytes beside a 0', 'ERR_OVERFLOW', () => withInfo({ dims: [0, 2 ** 31, 2 ** 32] })),
  refused('offset behind the end', 'ERR_OFFSET_RANGE', () => withInfo({ offset: 2 ** 20 })),
  refused('offset 2^64 - 32', 'ERR_OFFSET_RANGE', () => withInfo({ offset: 2n ** 64n - 32n })),
  refused('cut data', 'ERR_TRUNCATED', () => oneTensor().slice(0, -4)),
  refused('no data', 'ERR_TRUNCATED', () => withInfo({}, new Uint8Array(0))),
  refused('alignment 0', 'ERR_VALUE', () => oneTensor({ keys: [ARCHITECTURE, alignmentKey(0)] })),
  refused('alignment 3', 'ERR_VALUE', () => oneTensor({ keys: [ARCHITECTURE, alignmentKey(3)] })),
  refused('alignment of int32', 'ERR_VALUE', () => oneTensor({ keys: [ARCHITECTURE, alignmentKey(32, 5)] })),
  refused('alignment 2^31', 'ERR_OFFSET_RANGE', () =>
    oneTensor({ keys: [ARCHITECTURE, alignmentKey(2 ** 31)] }),
  ),
  ...[4, 9, 31, 36, 43, 200, 2 ** 32 - 1].map((type) =>
    refused(`type ${type}`, 'ERR_DTYPE', () => withInfo({ type })),
  ),
  refused('rows that are no whole blocks', 'ERR_DTYPE', () =>
    withInfo({ type: 2, dims: [33] }, Buffer.alloc(64)),
  ),
  refused('rows of half a block, whole together', 'ERR_DTYPE', () =>
    withInfo({ type: 2, dims: [16, 2] }, Buffer.alloc(32)),
  ),
  deviates('misaligned tensor', 'ERR_MISALIGNED', () => twoTensors(16, Buffer.alloc(32), 'b', [4])),
  deviates('overlap', 'ERR_OVERLAP', () => twoTensors(0, Buffer.alloc(32))),
  deviates('gap', 'ERR_GAP', () => twoTensors(64, Buffer.alloc(96))),
  deviates('bytes at the end', 'ERR_GAP', () => Buffer.concat([oneTensor(), Buffer.from('extra')])),
  deviates('key that is not UTF-8', 'ERR_VALUE', () =>
    ggufFile({ keys: [ARCHITECTURE, to.key(Uint8Array.of(0x6b, 0xff), 0, Uint8Array.of(1))] }),
  ),
  deviates('empty key', 'ERR_HEADER', () =>
    ggufFile({ keys: [ARCHITECTURE, to.key('', 0, Uint8Array.of(1))] }),
  ),
  deviates('empty tensor name', 'ERR_HEADER', () => withInfo({ name: '' })),
  deviates('name of 64 bytes', 'ERR_LIMIT', () => withInfo({ name: 'n'.repeat(64) })),
  {
    name: 'padding that is not zero',
    bytes: () => {
      const bytes = oneTensor()
      bytes[bytes.length - 33] = 0xaa
      return bytes
    },
    lenient: null,
    strict: 'ERR_GAP',
  },
]

/** Files that are right. */
export function seedFiles(): Uint8Array[] {
  const big = new Encoder(true)
  const old = new Encoder(false, true)
  const q8 = Buffer.from(Uint8Array.from({ length: 68 }, (_, at) => (at * 37) % 251))
  return [
    oneTensor(),
    ggufFile({ keys: [] }),
    oneTensor({ version: 2 }),
    oneTensor({ version: 1, keys: [old.key('general.architecture', 8, old.text('test'))] }),
    oneTensor({ isBigEndian: true, keys: [big.key('general.architecture', 8, big.text('test'))] }),
    ggufFile({
      keys: [
        ARCHITECTURE,
        to.key(
          'tokens',
          9,
          to.array(
            8,
            ['a', 'bc', ''].map((text) => to.text(text)),
          ),
        ),
        to.key('scores', 9, to.array(6, [floats(1, 2)], 2)),
        to.key('nested', 9, to.array(9, [to.array(0, [Uint8Array.of(1)])])),
        to.key('flag', 7, Uint8Array.of(1)),
      ],
      infos: [
        { name: 'q', dims: [32, 2], type: 8, offset: 0 },
        { name: 's', dims: [], type: 26, offset: 96 },
        { name: 'e', dims: [0, 3], type: 1, offset: 128 },
      ],
      data: Buffer.concat([q8, Buffer.alloc(28), Buffer.from([1, 2, 3, 4]), Buffer.alloc(28)]),
    }),
  ]
}
