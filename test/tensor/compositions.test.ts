/** A few compositions of tensor operations; `npm run fuzz -- --compositions` runs any number. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { runCase } from '../../fuzz/compositions/case.js'
import { BITS, type CaseDtype, storageOf } from '../../fuzz/compositions/reference.js'
import { Random } from '../../fuzz/random.js'
import * as library from '../../lib/index.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-compositions-'))
const threads = library.threads()
afterAll(() => {
  library.setThreads(threads)
  rmSync(folder, { recursive: true, force: true })
})

it('compositions have the bits of the reference', async () => {
  let steps = 0
  for (let seed = 1; seed <= 60; seed++)
    steps += (await runCase(new Random(seed), { library, folder, maxBytes: 2048 })).steps.length
  expect(steps).toBeGreaterThan(150)
})

it('a composition that is wrong in one element is found', async () => {
  const wrong = {
    ...library,
    transpose: (tensor: library.DenseTensor, axes: readonly number[]) =>
      library.transpose(tensor, [...axes].reverse()),
  } as typeof library
  const runs = Array.from({ length: 60 }, (_, seed) =>
    runCase(new Random(seed), { library: wrong, folder, maxBytes: 2048 }),
  )
  const ended = await Promise.allSettled(runs)
  expect(ended.some(({ status }) => status === 'rejected')).toBe(true)
})

it.each(Object.keys(BITS) as CaseDtype[])('the reference knows the bits of %s', async (dtype) => {
  const [min, max] = BITS[dtype].range
  const values = Array.from({ length: max - min + 1 }, (_, at) => min + at)
  const given = dtype === 'bool' ? values.map(Boolean) : /int64/.test(dtype) ? values.map(BigInt) : values
  const bytes = await library.tensor(given, { dtype }).bytes()
  expect([...bytes]).toEqual([...storageOf(dtype, values.length, values.entries())])
})
