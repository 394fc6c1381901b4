/** Names for unnamed tensors in formats that identify tensors by name. */
import { expect, it } from 'vitest'
import { check, type FormatName, open, serialize, tensor } from '../../lib/index.js'

const numbers = (value: number, name = '') => tensor([value], { dtype: 'float32', name })

it.each<[FormatName, string]>([
  ['npz', 'arr_'],
  ['safetensors', 'tensor_'],
  ['onnx', 'tensor_'],
  ['tmfile', 'tensor_'],
])('%s uses the prefix %s and the position, and keeps given names', async (format, prefix) => {
  const list = [numbers(1), numbers(2, `${prefix}0`), numbers(3), numbers(4, `${prefix}0_`)]
  const bytes = await serialize(list, { format })
  const file = await open(bytes, { format })
  const expected = { [`${prefix}0__`]: 1, [`${prefix}0`]: 2, [`${prefix}2`]: 3, [`${prefix}0_`]: 4 }
  const found = [...file.tensors].map(({ name }) => [name, file.dense(name).at(0)])
  expect(Object.fromEntries(found)).toEqual(expected)
  const findings = await check(bytes, { format })
  expect(findings.filter(({ code }) => code === 'ERR_DUPLICATE' || code === 'NAMES_ABSENT')).toEqual([])
})

it('a safetensors file keeps the empty name of one tensor', async () => {
  const file = await open(await serialize([numbers(1), numbers(2, 'x')], { format: 'safetensors' }))
  expect([...file.tensors].map(({ name }) => name)).toEqual(['', 'x'])
})
