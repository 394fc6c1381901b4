import { describe, expect, it } from 'vitest'
import { ByteList } from '../../lib/formats/byte_list.js'
import { NumberList } from '../../lib/formats/number_list.js'

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

  it('keep every byte, the first longer than the list, and put others in the place of truncated ones', () => {
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
