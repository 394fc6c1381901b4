/** Mutated checkpoints are read or refused, in memory proportional to the file, and nothing is imported. */
import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { pytorch } from '../../../lib/formats/pytorch/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import { readOptions } from '../../formats/npy/npy_bytes.js'
import {
  call,
  checkpoint,
  dict,
  double,
  get,
  global,
  int,
  join,
  legacy,
  list,
  NONE,
  pickle,
  put,
  storage,
  tensor,
  text,
  tuple,
} from '../../formats/pytorch/checkpoint_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'

const MUTATIONS = mutationCount(800)
const SEED = fuzzSeed(20_262)

const CANARY = '/tmp/tilework_canary'

const indices = tensor({ storageClass: 'LongStorage', key: '1', elements: 4, shape: [2, 2], strides: [2, 1] })
const values = tensor({ elements: 6, shape: [2], strides: [1] })
const layout = call(global('torch.serialization', '_get_layout'), text('torch.sparse_coo'))
const sparse = call(
  global('torch._utils', '_rebuild_sparse_tensor'),
  layout,
  tuple(indices, values, tuple(int(3), int(3)), NONE),
)
const quantized = call(
  global('torch._utils', '_rebuild_qtensor'),
  storage({ storageClass: 'QUInt8Storage', key: '2', elements: 4 }),
  int(0),
  tuple(int(2), int(2)),
  tuple(int(1), int(2)),
  tuple(global('torch', 'per_tensor_affine'), double(0.5), int(3)),
  NONE,
  NONE,
)
const full = pickle(
  dict(
    [text('w'), join(tensor(), put(1))],
    [text('tied'), get(1)],
    [text('t'), tensor({ shape: [3, 2], strides: [1, 3] })],
    [text('window'), tensor({ shape: [3, 2], strides: [1, 1], offset: 1 })],
    [text('sparse'), sparse],
    [text('q'), quantized],
    [text('plain'), list(int(2n ** 60n), double(1.5), text('ü'), NONE, tuple(int(1)))],
  ),
)
const storages = {
  0: new Uint8Array(Float32Array.from([1, 2, 3, 4, 5, 6]).buffer),
  1: new Uint8Array(BigInt64Array.from([0n, 1n, 2n, 0n]).buffer),
  2: Uint8Array.of(1, 2, 3, 4),
}

const SEEDS = [
  checkpoint({ pickle: full, storages }),
  checkpoint({ pickle: full, storages, method: 8, byteOrder: 'big' }),
  checkpoint({ pickle: pickle(tensor()) }),
  legacy(full, { 0: [6, storages[0]], 1: [4, storages[1]], 2: [4, storages[2]] }),
]

/** Numbers at which arithmetic overflows or rounds. */
const EDGES = [0, 1, 2, 7, 8, 255, 256, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff]

/** Opcodes and names, so that pickles become other pickles and not only noise. */
const WORDS = [
  ...[
    '(',
    't',
    '.',
    'R',
    'Q',
    'b',
    '\x81',
    ']',
    '}',
    'e',
    'u',
    's',
    'a',
    'N',
    '\x89',
    '0',
    'h\x01',
    'q\x01',
    'j',
    'r',
  ],
  ...[
    'cos\nsystem\n',
    'ctorch\nSize\n',
    'ccollections\nOrderedDict\n',
    'ctorch._utils\n_rebuild_parameter\n',
  ],
  ...['\x85', '\x86', '\x87', 'K\xff', 'J\xff\xff\xff\xff', '\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f'],
  ...['archive/', 'data/0', 'big', 'little', 'PK\x01\x02', 'PK\x03\x04', 'PK\x05\x06'],
]

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  copyRun(1, 40),
  (bytes, at, random) => {
    if (at + 4 <= bytes.length) new DataView(bytes.buffer).setUint32(at, EDGES[random(EDGES.length)]!, true)
    return bytes
  },
  (bytes, at, random) => {
    const word = Buffer.from(WORDS[random(WORDS.length)]!, 'latin1')
    bytes.set(word.subarray(0, bytes.length - at), at)
    return bytes
  },
]

async function useTensor(tensorOfFile: Tensor, fileBytes: number): Promise<void> {
  if (!tensorOfFile.hasData) return
  // Overlapping views may have many times the bytes of the file; a caller asks before it loads them.
  if (tensorOfFile.sizeExact > BigInt(1032 * fileBytes)) return
  if (tensorOfFile.kind === 'dense')
    expect((await tensorOfFile.bytes()).length).toBe(tensorOfFile.storage.byteLength)
  else if (tensorOfFile.kind === 'sparse') await tensorOfFile.values()
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors } = await pytorch.read(source, readOptions(level))
  // Windows between two neighbouring headers may be read twice, and the pickles of a stream are found by reading.
  expect(source.bytesRead).toBeLessThanOrEqual(6 * bytes.length + 16_384)
  for (const each of tensors) await useTensor(each, bytes.length).catch(expectRefusal)
}

it(`${MUTATIONS} mutated checkpoints are read or refused, and a check agrees`, async () => {
  const random = randomNumbers(SEED)
  const next = (round: number) => mutate(SEEDS[round % SEEDS.length]!, CHANGES, 2, random)
  await expectReadOrRefused(MUTATIONS, next, {
    read,
    check: (bytes, level) => pytorch.check(new CountingSource(bytes), readOptions(level)),
  })
  expect(existsSync(CANARY)).toBe(false)
})
