/**
 * A walk skips fields that continue a run without a call for each. It must skip whole fields of one number and wire type only, never
 * one that a walk over each field would refuse, and must end where that walk ends, with the same fault.
 */
import { describe, expect, it } from 'vitest'
import { MemorySource } from '../../../lib/bytes/memory.js'
import { FileFault } from '../../../lib/formats/file_fault.js'
import { eachField, WireCursor, walkSourceSync } from '../../../lib/formats/onnx/protobuf/wire.js'
import { mutationCount } from '../../attacks/mutations.js'
import { fuzzSeed, type Random, randomNumbers } from '../../attacks/random_numbers.js'
import { field, fixed, int, join, varint } from './onnx_bytes.js'

/** Number, wire type, start and end of each field, and the fault that ends the walk. */
interface Walked {
  readonly fields: readonly (readonly [number: number, wireType: number, start: number, end: number])[]
  readonly fault: string | undefined
}

function walk(bytes: Uint8Array, end: number, next: (cursor: WireCursor) => number | undefined): Walked {
  const cursor = new WireCursor(new MemorySource(bytes))
  const fields: [number, number, number, number][] = []
  const steps = eachField(cursor, end, () => {
    const { number, wireType, start, position } = cursor
    fields.push([number, wireType, start, position])
    const to = next(cursor)
    if (to !== undefined) fields.at(-1)![3] = to
    return to
  })
  try {
    walkSourceSync(steps, cursor)
    return { fields, fault: undefined }
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    return { fields, fault: `${error.code} ${error.message} ${error.offset}` }
  }
}

const walkEach = (bytes: Uint8Array, end = bytes.byteLength): Walked => walk(bytes, end, () => undefined)
const walkRuns = (bytes: Uint8Array, end = bytes.byteLength): Walked =>
  walk(bytes, end, (cursor) => cursor.endOfRun(end))

/** Joins fields of equal number and wire type between the ends of runs. */
function expectSame(bytes: Uint8Array, end = bytes.byteLength): void {
  const [each, runs] = [walkEach(bytes, end), walkRuns(bytes, end)]
  const joined = runs.fields.map(([number, wireType, start, to]) => {
    const inside = each.fields.filter(([, , from]) => from >= start && from < to)
    expect(inside.every(([one, type]) => one === number && type === wireType)).toBe(true)
    return [inside[0]?.[2], inside.at(-1)?.[3]]
  })
  expect(joined).toEqual(runs.fields.map(([, , start, to]) => [start, to]))
  expect(runs.fields.reduce((sum, [, , start, to]) => sum + to - start, 0)).toBe(
    each.fields.reduce((sum, [, , start, to]) => sum + to - start, 0),
  )
  expect(runs.fault).toBe(each.fault)
}

const repeat = (bytes: Uint8Array, count: number): Uint8Array =>
  join(...Array.from({ length: count }, () => bytes))
const varintOf = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, at) => (at < length - 1 ? 0x81 : 1))
const VARINT_TAG = Uint8Array.of(0x40)
const text = (length: number): Uint8Array => field(9, new Uint8Array(length))

describe('one run', () => {
  it.each([
    ['numbers of one byte', repeat(int(8, 5), 50)],
    ['numbers of several bytes', join(...Array.from({ length: 50 }, (_, at) => int(8, 2 ** at)))],
    ['numbers of ten bytes', repeat(join(VARINT_TAG, varintOf(10)), 10)],
    ['floats', repeat(fixed(7, new Uint8Array(4)), 50)],
    ['doubles', repeat(fixed(10, new Uint8Array(8)), 30)],
    ['short texts', join(...Array.from({ length: 20 }, (_, at) => text(at)), int(1, 1))],
    ['texts with a length of two bytes', join(...[127, 128, 129].map(text), int(1, 1))],
  ])('skips %s', (_, bytes) => {
    const { fields } = walkRuns(bytes)
    expect(fields.filter(([number]) => number !== 1)).toHaveLength(1)
    expectSame(bytes)
  })

  it.each([
    ['a tag of two bytes', repeat(int(16, 5), 3), 3],
    ['the same tag in more bytes than it needs', join(int(8, 1), Uint8Array.of(0xc0, 0x00, 1), int(8, 1)), 2],
    ['another number', join(int(8, 1), int(7, 1), int(8, 1)), 3],
    ['another wire type', join(int(8, 1), field(8, varint(1)), int(8, 1)), 3],
    ['a text with a length of three bytes', join(text(5), text(20_000), text(5)), 3],
  ])('ends before %s', (_, bytes, count) => {
    expect(walkRuns(bytes).fields).toHaveLength(count)
    expectSame(bytes)
  })

  it('skips groups as unknown fields between runs', () => {
    const group = join(Uint8Array.of(0x43), int(8, 1), Uint8Array.of(0x44))
    expectSame(join(int(8, 1), int(8, 2), group, int(8, 3), group))
    expectSame(join(int(8, 1), Uint8Array.of(0x43), int(8, 2)))
    expectSame(join(int(8, 1), Uint8Array.of(0x44), int(8, 2)))
  })
})

