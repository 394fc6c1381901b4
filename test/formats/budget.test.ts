/** Limits of reading: what counts against them, and what the error says. */
import { expect, it } from 'vitest'
import { Budget } from '../../lib/formats/budget.js'

it('a default may be a multiple of all files, with bounds', () => {
  const budget = new Budget({}, { totalBytes: { perFileByte: 2, atLeast: 100, atMost: 1000 } }, 10)
  expect(budget.limit('totalBytes')).toBe(100)
  budget.addFile(290)
  expect(budget.limit('totalBytes')).toBe(600)
  budget.addFile(10_000)
  expect(budget.limit('totalBytes')).toBe(1000)
})

it('the limits of the caller replace the defaults; a format without a default has no bound', () => {
  const budget = new Budget({ tensors: 3 }, { tensors: 10 })
  expect(budget.limit('tensors')).toBe(3)
  expect(budget.limit('depth')).toBe(Number.POSITIVE_INFINITY)
})

it('a counter that exceeds its limit gives the sentence of an ERR_LIMIT', () => {
  const budget = new Budget({}, { tensors: 3, depth: 1 })
  expect(budget.spend('tensors', 2)).toBeUndefined()
  expect(budget.left('tensors')).toBe(1)
  expect(budget.spend('tensors', 2)).toBe('The file has at least 4 tensors; limits.tensors is 3.')
  expect(() => budget.require('depth', 2, 17)).toThrow(
    expect.objectContaining({
      code: 'ERR_LIMIT',
      message: 'The messages are nested 2 deep; limits.depth is 1.',
      offset: 17,
    }),
  )
})
