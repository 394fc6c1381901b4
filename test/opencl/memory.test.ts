/** Sources larger than the maximum buffer of the device or than its memory. */
import { openSync, truncateSync, writeSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { joinLayouts } from '../../lib/layout/plan.js'
import { native } from '../../lib/native/addon.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { hasDevice } from './compare.js'

const inFolder = temporaryFolder()
const GIB = 2 ** 30
/** More memory than any device has. */
const FILE_BYTES = 4096 * GIB

/** A sparse file in which every GiB starts with its index. */
function hugeFile(): string {
  const path = inFolder('huge')
  const descriptor = openSync(path, 'w')
  for (const at of [0, 1, 7, 63]) writeSync(descriptor, Uint8Array.of(at + 1), 0, 1, at * GIB)
  truncateSync(path, FILE_BYTES)
  return path
}

describe.skipIf(!hasDevice)('on an OpenCL device', () => {
  /** Every 2^30th byte of the first 64 GiB. */
  const { plan } = joinLayouts({
    dtype: 'uint8',
    shape: [64],
    from: 'row_major',
    to: 'row_major',
    slice: { shape: [FILE_BYTES], start: [0], step: [GIB] },
  })
  const run = (settings: { maxBytes?: number }) => {
    const target = new Uint8Array(64).fill(9)
    const source = native().openInput(hugeFile(), { mapped: false, guard: false })
    const place = { device: 0, source, offset: 0, target, start: 0, end: 64 }
    return plan.runOnDevice({ ...place, ...settings, inPlace: false }).then(() => target)
  }

  it('a source larger than device memory is copied in windows', async () => {
    const target = await run({})
    expect([target[0], target[1], target[2], target[7], target[63]]).toEqual([1, 2, 0, 8, 64])
  })

  it('an allocation beyond device memory is an error', async () => {
    await expect(run({ maxBytes: FILE_BYTES })).rejects.toMatchObject({ code: 'ERR_DEVICE_MEMORY' })
    // The next run works.
    expect((await run({}))[63]).toBe(64)
  })
})
