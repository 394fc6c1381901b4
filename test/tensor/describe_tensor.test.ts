/** One-line descriptions of tensors. */
import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { asLayout } from '../../lib/tensor/as_layout.js'
import { describeTensor } from '../../lib/tensor/describe_tensor.js'
import { tensor } from '../../lib/tensor/from_values.js'
import { type CooTensor, sparseFromDense } from '../../lib/tensor/sparse.js'

const zeros = (shape: number[], name = '') =>
  tensor(new Float32Array(shape.reduce((size, extent) => size * extent, 1)), { shape, name })

describe('describeTensor', () => {
  it('contains kind, name, element type, shape and layout', () => {
    expect(describeTensor(zeros([64, 3, 7, 7], 'conv1'))).toBe(
      "DenseTensor 'conv1' float32 [64, 3, 7, 7] row_major",
    )
    expect(describeTensor(tensor(5, { dtype: 'bfloat16' }))).toBe('DenseTensor bfloat16 [] row_major')
    const blocked = asLayout(zeros([32]), 'b_fs_yx_fsv16', [1, 19, 1, 1])
    expect(describeTensor(blocked)).toBe('DenseTensor float32 [1, 19, 1, 1] b_fs_yx_fsv16')
  })

  it('contains the entry count of a sparse tensor, also in console.log', async () => {
    const sparse = (await sparseFromDense(tensor([0, 3, 4], { dtype: 'int8', name: 's' }))) as CooTensor
    expect(inspect(sparse)).toBe("SparseTensor 's' int8 [3] 2 entries")
    const one = await sparseFromDense(tensor([0, 3], { dtype: 'int8' }))
    expect(describeTensor(one)).toBe('SparseTensor int8 [2] 1 entry')
  })

  it('is one short line for any names in a file', () => {
    const hostile = zeros(Array(200).fill(1), `\u001b[2J\n${'x'.repeat(10_000)}`)
    const text = describeTensor(hostile)
    expect(text).not.toContain('\u001b')
    expect(text).not.toContain('\n')
    expect(text.length).toBeLessThan(300)
    expect(text).toContain('… 200 axes]')
  })
})
