/** `imageToTensor` and `tensorToImage` compared with plain loops, and results in the caller's memory. */
import { describe, expect, it } from 'vitest'
import {
  affine,
  cast,
  type DenseTensor,
  imageToTensor,
  materialize,
  reorder,
  tensor,
  tensorToImage,
} from '../../lib/index.js'

const MEAN = [123.675, 116.28, 103.53]
const STD = [58.395, 57.12, 57.375]

const pixelsOf = (length: number, first = 0): Uint8Array =>
  Uint8Array.from({ length }, (_, i) => (i * 37 + first) % 256)

interface Case {
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly layout: 'nchw' | 'nhwc'
  readonly order: 'rgb' | 'bgr'
}

/** The batch by a loop: `(pixel - mean) / std` as `pixel * (1 / std) + (-mean / std)` in float64. */
function expected(images: readonly Uint8Array[], { width, height, channels, layout, order }: Case): number[] {
  const kept = channels > 2 ? 3 : 1
  const values: number[] = []
  for (const [n, image] of images.entries()) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        for (let c = 0; c < kept; c++) {
          const from = order === 'bgr' ? kept - 1 - c : c
          const planar = ((n * kept + c) * height + y) * width + x
          const packed = ((n * height + y) * width + x) * kept + c
          values[layout === 'nchw' ? planar : packed] =
            (image[(y * width + x) * channels + from]! - MEAN[c]!) / STD[c]!
        }
      }
    }
  }
  return values
}

