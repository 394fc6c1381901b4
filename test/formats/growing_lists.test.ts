import { describe, expect, it } from 'vitest'
import { ByteList } from '../../lib/formats/byte_list.js'
import { NumberList, OffsetList } from '../../lib/formats/number_list.js'

const COUNT = 5000

describe('lists that grow', () => {
  it('keep every number', () => {
    const list = new NumberList(Float64Array)
    for (let index = 0; index < COUNT; index++) list.push(index)
    list.set(COUNT - 1, Number.MAX_SAFE_INTEGER)
    expect(list.length).toBe(COUNT)
    for (let index = 0; index < COUNT - 1; index++) expect(list.at(index)).toBe(index)
    expect(list.at(COUNT - 1)).toBe(Number.MAX_SAFE_INTEGER)
  })

  it('keep every offset, below 4 GiB and beyond', () => {
    const list = new OffsetList()
    for (let index = 0; index < COUNT; index++) list.push(2 ** 32 - COUNT + index)
    list.set(0, 2 ** 32 + 5)
    list.push(Number.MAX_SAFE_INTEGER)
    list.set(1, 2 ** 33)
    expect(list.length).toBe(COUNT + 1)
    expect([list.at(0), list.at(1), list.at(COUNT)]).toEqual([2 ** 32 + 5, 2 ** 33, Number.MAX_SAFE_INTEGER])
    for (let index = 2; index < COUNT; index++) expect(list.at(index)).toBe(2 ** 32 - COUNT + index)
    const other = new OffsetList()
    other.push(2 ** 32 - 1)
    other.push(2 ** 32)
    expect([other.at(0), other.at(1)]).toEqual([2 ** 32 - 1, 2 ** 32])
  })

  it('keep every byte, also beyond the first capacity, and overwrite truncated ones', () => {
    const list = new ByteList()
    list.append(new Uint8Array(COUNT).fill(7))
    for (let index = 0; index < COUNT; index++) list.append(Uint8Array.of(index & 0xff))
    list.truncate(2 * COUNT - 1)
    list.append(Uint8Array.of(1, 2))
    expect(list.length).toBe(2 * COUNT + 1)
    expect(list.subarray(0, COUNT)).toEqual(new Uint8Array(COUNT).fill(7))
    const counted = Uint8Array.from({ length: COUNT - 1 }, (_, index) => index & 0xff)
    expect(list.subarray(COUNT, 2 * COUNT - 1)).toEqual(counted)
    expect(list.subarray(2 * COUNT - 1, list.length)).toEqual(Uint8Array.of(1, 2))
  })
})
