/** Tensors that a file declares without data. */
import { expect, it } from 'vitest'
import { type DenseTensor, serialize } from '../../lib/index.js'
import { AbsentTensor } from '../../lib/tensor/absent.js'

const absent: DenseTensor = new AbsentTensor({
  dtype: 'int4',
  shape: [3, 3],
  name: 'w',
  reason: 'its file is missing',
})
const refusal = expect.objectContaining({
  code: 'ERR_NO_DATA',
  message: 'tensor "w" has no data: its file is missing.',
})

it('has every property except elements', () => {
  expect([absent.kind, absent.hasData, absent.size, absent.storage.byteLength]).toEqual([
    'dense',
    false,
    9,
    5,
  ])
})

it('rejects reads and writes of elements', async () => {
  await expect(absent.bytes()).rejects.toEqual(refusal)
  await expect(absent.toTypedArray()).rejects.toEqual(refusal)
  await expect(absent.copyTo(new Uint8Array(5))).rejects.toEqual(refusal)
  expect(() => absent.bytesSync()).toThrow(refusal)
  expect(() => absent.at(0, 0)).toThrow(refusal)
  await expect(serialize(absent, { format: 'onnx' })).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
})

it('has no size while an extent is unknown', () => {
  const activation = new AbsentTensor({
    dtype: 'float32',
    shape: [-1, 3],
    name: 'a',
    reason: 'nobody ran it',
  })
  expect([activation.shape, activation.size, activation.sizeExact, activation.storage.elements]).toEqual([
    [-1, 3],
    0,
    0n,
    0,
  ])
})

it.each([[[1.5]], [[2 ** 40, 2 ** 40]]])('%j is not a valid shape', (shape) => {
  expect(() => new AbsentTensor({ dtype: 'float32', shape, name: 'a', reason: 'none' })).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^ERR_(ARGUMENT|OVERFLOW)$/) }),
  )
})