describe('a field that is refused', () => {
  it.each([
    ['a varint of eleven bytes', join(int(8, 1), VARINT_TAG, varintOf(11), int(8, 1)), 'more than 10 bytes'],
    ['a varint that the end cuts', join(int(8, 1), VARINT_TAG, Uint8Array.of(0x80)), 'inside a varint'],
    ['a tag without a value', join(int(8, 1), VARINT_TAG), 'inside a varint'],
    ['a float that the end cuts', repeat(fixed(7, new Uint8Array(4)), 3).subarray(0, 13), 'bytes too early'],
    ['a text that the end cuts', join(text(3), Uint8Array.of(0x4a, 4, 0, 0)), 'bytes too early'],
    ['a long text that the end cuts', join(text(3), text(200).subarray(0, 100)), 'bytes too early'],
    ['a length that the end cuts', join(text(3), Uint8Array.of(0x4a, 0x80)), 'inside a varint'],
    ['the number 0', join(int(8, 1), Uint8Array.of(0, 1)), 'the number 0'],
    ['an unknown wire type', join(int(8, 1), Uint8Array.of(0x46, 1)), 'wire type 6'],
  ])('%s is refused as in a walk over each', (_, bytes, sentence) => {
    expect(walkRuns(bytes).fault).toContain(sentence)
    expectSame(bytes)
  })

  it('is refused at the end of an inner message, whatever follows', () => {
    const bytes = repeat(fixed(7, new Uint8Array(4)), 20)
    for (let end = 0; end <= 40; end++) expectSame(bytes, end)
    const texts = repeat(text(6), 20)
    for (let end = 0; end <= 40; end++) expectSame(texts, end)
    const numbers = repeat(int(8, 300), 20)
    for (let end = 0; end <= 40; end++) expectSame(numbers, end)
  })
})

it('continues in each window of a long run', () => {
  for (const one of [
    int(8, 1),
    int(8, 2 ** 40),
    fixed(7, new Uint8Array(4)),
    fixed(10, new Uint8Array(8)),
    text(9),
  ]) {
    const bytes = repeat(one, 60_000)
    const { fields } = walkRuns(bytes)
    expect(fields.length).toBeLessThan(40)
    expect(fields.at(-1)![3]).toBe(bytes.byteLength)
    expectSame(join(bytes, Uint8Array.of(0x80)))
  }
})

/** A run, mostly valid. */
function randomRun(random: Random): Uint8Array {
  const number = 1 + random(17)
  const count = random(3) === 0 ? random(400) : random(8)
  const kind = random(4)
  return join(
    ...Array.from({ length: count }, () => {
      if (kind === 0) return int(number, random(2) === 0 ? random(200) : random(2 ** 31))
      if (kind === 1) return fixed(number, new Uint8Array(4))
      if (kind === 2) return fixed(number, new Uint8Array(8))
      return field(number, new Uint8Array(random(random(20) === 0 ? 900 : 12)))
    }),
  )
}

it('equals a walk over each field of random messages', () => {
  const random = randomNumbers(fuzzSeed(20261130))
  for (let count = 0; count < mutationCount(400); count++) {
    const bytes = join(...Array.from({ length: 1 + random(6) }, () => randomRun(random)))
    for (let change = random(3); change > 0 && bytes.byteLength > 0; change--)
      bytes[random(bytes.byteLength)] = random(256)
    expectSame(bytes, random(3) === 0 ? random(bytes.byteLength + 1) : bytes.byteLength)
  }
})
