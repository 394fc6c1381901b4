/**
 * Five thousand files that are almost right. Each must be opened, so that every tensor of it can be used, or be refused
 * with a TileworkError; nothing may crash, hang, or take memory that the file does not justify. The seed is fixed, so
 * a failure can be run again; TILEWORK_FUZZ_SEED tries another.
 */
import { crc32 } from 'node:zlib'
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import type { Format } from '../../../lib/formats/format.js'
import { npy, npz } from '../../../lib/formats/npy/index.js'
import type { Tensor } from '../../../lib/tensor/tensor.js'
import { npyBytes, readOptions } from '../../formats/npy/npy_bytes.js'
import { extra, u32, u64, zipBytes } from '../../formats/npy/zip_bytes.js'
import { CountingSource } from '../counting_source.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS } from './attacks.js'

const MUTATIONS = 5_000
const SEED = fuzzSeed(20_261)

const floats = npyBytes({ descr: '>f4', shape: [2, 3], fortran: true, data: new Float32Array(6).fill(1) })
const texts = npyBytes({ descr: '<U2', shape: [2], data: Uint32Array.of(65, 66, 67, 0) })

/** Data enough that not every change hits a header. */
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
  /** Hostile already: what they try is changed further. */
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

/** Numbers at which arithmetic goes wrong. */
const EDGES = [
  0, 1, 2, 7, 8, 16, 21, 255, 256, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff,
]

/** Pieces of headers, so that literals are changed into others and not only into noise. */
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

function mutate(seed: Uint8Array, random: Random): Uint8Array {
  let bytes = new Uint8Array(seed)
  for (let changes = 1 + random(2); changes > 0; changes--) bytes = mutateOnce(bytes, random)
  return bytes
}

function mutateOnce(bytes: Uint8Array<ArrayBuffer>, random: Random): Uint8Array<ArrayBuffer> {
  const at = random(bytes.length + 1)
  switch (random(8)) {
    case 0:
      if (at < bytes.length) bytes[at] = random(256)
      return bytes
    case 1:
      if (at < bytes.length) bytes[at]! ^= 1 << random(8)
      return bytes
    case 2:
      if (at + 4 <= bytes.length) new DataView(bytes.buffer).setUint32(at, EDGES[random(EDGES.length)]!, true)
      return bytes
    case 3:
      if (at + 2 <= bytes.length) new DataView(bytes.buffer).setUint16(at, random(bytes.length + 8), true)
      return bytes
    case 4:
      return bytes.slice(0, at)
    case 5:
      return new Uint8Array([...bytes, ...Array.from({ length: 1 + random(40) }, () => random(4))])
    case 6: {
      const word = Buffer.from(WORDS[random(WORDS.length)]!, 'latin1')
      bytes.set(word.subarray(0, bytes.length - at), at)
      return bytes
    }
    default:
      // A run of the file in another place of it: records that overlap, directories that repeat.
      bytes.copyWithin(random(bytes.length + 1), at, at + 8 * random(8))
      return bytes
  }
}

async function useTensor(tensor: Tensor): Promise<void> {
  // Deflate makes a thousand bytes of one; more than that no file of some kilobytes may ask for.
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

/** Opens and uses a file; a refusal is fine, any other error is not. */
async function tryFile(format: Format<never>, bytes: Uint8Array, level: Level): Promise<'read' | 'refused'> {
  const source = new CountingSource(bytes)
  try {
    const { tensors } = await format.read(source, readOptions(level))
    // Windows around headers may be read twice, once for each of two neighbours.
    expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length + 8192)
    for (const tensor of tensors) await useTensor(tensor).catch(expectRefusal)
    return 'read'
  } catch (error) {
    expectRefusal(error)
    return 'refused'
  }
}

it.each(['npy', 'npz'])(
  `${MUTATIONS / 2} mutated %s files are read or refused, and a strict check agrees with a strict read`,
  { timeout: 120_000 },
  async (name) => {
    const { format, good, hostile } = SEEDS[name]!
    const random = randomNumbers(SEED)
    const results = { read: 0, refused: 0 }
    for (let i = 0; i < MUTATIONS / 2; i++) {
      const files = random(4) === 0 ? hostile : good
      const bytes = mutate(files[random(files.length)]!, random)
      const level = i % 2 === 0 ? 'lenient' : 'strict'
      const result = await tryFile(format, bytes, level)
      results[result] += 1
      const findings = await format.check(new CountingSource(bytes), readOptions(level))
      expect(findings.length).toBeLessThanOrEqual(1001)
      if (result === 'refused') expect(findings.some(({ severity }) => severity === 'error')).toBe(true)
    }
    // Both ways must be walked, or the mutations test nothing.
    expect(results.read).toBeGreaterThan(MUTATIONS / 40)
    expect(results.refused).toBeGreaterThan(MUTATIONS / 40)
  },
)
