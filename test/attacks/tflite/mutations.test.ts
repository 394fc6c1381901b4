/** Mutated TFLite files are read or refused, in memory proportional to the file. */
import { expect, it } from 'vitest'
import type { Level } from '../../../lib/errors.js'
import { tflite } from '../../../lib/formats/tflite/index.js'
import { readOptions } from '../../formats/npy/npy_bytes.js'
import { sampleModel } from '../../formats/tflite/tflite_bytes.js'
import { CountingSource } from '../counting_source.js'
import { ANY_FORMAT, type Change, copyRun, expectReadOrRefused, mutate, mutationCount } from '../mutations.js'
import { fuzzSeed, randomNumbers } from '../random_numbers.js'
import { expectRefusal } from '../refusal.js'

const MUTATIONS = mutationCount(800)
const SEED = fuzzSeed(20_263)

/** Numbers at which arithmetic overflows or rounds. */
const EDGES = [0, 1, 2, 3, 4, 8, 255, 256, 0xffff, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff]

const CHANGES: readonly Change[] = [
  ...ANY_FORMAT,
  copyRun(4, 8),
  (bytes, at, random) => {
    const aligned = at - (at % 4)
    if (aligned + 4 > bytes.length) return bytes
    new DataView(bytes.buffer).setUint32(aligned, EDGES[random(EDGES.length)]!, true)
    return bytes
  },
  (bytes, at, random) => {
    const aligned = at - (at % 4)
    if (aligned + 4 > bytes.length) return bytes
    new DataView(bytes.buffer).setUint32(aligned, random(bytes.length + 8), true)
    return bytes
  },
]

async function read(bytes: Uint8Array, level: Level): Promise<void> {
  const { tensors } = await tflite.read(new CountingSource(bytes), readOptions(level))
  for (const tensor of tensors) {
    // Sparse tensors are larger as dense ones; a caller asks before it loads them.
    if (tensor.sizeExact > BigInt(1024 * bytes.length)) continue
    if (tensor.kind === 'dense') expect((await tensor.bytes()).length).toBe(tensor.storage.byteLength)
    else if (tensor.kind === 'string') await tensor.strings().catch(expectRefusal)
  }
}

it(`${MUTATIONS} mutated TFLite files are read or refused, and a check agrees`, async () => {
  const random = randomNumbers(SEED)
  const seed = sampleModel()
  await expectReadOrRefused(MUTATIONS, () => mutate(seed, CHANGES, 2, random), {
    read,
    check: (bytes, level) => tflite.check(new CountingSource(bytes), readOptions(level)),
    checksHeadersAlone: true,
  })
})
