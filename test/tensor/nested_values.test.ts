/** Arrays that are nested too deep, cyclic, or shared so often that they represent too many values. */
import { expect, it } from 'vitest'
import { tensor } from '../../lib/tensor/from_values.js'
import { sharedRows } from './nonsense.js'

const refused = (code: string, text: string) =>
  expect.objectContaining({ name: 'TileworkError', code, message: expect.stringContaining(text) })

const make = (values: unknown, options: object = { dtype: 'int8' }) => tensor(values as never, options)

it('an array that contains itself is rejected', () => {
  const cyclic: unknown[] = []
  cyclic.push(cyclic)
  expect(() => make(cyclic)).toThrow(refused('ERR_ARGUMENT', '255'))
  const later: unknown[] = [[1, 2]]
  later.push(later)
  expect(() => make(later)).toThrow(refused('ERR_ARGUMENT', 'values[1][0]'))
})

it('255 nested axes are accepted, 256 are rejected', () => {
  const nested = (depth: number): unknown => {
    let values: unknown = 7
    for (let i = 0; i < depth; i++) values = [values]
    return values
  }
  expect(make(nested(255)).shape.length).toBe(255)
  expect(() => make(nested(256))).toThrow(refused('ERR_ARGUMENT', '255'))
  expect(() => make(nested(100_000))).toThrow(refused('ERR_ARGUMENT', '255'))
})

it('shared rows are rejected before memory for their values is allocated', () => {
  expect(make(sharedRows(8)).size).toBe(256)
  expect(() => make(sharedRows(255))).toThrow(refused('ERR_OVERFLOW', 'about 10^76'))
  expect(() => make(sharedRows(52))).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^ERR_(VIEW_TOO_LARGE|LIMIT)$/) }),
  )
})

it('a huge list is rejected at its first invalid index', () => {
  const long: unknown[] = Array(1_000_000).fill([1, 2])
  long[999_999] = [1]
  expect(() => make(long)).toThrow(refused('ERR_ARGUMENT', 'values[999999] is an array of 1'))
  expect(() => make(new Array(2 ** 32 - 1), { dtype: 'int2' })).toThrow(refused('ERR_ARGUMENT', 'values[0]'))
})

it('a shape has at most 255 axes', () => {
  expect(() => make([1], { dtype: 'int8', shape: Array(256).fill(1) })).toThrow(
    refused('ERR_ARGUMENT', '256 axes'),
  )
  expect(() => make([1], { dtype: 'int8', shape: Array(1_000_000).fill(2 ** 53 - 1) })).toThrow(
    refused('ERR_ARGUMENT', '1000000 axes'),
  )
})

it('a typed array of the requested type keeps its bits', async () => {
  const bits = Uint32Array.of(0x7fc00001, 0xffa00000, 0x80000000)
  const values = new Float32Array(bits.buffer)
  const made = tensor(values)
  expect(new Uint32Array((await made.bytes()).slice().buffer)).toEqual(bits)
})
