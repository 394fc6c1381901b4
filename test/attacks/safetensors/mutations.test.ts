/** Mutated safetensors files are read or refused, in memory proportional to the file. */
import { expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { Level } from '../../../lib/errors.js'
import { safetensors } from '../../../lib/formats/safetensors/index.js'
import type { DenseTensor } from '../../../lib/tensor/tensor.js'
import { entryText, readOptions, safetensorsFile } from '../../formats/safetensors/safetensors_bytes.js'
import { CountingSource } from '../counting_source.js'
import {
  ANY_FORMAT,
  type Bytes,
  type Change,
  expectReadOrRefused,
  mutate,
  mutationCount,
  readOrRefused,
} from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'
import { ATTACKS, seedFiles } from './attacks.js'

const MUTATIONS = mutationCount(5000)
const SEED = fuzzSeed(20_260)

/** Fragments at which readers of JSON, numbers and names fail. */
const FRAGMENTS = [
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
].map((fragment) => Buffer.from(fragment))

/** Replaces a part of the header without changing its length, so that the rules after the length check are tested. */
const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  (bytes, at, random) => spliceHeader(bytes, at, 0, FRAGMENTS[random(FRAGMENTS.length)]!),
  (bytes, at, random) => spliceHeader(bytes, at, 1 + random(6), FRAGMENTS[random(FRAGMENTS.length)]!),
  (bytes, at, random) =>
    spliceHeader(bytes, at, 0, bytes.slice(Math.min(8, at), Math.min(at + random(80), bytes.length))),
]

function spliceHeader(bytes: Bytes, at: number, removed: number, fragment: Uint8Array): Bytes {
  if (bytes.length < 8 || at < 8) return bytes
  const spliced = new Uint8Array([...bytes.subarray(0, at), ...fragment, ...bytes.subarray(at + removed)])
  const view = new DataView(spliced.buffer)
  const length = view.getBigUint64(0, true) + BigInt(spliced.length - bytes.length)
  view.setBigUint64(0, BigInt.asUintN(64, length), true)
  return spliced
}

async function useTensor(tensor: DenseTensor): Promise<void> {
  // Complex numbers have no typed array; their bytes are read instead.
  expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
  await tensor.toTypedArray().catch(expectRefusal)
  if (tensor.size > 0) tensor.at(...tensor.shape.map((extent) => extent - 1))
}

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const source = new CountingSource(bytes)
  const { tensors } = await safetensors.read(source, readOptions(level))
  expect(source.bytesRead).toBeLessThanOrEqual(4 * bytes.length + 64)
  for (const tensor of tensors) {
    expect(tensors.get(tensor.name)?.shape).toEqual(tensor.shape)
    await useTensor(tensor as DenseTensor).catch(expectRefusal)
  }
}

it(`${MUTATIONS} mutated files are read or refused, and a check agrees`, async () => {
  const random = randomNumbers(SEED)
  const seeds = [...seedFiles(), ...ATTACKS.map(({ bytes }) => bytes()).filter(({ length }) => length < 2048)]
  const next = (round: number) =>
    mutate(seeds[random(round % 2 === 0 ? 4 : seeds.length)]!, CHANGES, 3, random)
  await expectReadOrRefused(MUTATIONS, next, {
    read,
    check: (bytes, level) => safetensors.check(new CountingSource(bytes), readOptions(level)),
  })
})

it('a header of 50,000 entries opens', async () => {
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

it('millions of blanks, escapes, brackets and digits are read or refused in bounded time', async () => {
  const length = 4_000_000
  const texts = [
    `{${' '.repeat(length)}}`,
    `{"${'\\n'.repeat(length / 2)}":0}`,
    `{"${'\\ud800'.repeat(length / 50)}":0}`,
    `{"a":${'['.repeat(length)}`,
    `{"a":${'1'.repeat(length)}}`,
    `{"${'a'.repeat(length)}":0}`,
  ]
  for (const text of texts) await readOrRefused(() => read(safetensorsFile(text), 'lenient'))
})
