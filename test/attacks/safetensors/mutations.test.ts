/**
 * Five thousand files that are almost right. Each must be opened, so that every tensor of it can be used, or be refused
 * with a TileworkError; nothing may crash, hang, or take memory that the file does not justify. The seed is fixed, so
 * a failure can be run again; TILEWORK_FUZZ_SEED tries another.
 */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { Level } from '../../../lib/errors.js'
import { safetensors } from '../../../lib/formats/safetensors/index.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { entryText, readOptions, safetensorsFile } from '../../formats/safetensors/safetensors_bytes.js'
import { CountingSource } from '../counting_source.js'
import { fuzzSeed, type Random, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, seedFiles } from './attacks.js'

const MUTATIONS = 5000
const SEED = fuzzSeed(20_260)

/** What readers of JSON, of numbers and of names go wrong at. */
const PIECES = [
  '0',
  '-0',
  '-1',
  '1',
  '2.5',
  '1e400',
  '9007199254740991',
  '9007199254740993',
  '18446744073709551616',
  '""',
  '"a"',
  'null',
  'true',
  '[]',
  '{}',
  '[',
  ']',
  '{',
  '}',
  ',',
  ':',
  '"',
  '\\',
  '\\u0061',
  '\\ud800',
  '\\ud83c\\udfb2',
  ' ',
  '\n',
  '\0',
  '"w"',
  '"__proto__"',
  '"constructor"',
  '"__metadata__"',
  '"shape"',
  '"data_offsets"',
  '"dtype"',
  '"F4"',
  '"F64"',
  '"BOOL"',
  '"F6_E2M3"',
  '"tilework.layout.w"',
  '"x":1,',
  '[0,0]',
  '/**/',
  '\u00fc',
  '\u{1f3b2}',
].map((piece) => Buffer.from(piece))

function mutate(seed: Uint8Array, random: Random): Uint8Array {
  let bytes: Uint8Array = new Uint8Array(seed)
  for (let changes = 1 + random(3); changes > 0; changes--) bytes = mutateOnce(bytes, random)
  return bytes
}

/** Replaces a part of the header, mostly so that its length stays true: else nothing behind it would be tested. */
function mutateOnce(bytes: Uint8Array, random: Random): Uint8Array {
  const at = random(bytes.length + 1)
  const piece = PIECES[random(PIECES.length)]!
  switch (random(7)) {
    case 0:
      if (at < bytes.length) bytes[at] = random(256)
      return bytes
    case 1:
      if (at < bytes.length) bytes[at]! ^= 1 << random(8)
      return bytes
    case 2:
      return bytes.slice(0, at)
    case 3:
      return new Uint8Array([...bytes, ...Array.from({ length: 1 + random(20) }, () => random(4))])
    case 4:
      return spliceHeader(bytes, at, 0, piece)
    case 5:
      return spliceHeader(bytes, at, 1 + random(6), piece)
    default:
      return spliceHeader(bytes, at, 0, bytes.slice(Math.min(8, at), Math.min(at + random(80), bytes.length)))
  }
}

function spliceHeader(bytes: Uint8Array, at: number, removed: number, piece: Uint8Array): Uint8Array {
  if (bytes.length < 8 || at < 8) return bytes
  const spliced = new Uint8Array([...bytes.subarray(0, at), ...piece, ...bytes.subarray(at + removed)])
  const view = new DataView(spliced.buffer)
  const length = view.getBigUint64(0, true) + BigInt(spliced.length - bytes.length)
  view.setBigUint64(0, BigInt.asUintN(64, length), true)
  return spliced
}

async function useTensor(tensor: DenseTensor): Promise<void> {
  // Complex numbers and the like have no typed array; their bytes are read all the same.
  expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
  await tensor.toTypedArray().catch(expectRefusal)
  if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
}

/** Opens and uses a file; a refusal is fine, any other error is not. */
async function tryFile(bytes: Uint8Array, level: Level): Promise<'read' | 'refused'> {
  const source = new CountingSource(bytes)
  try {
    const { tensors } = await safetensors.read(source, readOptions(level))
    expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length + 64)
    for (const tensor of tensors) {
      expect(tensors.get(tensor.name)?.shape).toEqual(tensor.shape)
      await useTensor(tensor as DenseTensor).catch(expectRefusal)
    }
    return 'read'
  } catch (error) {
    expectRefusal(error)
    return 'refused'
  }
}

it(`${MUTATIONS} mutated files are read or refused, and what a strict check lets pass a strict read reads`, async () => {
  const random = randomNumbers(SEED)
  const seeds = [...seedFiles(), ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2048)]
  const results = { read: 0, refused: 0 }
  for (let i = 0; i < MUTATIONS; i++) {
    const bytes = mutate(seeds[random(i % 2 === 0 ? 4 : seeds.length)]!, random)
    for (const level of ['lenient', 'strict'] as const) {
      const result = await tryFile(bytes, level)
      results[result] += 1
      const findings = await safetensors.check(new CountingSource(bytes), readOptions(level))
      expect(findings.length).toBeLessThanOrEqual(1001)
      const isClean = findings.every(({ severity }) => severity !== 'error')
      if (isClean) expect(result).toBe('read')
      if (result === 'refused') expect(isClean).toBe(false)
    }
  }
  // Both ways must be walked, or the mutations test nothing.
  expect(results.read).toBeGreaterThan(MUTATIONS / 20)
  expect(results.refused).toBeGreaterThan(MUTATIONS / 20)
})

it('a header of fifty thousand entries opens', async () => {
  const count = 50_000
  const entries = Array.from({ length: count }, (_, at) =>
    entryText({ name: `t${at}`, dtype: 'U8', shape: [1], offsets: [at, at + 1] }),
  )
  const bytes = safetensorsFile(`{${entries.join(',')}}`, new Uint8Array(count))
  const { tensors } = await safetensors.read(new MemorySource(bytes), readOptions())
  expect(tensors.length).toBe(count)
  expect(tensors.get('t49999')?.name).toBe('t49999')
  expect(tensors.at(-1)?.name).toBe('t49999')
})

it('millions of blanks, escapes, brackets and digits end, read or refused', async () => {
  const length = 4_000_000
  const texts = [
    `{${' '.repeat(length)}}`,
    `{"${'\\n'.repeat(length / 2)}":0}`,
    `{"${'\\ud800'.repeat(length / 50)}":0}`,
    `{"a":${'['.repeat(length)}`,
    `{"a":${'1'.repeat(length)}}`,
    `{"${'a'.repeat(length)}":0}`,
  ]
  for (const text of texts)
    expect(['read', 'refused']).toContain(await tryFile(safetensorsFile(text), 'lenient'))
})
