/** Tensors that a file names without holding their data. */
import { expect, it } from 'vitest'
import { serialize } from '../../lib/index.js'
import { AbsentTensor } from '../../lib/tensor/absent.js'

const absent = new AbsentTensor({ dtype: 'int4', shape: [3, 3], name: 'w', reason: 'its file is missing' })
const refusal = expect.objectContaining({
  code: 'ERR_NO_DATA',
  message: 'The data of tensor "w" are missing: its file is missing.',
})

it('says all but its elements', () => {
  expect([absent.kind, absent.hasData, absent.size, absent.storage.byteLength]).toEqual([
    'dense',
    false,
    9,
    5,
  ])
})

it('refuses to give or write elements', async () => {
  await expect(absent.bytes()).rejects.toEqual(refusal)
  await expect(absent.toTypedArray()).rejects.toEqual(refusal)
  await expect(absent.copyTo(new Uint8Array(5))).rejects.toEqual(refusal)
  expect(() => absent.bytesSync()).toThrow(refusal)
  expect(() => absent.at(0, 0)).toThrow(refusal)
  await expect(serialize(absent, { format: 'onnx' })).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
})
