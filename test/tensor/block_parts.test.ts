/** Codes, scales and minimums of blocks of random bits make the numbers of the native core in float32. */
import { createCipheriv } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../lib/bytes/memory.js'
import { BLOCK_DTYPES, type BlockDtype } from '../../lib/dtype/block_types.js'
import { blockPartsOf } from '../../lib/tensor/block_parts.js'
import { StoredBlocks } from '../../lib/tensor/block_tensor.js'

const BLOCKS = 200

/** The least and the greatest code; iq types have vectors of 8 or 4 numbers, and iq1 an eighth more or less. */
const CODES: Readonly<Record<BlockDtype, readonly [number, number]>> = {
  q4_0: [-8, 7],
  q4_1: [0, 15],
  q5_0: [-16, 15],
  q5_1: [0, 31],
  q8_0: [-128, 127],
  q2_k: [0, 3],
  q3_k: [-4, 3],
  q4_k: [0, 15],
  q5_k: [0, 31],
  q6_k: [-32, 31],
  q8_k: [-128, 127],
  iq2_xxs: [-43, 43],
  iq2_xs: [-43, 43],
  iq2_s: [-43, 43],
  iq3_xxs: [-62, 62],
  iq3_s: [-15, 15],
  iq1_s: [-1.125, 1.125],
  iq1_m: [-1.125, 1.125],
  iq4_nl: [-127, 113],
  iq4_xs: [-127, 113],
  tq1_0: [-1, 1],
  tq2_0: [-1, 2],
  mxfp4: [-12, 12],
  nvfp4: [-12, 12],
  q1_0: [-1, 1],
  q2_0: [-1, 2],
}

describe('blockPartsOf', () => {
  it.each(Object.values(BLOCK_DTYPES))('$name', async ({ name, elements, bytes }) => {
    const content = createCipheriv('aes-128-ctr', Buffer.alloc(16, 7), Buffer.alloc(16)).update(
      Buffer.alloc(BLOCKS * bytes),
    )
    const source = new MemorySource(content)
    const shape = [BLOCKS, elements]
    const numbers = await new StoredBlocks({ source, start: 0, dtype: name, shape, name: 't' }).toTypedArray()
    const seen = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
    const wrong: string[] = []
    for (const [at, number] of numbers.entries()) {
      const block = Math.floor(at / elements)
      const part = content.subarray(block * bytes, (block + 1) * bytes)
      const { code, scale, minimum } = blockPartsOf(name, part, at % elements, number)
      const product = Math.fround(scale * code)
      const made = minimum === 0 ? product : Math.fround(product + minimum)
      if (Number.isFinite(scale) && scale !== 0) {
        if (!Number.isInteger(8 * code)) wrong.push(`${at}: code ${code}`)
        seen[0] = Math.min(seen[0]!, code)
        seen[1] = Math.max(seen[1]!, code)
        if (made !== number && !Number.isNaN(number)) wrong.push(`${at}: ${made}, not ${number}`)
      }
    }
    expect(wrong.slice(0, 5)).toEqual([])
    expect(seen).toEqual(CODES[name])
  })
})
