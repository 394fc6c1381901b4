/** Mutated npy and npz files are read or refused, in memory proportional to the file. */
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import type { Format } from '../../../lib/formats/format.js'
import { npy, npz } from '../../../lib/formats/npy/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import { npyBytes, readOptions } from '../../formats/npy/npy_bytes.js'
import { extra, u32, u64, zipBytes } from '../../formats/npy/zip_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS } from './attacks.js'

const MUTATIONS = mutationCount(1250)
const SEED = fuzzSeed(20_261)

const floats = npyBytes({ descr: '>f4', shape: [2, 3], fortran: true, data: new Float32Array(6).fill(1) })
const texts = npyBytes({ descr: '<U2', shape: [2], data: Uint32Array.of(65, 66, 67, 0) })

/** Enough data that not every change hits a header. */
const numbers = npyBytes({ shape: [100], data: Int32Array.from({ length: 100 }, (_, i) => i * i * i) })

function seedsOf(method: number): Uint8Array {
  const escaped = { bytes: 0xffffffff, compressedBytes: 0xffffffff }
  const sizes = extra(1, u64(floats.length, floats.length))
  return zipBytes(
    [
      { name: 'a.npy', content: numbers, method },
      { name: 'texts.npy', content: texts, method },
      method === 0
        ? { name: 'f.npy', content: floats, local: { ...escaped, extra: sizes } }
        : { name: 'f.npy', content: floats, method },
      { name: 'note.txt', content: Buffer.from('note') },
      {
        name: 'later.npy',
        content: npyBytes(),
        flags: 8,
        local: { crc: 0, bytes: 0, compressedBytes: 0 },
        descriptor: u32(0x08074b50, crc32(npyBytes()), 136, 136),
      },
    ],
    method === 0 ? { zip64: {} } : {},
  )
}

interface Seeds {
  readonly format: Format<never>
  readonly good: Uint8Array[]
  /** Hostile files, mutated further. */
  readonly hostile: Uint8Array[]
}

const hostileOf = (name: string): Uint8Array[] =>
  ATTACKS.filter(({ format }) => format === name)
    .map(({ bytes }) => bytes())
    .filter(({ length }) => length < 2048)

const scalar = npyBytes({ shape: [], data: Int32Array.of(1) })
const SEEDS: Record<string, Seeds> = {
  npy: {
    format: npy,
    good: [numbers, floats, texts, npyBytes({ version: [3, 0] }), scalar],
    hostile: hostileOf('npy'),
  },
  npz: { format: npz as Format<never>, good: [seedsOf(0), seedsOf(8)], hostile: hostileOf('npz') },
}

/** Numbers at which arithmetic overflows or rounds. */
const EDGES = [
  0, 1, 2, 7, 8, 16, 21, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
]

/** Fragments of headers, so that literals become other literals and not only noise. */
const WORDS = [
  'True',
  'False',
  '(',
  ')',
  ',',
  "'",
  '{',
  '}',
  '>',
  '<f8',
  '|S9',
  '<U1',
  '|O',
  '0',
  '9999999999',
  '-1',
  'L',
  '\\x',
  'PK\x01\x02',
  'PK\x03\x04',
  'PK\x05\x06',
]

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  copyRun(8, 8),
  (bytes, at, random) => {
    if (at + 4 <= bytes.length) new DataView(bytes.buffer).setUint32(at, EDGES[random(EDGES.length)]!, true)
    return bytes
  },
  (bytes, at, random) => {
    if (at + 2 <= bytes.length) new DataView(bytes.buffer).setUint16(at, random(bytes.length + 8), true)
    return bytes
  },
  (bytes, at, random) => {
    const word = Buffer.from(WORDS[random(WORDS.length)]!, 'latin1')
    bytes.set(word.subarray(0, bytes.length - at), at)
    return bytes
  },
]

async function useTensor(tensor: Tensor): Promise<void> {
  // Deflate expands a byte to a thousand; a file of some kilobytes may not ask for more.
  expect(tensor.size).toBeLessThan(1032 * 4096)
  if (tensor.kind === 'dense') {
    if (tensor.dtype.startsWith('complex'))
      expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
    else expect((await tensor.toTypedArray()).length).toBe(tensor.size)
  } else if (tensor.kind === 'string') {
    expect((await tensor.rawStrings()).length).toBe(tensor.size)
    expect((await tensor.strings()).length).toBe(tensor.size)
  }
}

async function read(format: Format<never>, bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors } = await format.read(source, readOptions(level))
  // A window between two neighbouring headers may be read twice.
  expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length + 8192)
  for (const tensor of tensors) await useTensor(tensor).catch(expectRefusal)
}

it.each(['npy', 'npz'])(
  `${MUTATIONS} mutated %s files are read or refused, and a check agrees`,
  { timeout: 120_000 },
  async (name) => {
    const { format, good, hostile } = SEEDS[name]!
    const random = randomNumbers(SEED)
    const next = (): Uint8Array => {
      const files = random(4) === 0 ? hostile : good
      return mutate(files[random(files.length)]!, CHANGES, 2, random)
    }
    await expectReadOrRefused(MUTATIONS, next, {
      read: (bytes, level) => read(format, bytes, level),
      check: (bytes, level) => format.check(new CountingSource(bytes), readOptions(level)),
    })
  },
)
