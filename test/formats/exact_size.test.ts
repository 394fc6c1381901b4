/** Sizes that a file declares, exact beyond 2^53. */
import { expect, it } from 'vitest'
import { exactByteLength, exactSizeOf, multiply, rangeFault } from '../../lib/formats/exact_size.js'

it('products are numbers up to 2^53 - 1 and bigints beyond', () => {
  expect(multiply(2 ** 26, 2 ** 26)).toBe(2 ** 52)
  expect(multiply(2 ** 27, 2 ** 26)).toBe(2n ** 53n)
  expect(multiply(2n ** 60n, 3)).toBe(3n * 2n ** 60n)
  expect(multiply(2n ** 60n, 0)).toBe(0)
})

it('an extent of 0 makes a shape empty and leaves the product of the others', () => {
  expect(exactSizeOf([2, 0, 3])).toEqual({ elements: 0, nonZero: 6 })
  expect(exactSizeOf([2 ** 40, 2 ** 40])).toEqual({ elements: 2n ** 80n, nonZero: 2n ** 80n })
  expect(exactSizeOf([])).toEqual({ elements: 1, nonZero: 1 })
})

it('packed elements fill bytes, the last one perhaps in part', () => {
  expect(exactByteLength(3, 4)).toBe(2)
  expect(exactByteLength(5, 6)).toBe(4)
  expect(exactByteLength(5, 32)).toBe(20)
  expect(exactByteLength(2n ** 60n + 1n, 4)).toBe(2n ** 59n + 1n)
})

it('a range beyond the end of a file is a fault', () => {
  expect(rangeFault(8, 8, 16)).toBeUndefined()
  expect(rangeFault(8, 9, 16)).toBe('needs 9 bytes at 8; the file ends at 16')
  expect(rangeFault(20, 0, 16)).toBe('needs 0 bytes at 20; the file ends at 16')
  expect(rangeFault(0, 2n ** 64n, 16)).toBe('needs 18446744073709551616 bytes at 0; the file ends at 16')
})
