/**
 * Bytes of tensors with one value, which `pad`, `slice` and `cast` make of the padding alone, for elements below a byte.
 * The bits behind the last element must be zero: a digest covers them, and writers store them.
 */
import { describe, expect, it } from 'vitest'
import { DTYPES, type Dtype } from '../../lib/dtype/dtypes.js'
import {
  cast,
  type DenseTensor,
  diff,
  digest,
  materialize,
  open,
  pad,
  reorder,
  serialize,
  slice,
  tensor,
} from '../../lib/index.js'

const PACKED = (Object.keys(DTYPES) as Dtype[]).filter((dtype) => DTYPES[dtype].bits % 8 !== 0)
/** Up to two bytes of 1-byte patterns, and past four of the 3-byte patterns of 6 bits. */
const COUNTS = Array.from({ length: 17 }, (_, at) => at + 1)

/** `count` elements of value 1, all from the padding; `cast` after it, which changes the one element that is held. */
function fromPadding(dtype: Dtype, count: number): DenseTensor {
  const padded = pad(tensor(new Float32Array(2)), [[0, count + 1]], { value: 1 })
  return cast(slice(padded, [[2, 2 + count]]), dtype)
}

/** The same elements from memory. */
const fromMemory = (dtype: Dtype, count: number): DenseTensor =>
  tensor(new Array<number>(count).fill(1), { dtype, shape: [count] })

/** The bytes of `count` equal codes, computed as one long integer. */
function packed(dtype: Dtype, count: number): Uint8Array {
  const bits = BigInt(DTYPES[dtype].bits)
  const code = BigInt(fromMemory(dtype, 1).bytesSync()[0]!)
  let all = 0n
  for (let at = 0; at < count; at++) all = (all << bits) | code
  const bytes = new Uint8Array(Math.ceil((count * DTYPES[dtype].bits) / 8))
  return bytes.map((_, at) => Number((all >> BigInt(8 * at)) & 0xffn))
}

describe('elements below a byte', () => {
  it('are all types that the tests take', () => {
    expect(PACKED).toEqual(expect.arrayContaining(['int2', 'uint2', 'int4', 'uint4', 'float4_e2m1fn']))
    expect(PACKED).toEqual(expect.arrayContaining(['float6_e2m3fn', 'float6_e3m2fn']))
  })

  // Catches the element repeated to the end of the last byte, in each way to read all bytes.
  it.each(PACKED)('%s: every way to read leaves zeros behind the last element', async (dtype) => {
    for (const count of COUNTS) {
      const lazy = fromPadding(dtype, count)
      const expected = packed(dtype, count)
      const target = new Uint8Array(expected.byteLength).fill(0xff)
      expect(lazy.bytesSync(), `${count}`).toEqual(expected)
      expect(await lazy.bytes(), `${count}`).toEqual(expected)
      await lazy.copyTo(target)
      expect(target, `${count}`).toEqual(expected)
      expect(await (await materialize(lazy)).bytes(), `${count}`).toEqual(expected)
      expect(Array.from((await lazy.toTypedArray()) as ArrayLike<number>, Number)).toEqual(
        new Array(count).fill(1),
      )
    }
  })

  // Catches zeros at the end of a range instead of the storage, and a mask that is applied to another byte than the last.
  it.each(PACKED)('%s: a range of bytes is that part of all bytes', async (dtype) => {
    for (const count of COUNTS) {
      const lazy = fromPadding(dtype, count)
      const expected = packed(dtype, count)
      for (let start = 0; start <= expected.byteLength; start++) {
        for (let end = start; end <= expected.byteLength; end++) {
          const range = { start, end }
          expect(await lazy.bytes(range), `${count} [${start}, ${end})`).toEqual(expected.slice(start, end))
          expect(lazy.bytesSync(range), `${count} [${start}, ${end})`).toEqual(expected.slice(start, end))
        }
      }
    }
  })

  // Catches a difference where there is none: equal elements, another digest.
  it.each(PACKED)('%s: digest and diff are those of the elements in memory', async (dtype) => {
    for (const count of COUNTS) {
      const [lazy, plain] = [fromPadding(dtype, count), fromMemory(dtype, count)]
      expect(await digest(lazy), `${count}`).toBe(await digest(plain))
      expect(await diff(lazy, plain)).toMatchObject({ isSame: true, sameBits: 1 })
    }
  })

  // Catches a writer that stores what the constant has behind its last element.
  it.each(PACKED)('%s: files have the bytes of files of the elements in memory', async (dtype) => {
    for (const count of COUNTS) {
      for (const format of ['onnx', 'safetensors', 'btf', 'npy'] as const) {
        const [lazy, plain] = await Promise.all(
          [fromPadding(dtype, count), fromMemory(dtype, count)].map((each) =>
            serialize(each, { format }).catch((error: { code: string }) => error.code),
          ),
        )
        expect(lazy, `${format}, ${count}`).toEqual(plain)
        if (format === 'onnx') expect(lazy).toBeInstanceOf(Uint8Array)
      }
    }
  })

  // Catches a mask at the end of other elements than the layout stores last, and holes filled with the value: os_iyx_osv16
  // has holes for an odd I with 4-bit integers, and none with the type before the cast.
  it.each([
    ['int4', 'nhwc', (count: number) => [1, count, 1, 1]],
    ['float4_e2m1fn', 'nhwc', (count: number) => [1, 3, count, 1]],
    ['uint2', 'column_major', (count: number) => [count, 3]],
    ['float6_e3m2fn', 'yxfb', (count: number) => [1, count, 3, 1]],
    ['uint4', 'b_fs_yx_fsv16', (count: number) => [1, count, 1, 3]],
    ['int4', 'os_iyx_osv16', (count: number) => [16, count, 1, 1]],
    ['uint4', 'g_os_iyx_osv16', (count: number) => [1, count, 1, 1, 1]],
    ['int4', 'os_iyx_osv64', (count: number) => [64, count, 1, 1]],
  ] as const)('%s in %s: the storage is that of the elements in memory', async (dtype, layout, shapeOf) => {
    for (const count of COUNTS) {
      const shape = shapeOf(count)
      const ones = new Float32Array(shape.reduce((product, extent) => product * extent, 1)).fill(1)
      const inner = reorder(tensor(ones, { shape }), layout)
      const around = pad(inner, [[0, shape[0]!]], { value: 1 })
      const lazy = cast(slice(around, [[shape[0]!, 2 * shape[0]!]]), dtype)
      const plain = cast(inner, dtype)
      expect(lazy.storage).toEqual(plain.storage)
      expect(await lazy.bytes(), `${count}`).toEqual(await plain.bytes())
      expect(await digest(lazy), `${count}`).toBe(await digest(plain))
    }
  })

  // Catches zeros after a part of a joined tensor, where the next part's elements follow.
  it.each(PACKED)('%s: padded tensors have the bytes of the elements in memory', async (dtype) => {
    for (const count of COUNTS) {
      const padded = cast(pad(tensor(new Float32Array([1, 1])), [[count, count]], { value: 1 }), dtype)
      expect(await padded.bytes(), `${count}`).toEqual(packed(dtype, 2 * count + 2))
    }
  })

  it('are read from a file of the padding alone', async () => {
    const file = await open(await serialize(fromPadding('int4', 3), { format: 'onnx' }))
    expect(await digest(file.tensors.at(0)!)).toBe(await digest(fromMemory('int4', 3)))
  })
})