describe('imageToTensor', () => {
  const cases = [1, 2, 3, 4].flatMap((channels) =>
    (['nchw', 'nhwc'] as const).flatMap((layout) =>
      (['rgb', 'bgr'] as const).map((order): Case => ({ width: 37, height: 11, channels, layout, order })),
    ),
  )

  it.each(cases)('$channels channels to $layout $order', async (each) => {
    const { width, height, channels, layout } = each
    const images = [pixelsOf(width * height * channels), pixelsOf(width * height * channels, 99)]
    const kept = channels > 2 ? 3 : 1
    const numbers = { mean: MEAN.slice(0, kept), std: STD.slice(0, kept) }
    const input = imageToTensor(images, { ...each, ...numbers })
    expect(input.shape).toEqual(layout === 'nchw' ? [2, kept, height, width] : [2, height, width, kept])
    expect(input.storage.layout).toBe('row_major')
    const values = await input.toTypedArray()
    const wanted = expected(images, each)
    expect(values.length).toBe(wanted.length)
    for (const [i, value] of wanted.entries()) expect(Math.abs(values[i]! - value)).toBeLessThan(1e-5)
    // The same elements by other calls, whichever kernel moves them.
    const half = imageToTensor(images, { ...each, ...numbers, dtype: 'float16' })
    expect(await half.bits()).toEqual(await cast(tensor(values, { shape: input.shape }), 'float16').bits())
    expect(input.bytesSync()).toEqual(new Uint8Array(values.buffer))
  })

  it.each([3, 4])('equals an affine map of each plane, for large images of %i channels', async (channels) => {
    const [width, height] = [251, 333]
    const pixels = pixelsOf(2 * width * height * channels)
    for (const dtype of ['float32', 'float16', 'bfloat16'] as const) {
      for (const order of ['rgb', 'bgr'] as const) {
        const input = imageToTensor(pixels, {
          width,
          height,
          channels,
          mean: MEAN,
          std: STD,
          dtype,
          order,
        })
        const channel = (c: number) =>
          tensor(
            Uint8Array.from({ length: 2 * width * height }, (_, i) => pixels[channels * i + c]!),
            { shape: [2, height, width] },
          )
        const made = await input.bytes()
        for (const c of [0, 1, 2]) {
          const plane = affine(channel(order === 'rgb' ? c : 2 - c), { mean: MEAN[c]!, std: STD[c]!, dtype })
          const plain = await materialize(plane)
          const size = plain.storage.byteLength / 2
          for (const n of [0, 1]) {
            const at = (n * 3 + c) * size
            const own = await plain.bytes({ start: n * size, end: (n + 1) * size })
            expect(Buffer.from(own).equals(made.subarray(at, at + size))).toBe(true)
          }
        }
        // Ranges that begin and end anywhere.
        for (const [start, end] of [
          [0, 1],
          [1001, 300_003],
          [made.length - 70_001, made.length],
        ] as const) {
          expect(Buffer.from(await input.bytes({ start, end })).equals(made.subarray(start, end))).toBe(true)
        }
      }
    }
  })

  it('takes the objects of sharp, one buffer of several images, and a canvas', async () => {
    const pixels = pixelsOf(2 * 3 * 4)
    const info = { width: 2, height: 3, channels: 4 }
    const input = imageToTensor({ data: pixels, info })
    expect(input.shape).toEqual([1, 3, 3, 2])
    expect(
      imageToTensor([
        { data: pixels, info },
        { data: pixels, info },
      ]).shape,
    ).toEqual([2, 3, 3, 2])
    expect(imageToTensor(pixels, { width: 2, height: 2, channels: 3 }).shape).toEqual([2, 3, 2, 2])
    expect(imageToTensor(new Uint8ClampedArray(pixels), { width: 2, height: 3 }).shape).toEqual([1, 3, 3, 2])
    expect(imageToTensor(pixels, { width: 4, height: 6 }).shape).toEqual([1, 1, 6, 4])
  })

  it.each([2, 96])('takes images with and without alpha in one batch, of %i² pixels', async (size) => {
    const plain = pixelsOf(size * size * 3)
    const withAlpha = new Uint8Array(size * size * 4).fill(255)
    plain.forEach((value, at) => {
      withAlpha[Math.floor(at / 3) * 4 + (at % 3)] = value
    })
    const info = (channels: number) => ({ width: size, height: size, channels })
    // Four images of three channels have the length of three images of four.
    const mixed = [
      { data: plain, info: info(3) },
      { data: withAlpha, info: info(4) },
      { data: plain, info: info(3) },
      { data: new Uint8Array([...plain, ...plain, ...plain, ...plain]), info: info(3) },
      { data: new Uint8Array([...withAlpha, ...withAlpha, ...withAlpha]), info: info(4) },
    ]
    const options = { mean: MEAN, std: STD, order: 'bgr' } as const
    const one = await imageToTensor({ data: plain, info: info(3) }, options).toTypedArray()
    const input = imageToTensor(mixed, options)
    expect(input.shape).toEqual([10, 3, size, size])
    const values = await input.toTypedArray()
    for (let at = 0; at < 10; at++)
      expect(values.subarray(at * one.length, (at + 1) * one.length)).toEqual(one)
  })

  it('takes samples of 16 bits where info reports them, and refuses others', async () => {
    const info = { width: 2, height: 2, channels: 3 }
    const samples = Uint16Array.from({ length: 12 }, (_, at) => at * 5957)
    const pool = new Uint8Array([0, ...new Uint8Array(samples.buffer)])
    const data = pool.subarray(1)
    const options = { layout: 'NHWC', dtype: 'float32', std: 65_535 } as const
    const values = await imageToTensor({ data, info: { ...info, depth: 'ushort' } }, options).toTypedArray()
    expect(values).toEqual(
      Float32Array.from(samples, (sample) => Math.fround(sample * Math.fround(1 / 65_535))),
    )
    expect(await imageToTensor(samples, { ...info, ...options }).toTypedArray()).toEqual(values)
    expect(() => imageToTensor({ data, info: { ...info, depth: 'float' } })).toThrow(
      'pixels has samples of type "float"; it must be "uchar", which sharp\'s raw() gives without depth, or "ushort".',
    )
    expect(imageToTensor({ data: data.subarray(0, 12), info: { ...info, depth: 'uchar' } }).shape).toEqual([
      1, 3, 2, 2,
    ])
  })

  it('refuses mean and std of another count of colours, naming the image', () => {
    const options = { width: 2, height: 2, mean: 0.5, std: [1, 2, 3] }
    expect(() => imageToTensor([new Uint8Array(4)], options)).toThrow(
      'pixels[0] is grey: 1 channel; std has 3 numbers.',
    )
    expect(() => imageToTensor(new Uint8Array(16), { ...options, mean: [1, 2] })).toThrow(
      'pixels has 3 colours; mean has 2 numbers.',
    )
  })

  it('refuses pixels that do not fit, naming the image', () => {
    const options = { width: 2, height: 2 }
    expect(() => imageToTensor(new Uint8Array(13), options)).toThrow(
      'pixels has 13 bytes; 2 × 2 pixels have 12 bytes in RGB and 16 with alpha (several images in one buffer need the option channels).',
    )
    expect(() => imageToTensor([new Uint8Array(13)], { ...options, channels: 3 })).toThrow(
      'pixels[0] has 13 bytes; 2 × 2 pixels of 3 channels are a multiple of 12 bytes.',
    )
    expect(() => imageToTensor([new Uint8Array(12), new Uint8Array(8)], options)).toThrow(
      'pixels[1] is 2 × 2 × 2 and pixels[0] is 2 × 2 × 3; images of one batch have one size and the same colours.',
    )
    expect(() => imageToTensor(new Uint8Array(3), options)).toThrow('Decode image files first')
    expect(() => imageToTensor([], options)).toThrow('pixels is an empty list of images.')
    expect(() => imageToTensor([Promise.resolve(new Uint8Array(12))] as never, options)).toThrow(
      'pixels[0] is a promise (await it first); it must be a Uint8Array or Uint16Array of raw pixels',
    )
    expect(() => imageToTensor({ raw() {} } as never, options)).toThrow('pixels is an object; it must be')
    expect(() => imageToTensor(new Float32Array(12) as never, options)).toThrow('it must be a Uint8Array')
    expect(() => imageToTensor(new Uint8Array(12), { width: 2 })).toThrow('height is undefined')
    expect(() => imageToTensor(new Uint8Array(12), { ...options, mean: [1, 2] })).toThrow(
      expect.objectContaining({ code: 'ERR_QUANTIZATION' }),
    )
    expect(() => imageToTensor(new Uint8Array(12), { ...options, order: 'gbr' as never })).toThrow(
      'order is "gbr"; expected one of: rgb, bgr.',
    )
  })
})

