/** Ranges from files: the three forms that onnxruntime's `write_calibration_table` wrote of the same ranges, TensorRT's own, and wrong ones. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { readRanges } from '../../../lib/onnx.js'
import { randomNumbers } from '../../attacks/random_numbers.js'

const FOLDER = resolve(import.meta.dirname, '../../fixtures/calibration')
const bytesOf = (text: string): Uint8Array => Buffer.from(text)

/** As `make.py` of the fixtures gives them. */
const EXACT = {
  x: { min: -1, max: 2 },
  '/model.10/Conv output:0': { min: 0, max: 6.5 },
  Größe: { min: -0.25, max: Math.fround(1e-5) },
  negative: { min: -3, max: -0.5 },
  zero: { min: 0, max: 0 },
}
/** The greater end of each, around zero. */
const SYMMETRIC = {
  x: { min: -2, max: 2 },
  '/model.10/Conv output:0': { min: -6.5, max: 6.5 },
  Größe: { min: -Math.fround(1e-5), max: Math.fround(1e-5) },
  negative: { min: -0.5, max: 0.5 },
  zero: { min: -0, max: 0 },
}

describe('readRanges', () => {
  it.each([
    ['calibration.json', EXACT],
    ['calibration.cache', SYMMETRIC],
    ['calibration.flatbuffers', SYMMETRIC],
  ])('reads %s, by path, URL and bytes', async (name, ranges) => {
    const path = join(FOLDER, name)
    for (const input of [path, pathToFileURL(path), readFileSync(path)])
      expect(await readRanges(input)).toEqual(ranges)
  })

  it('reads the table that TensorRT writes: bits of a scale of int8', async () => {
    const text = 'TRT-8601-EntropyCalibration2\nx: 3c010a14\n/model.10/Conv:0: 3f800000\n'
    const scale = Buffer.from('3c010a14', 'hex').readFloatBE()
    expect(await readRanges(bytesOf(text))).toEqual({
      x: { min: -127 * scale, max: 127 * scale },
      '/model.10/Conv:0': { min: -127, max: 127 },
    })
  })

  it.each([
    ['{ min, max }', '{ "x": { "min": -1, "max": 2 } }', { x: { min: -1, max: 2 } }],
    ['pairs', ' {"x": [-1, 2]}', { x: { min: -1, max: 2 } }],
    ['a byte order mark', '\ufeff{"x": [-1, 2]}', { x: { min: -1, max: 2 } }],
    ['lines of Windows', 'a b 1\r\nc 0.5\r\n', { 'a b': { min: -1, max: 1 }, c: { min: -0.5, max: 0.5 } }],
    ['nothing', '', {}],
  ])('reads text with %s', async (_, text, ranges) => {
    expect(await readRanges(bytesOf(text))).toEqual(ranges)
  })

  it('takes any name of a value', async () => {
    for (const text of ['{"__proto__": [-1, 1]}', '__proto__ 1']) {
      const ranges = await readRanges(bytesOf(text))
      expect(Object.entries(ranges)).toEqual([['__proto__', { min: -1, max: 1 }]])
    }
  })

  it.each([
    ['{"x": ', 'ERR_HEADER', 'memory is not JSON.'],
    ['{"x": [1]}', 'ERR_ARGUMENT', 'the range of "x" is 1 to undefined'],
    ['x 1\nonlyname\n', 'ERR_HEADER', 'memory: Line 2 is "onlyname"; it must be "name number".'],
    ['x inf\n', 'ERR_ARGUMENT', 'the range of "x" is NaN to NaN'],
    ['TRT-1\nx: 12\n', 'ERR_HEADER', 'Line 2 is "x: 12"; it must be "name: scale" with'],
    ['TRT-1\nx: 7f800000\n', 'ERR_ARGUMENT', 'the range of "x" is -Infinity to Infinity'],
    ['PK\u0003\u0004\0\0\0\0', 'ERR_OFFSET_RANGE', 'nor a FlatBuffer of onnxruntime.'],
  ])('refuses %j', async (text, code, message) => {
    await expect(readRanges(bytesOf(text))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    })
  })

  it('ends with a code for damaged tables', async () => {
    const table = readFileSync(join(FOLDER, 'calibration.flatbuffers'))
    const random = randomNumbers(7)
    for (let round = 0; round < 2000; round++) {
      const damaged = Uint8Array.from(table)
      for (let change = 0; change < 3; change++) damaged[random(damaged.length)] = random(256)
      const cut = damaged.subarray(0, random(4) === 0 ? random(damaged.length) : damaged.length)
      const failure = await readRanges(cut).catch((error: unknown) => error)
      if (failure instanceof Error) expect((failure as { readonly code?: string }).code).toMatch(/^ERR_/)
    }
  })
})
