/** Lazy tensors on top of each other, thousands of them: refused before a read could overflow the stack. */
import { describe, expect, it } from 'vitest'
import {
  asLayout,
  cast,
  concat,
  type DenseTensor,
  pad,
  reorder,
  slice,
  TileworkError,
  tensor,
} from '../../lib/index.js'

const DEPTH = 3000
const one = () => tensor(new Float32Array(1), { shape: [1] })

const STEPS: Record<string, (below: DenseTensor) => DenseTensor> = {
  'asLayout and slice': (below) => slice(asLayout(below, 'row_major', below.shape), [{ start: 0 }]),
  'slice backwards and asLayout': (below) => asLayout(slice(below, [{ step: -1 }]), 'row_major', below.shape),
  concat: (below) => concat([below, one()]),
  pad: (below) => pad(below, [[0, 1]]),
  reorder: (below) => reorder(below, 'row_major'),
  cast: (below) => cast(below, below.dtype === 'float32' ? 'float64' : 'float32'),
}

describe.each(Object.entries(STEPS))('%s', (_, step) => {
  it('is read, or refused with ERR_LIMIT', { timeout: 60_000 }, async () => {
    let made: DenseTensor = tensor(new Float32Array([1, 2, 3, 4]), { shape: [4] })
    try {
      for (let depth = 0; depth < DEPTH; depth++) made = step(made)
      await made.toTypedArray()
      made.bytesSync()
    } catch (error) {
      expect(error).toBeInstanceOf(TileworkError)
      expect((error as TileworkError).code).toBe('ERR_LIMIT')
    }
  })

  it('is read at a depth of 250', async () => {
    let made: DenseTensor = tensor(new Float32Array([1, 2, 3, 4]), { shape: [4] })
    for (let depth = 0; depth < 250; depth++) made = step(made)
    expect((await made.toTypedArray()).length).toBeGreaterThanOrEqual(4)
    expect(made.bytesSync().byteLength).toBe(made.storage.byteLength)
  })
})