describe('tensorToImage', () => {
  it.each(['nchw', 'nhwc'] as const)('gives the pixels back from %s', async (layout) => {
    for (const order of ['rgb', 'bgr'] as const) {
      const pixels = pixelsOf(2 * 5 * 7 * 3)
      const options = { mean: MEAN, std: STD, layout, order }
      const input = await materialize(imageToTensor(pixels, { width: 7, height: 5, channels: 3, ...options }))
      const image = tensorToImage(input, options)
      expect(image.shape).toEqual([2, 5, 7, 3])
      expect(await image.bytes()).toEqual(pixels)
      const one = tensor((await input.toTypedArray()).slice(0, 105), { shape: input.shape.slice(1) })
      expect(await tensorToImage(one, options).bytes()).toEqual(pixels.slice(0, 105))
    }
  })

  it('rounds and clamps', async () => {
    const values = tensor([-5, 0.4, 0.5, 1.5, 254.6, 300, Number.NaN, Number.POSITIVE_INFINITY], {
      dtype: 'float32',
      shape: [1, 2, 4],
    })
    expect([...(await tensorToImage(values).bytes())]).toEqual([0, 0, 0, 2, 255, 255, 0, 255])
    expect([...(await tensorToImage(values, { std: 255 }).bytes())].slice(0, 3)).toEqual([0, 102, 128])
  })

  it('refuses what is no image', () => {
    expect(() => tensorToImage(tensor([1], { dtype: 'float32' }))).toThrow(
      'tensor "" has the shape [1]; an image has 3 axes, and a batch 4.',
    )
    const wide = tensor(new Float32Array(20), { shape: [5, 2, 2] })
    expect(() => tensorToImage(wide)).toThrow('has 5 channels along axis 0; rgb images have 1 to 4.')
  })
})

describe('out', () => {
  const values = Float32Array.from({ length: 24 }, (_, i) => i / 8)
  const given = reorder(tensor(values, { shape: [1, 2, 3, 4] }), 'nhwc')

  it('takes values, codes and storage into memory of the caller', async () => {
    const floats = new Float32Array(30).subarray(3, 27)
    expect(await given.toTypedArray({ out: floats })).toBe(floats)
    expect(floats).toEqual(values)
    const half = cast(given, 'float16')
    const codes = new Uint16Array(24)
    expect(await half.bits({ out: codes })).toBe(codes)
    expect(codes).toEqual(await half.bits())
    expect(await half.toTypedArray({ out: floats })).toBe(floats)
    expect(floats).toEqual(values)
    const nibbles = cast(given, 'uint4')
    const out = new Uint8Array(24)
    expect(await nibbles.toTypedArray({ out })).toBe(out)
    expect(out).toEqual(await nibbles.toTypedArray())
    expect(await nibbles.bits({ out })).toEqual(await nibbles.bits())
    const kept = new Float32Array(24)
    const owned = await materialize(given, { out: kept })
    expect(owned.bytesSync().buffer).toBe(kept.buffer)
    expect(await owned.toTypedArray()).toEqual(values)
    const complex = tensor(new Float32Array(2), { dtype: 'float32', shape: [2] })
    const pairs = cast(complex, 'complex64')
    expect(await pairs.toTypedArray({ out: new Float32Array(4) })).toEqual(new Float32Array(4))
  })

  it('must have the class and the length of the result', async () => {
    await expect(given.toTypedArray({ out: new Float32Array(23) })).rejects.toThrow(
      'out is a Float32Array of 23 elements; it must be a Float32Array of 24 elements.',
    )
    await expect(given.toTypedArray({ out: new Float64Array(24) })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
    await expect(materialize(given, { out: new Uint8Array(95) })).rejects.toThrow(
      'out has 95 bytes; the storage has 96.',
    )
    await expect(cast(given, 'float16').bits({ out: new Uint8Array(24) })).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
  })
})

it('tensor borrows a typed array that has the element type', async () => {
  const values = Float32Array.of(1, 2)
  const borrowed: DenseTensor = tensor(values)
  expect(borrowed.bytesSync().buffer).toBe(values.buffer)
  values[1] = 5
  expect(borrowed.at(1)).toBe(5)
  const converted = tensor(values, { dtype: 'float64' })
  values[1] = 6
  expect(converted.at(1)).toBe(5)
})
