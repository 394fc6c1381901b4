/**
 * What surrounds a resize, against plain loops over the whole resized image: crops, borders, ranges, batches, element types,
 * layouts. The resized bytes themselves are those of `fixtures.test.ts`, and of `npm run test:interop` in Python.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  affine,
  cast,
  fromModelSpace,
  type ImageToTensorOptions,
  imageProcessor,
  imageToTensor,
  materialize,
  quantize,
  reorder,
  save,
  slice,
  TileworkError,
  tensor,
} from '../../lib/index.js'
import { pixelsOf } from '../programs/image_cases.mjs'

const side = fc.integer({ min: 1, max: 40 })
const LIKES = ['pillow', 'pillow12', 'torchvision', 'opencv'] as const
const FILTERS = {
  pillow: ['bilinear', 'bicubic', 'lanczos', 'nearest', 'box', 'hamming', 'mks2013', 'mks2021'],
  pillow12: ['bilinear', 'lanczos'],
  torchvision: ['bilinear', 'bicubic', 'nearest'],
  opencv: ['linear', 'nearest'],
} as const

const photo = (width: number, height: number, channels: number, seed = 1): Uint8Array =>
  pixelsOf({ seed, kind: 'smooth', width, height, channels })

/** [images, height, width, channels] bytes after a resize alone. */
async function resizedBytes(pixels: Uint8Array, options: ImageToTensorOptions): Promise<Uint8Array> {
  return imageToTensor(pixels, { ...options, layout: 'nhwc', dtype: 'uint8' }).bytes()
}

describe('a resized image', () => {
  it('is cropped, padded, normalised and moved as plain loops do', async () => {
    const property = fc.asyncProperty(
      fc.record({ width: side, height: side, rw: side, rh: side, cw: side, ch: side }),
      fc.record({ left: fc.nat(20), top: fc.nat(20), before: fc.nat(3), above: fc.nat(3) }),
      fc.constantFrom(1, 3, 4),
      fc
        .constantFrom(...LIKES)
        .chain((like) => fc.record({ like: fc.constant(like), filter: fc.constantFrom(...FILTERS[like]) })),
      fc.constantFrom('nchw', 'NHWC'),
      async ({ width, height, rw, rh, cw, ch }, { left, top, before, above }, channels, rule, layout) => {
        const pixels = photo(width, height, channels)
        const given = { width, height, channels, alpha: 'independent' as const }
        const resize = { width: rw, height: rh, ...rule }
        const whole = await resizedBytes(pixels, { ...given, resize })
        const mean = [10, 20, 30, 40].slice(0, channels)
        const made = await imageToTensor(pixels, {
          ...given,
          resize,
          crop: { left, top, width: cw, height: ch },
          pad: { left: before, top: above, right: 1, value: 7 },
          mean,
          std: 3,
          layout,
        }).toTypedArray()
        const table = await affine(
          tensor(
            Uint8Array.from({ length: 256 * channels }, (_, at) => at),
            { shape: [channels, 256] },
          ),
          { mean, std: 3, axis: 0 },
        ).toTypedArray()
        const [w, h] = [cw + before + 1, ch + above]
        const wanted = new Float32Array(w * h * channels)
        for (let y = 0; y < h; y++)
          for (let x = 0; x < w; x++)
            for (let c = 0; c < channels; c++) {
              const [cx, cy] = [x - before, y - above]
              const isCrop = cx >= 0 && cy >= 0 && cx < cw && cy < ch
              const [sx, sy] = [cx + left, cy + top]
              const isSeen = isCrop && sx < rw && sy < rh
              const byte = isSeen ? whole[(sy * rw + sx) * channels + c]! : 7
              const at = layout === 'nchw' ? (c * h + y) * w + x : (y * w + x) * channels + c
              wanted[at] = table[c * 256 + byte]!
            }
        expect(made).toEqual(wanted)
      },
    )
    await fc.assert(property, { numRuns: 150, seed: 5 })
  })

  it.each(['nchw', 'nhwc'])('has the same bytes in any range, %s', async (layout) => {
    const info = { width: 31, height: 23, channels: 3 }
    const images = [1, 2, 3].map((seed) => ({ data: photo(31, 23, 3, seed), info }))
    const input = imageToTensor(images, { resize: { width: 17, height: 29 }, layout, std: 255 })
    const whole = await input.bytes()
    const ranges = fc.tuple(fc.nat(whole.length), fc.nat(whole.length))
    const property = fc.asyncProperty(ranges, async ([a, b]) => {
      const [start, end] = [Math.min(a, b), Math.max(a, b)]
      expect(Buffer.from(await input.bytes({ start, end })).equals(whole.subarray(start, end))).toBe(true)
      expect(Buffer.from(input.bytesSync({ start, end })).equals(whole.subarray(start, end))).toBe(true)
    })
    await fc.assert(property, { numRuns: 60, seed: 6 })
    const out = new Uint8Array(whole.length + 3).subarray(3)
    await input.copyTo(out)
    expect(Buffer.from(out).equals(whole)).toBe(true)
  })

  it('is a tensor like others: sliced, cast, reordered, saved', async () => {
    const input = imageToTensor(photo(300, 200, 3), {
      width: 300,
      height: 200,
      resize: { width: 64, height: 48 },
      std: 255,
    })
    const values = await materialize(input)
    const part = (whole: typeof input) =>
      cast(reorder(slice(whole, [null, [2, null, -1], [5, 40]]), 'nhwc'), 'float16').bits()
    expect(await part(input)).toEqual(await part(values))
    const chunks: Uint8Array[] = []
    await save(
      new WritableStream({ write: (chunk: Uint8Array) => void chunks.push(chunk.slice()) }),
      [input],
      { format: 'npy' },
    )
    expect(
      Buffer.concat(chunks)
        .subarray(-values.storage.byteLength)
        .equals(await values.bytes()),
    ).toBe(true)
  })

  it.each([
    [{ longestEdge: 20 }, [20, 15]],
    [{ shortestEdge: 20 }, [26, 20]],
    [{ shortestEdge: 20, longestEdge: 24 }, [24, 18]],
    [{ maxWidth: 20, maxHeight: 12 }, [16, 12]],
  ])('has the size that %j means', (resize, [width, height]) => {
    const info = { width: 40, height: 30, channels: 1 }
    const image = { data: photo(40, 30, 1), info }
    expect(imageToTensor(image, { resize }).shape).toEqual([1, 1, height, width])
    const turned = { data: photo(40, 30, 1), info: { ...info, width: 30, height: 40 } }
    const limits = 'maxWidth' in resize ? { maxWidth: 12, maxHeight: 20 } : resize
    expect(imageToTensor(turned, { resize: limits }).shape).toEqual([1, 1, width, height])
  })

  it('takes images of different sizes in one batch, and refuses results of different sizes', async () => {
    const images = [
      { data: photo(40, 30, 3), info: { width: 40, height: 30, channels: 3 } },
      { data: photo(20, 50, 4), info: { width: 20, height: 50, channels: 4 } },
    ]
    const input = imageToTensor(images, { resize: { shortestEdge: 16 }, crop: 16 })
    expect(input.shape).toEqual([2, 3, 16, 16])
    const alone = images.map((image) =>
      imageToTensor(image, { resize: { shortestEdge: 16 }, crop: 16 }).bytesSync(),
    )
    expect(Buffer.from(await input.bytes()).equals(Buffer.concat(alone))).toBe(true)
    expect(() => imageToTensor(images, { resize: { shortestEdge: 16 } })).toThrow(
      'images of one batch have one size',
    )
  })

  it.each([
    ['uint8', { scale: 1 / 64, zeroPoint: 100 }],
    ['int8', { scale: 0.02, zeroPoint: -3 }],
    ['int16', {}],
    ['uint32', {}],
    ['int4', { scale: 0.3, zeroPoint: 1 }],
    ['float8_e4m3fn', {}],
    ['bfloat16', {}],
    ['float64', {}],
  ] as const)('becomes %s as quantize and cast make it', async (dtype, parameters) => {
    const given = {
      width: 20,
      height: 10,
      channels: 3,
      resize: { width: 9, height: 12, filter: 'bicubic' as const },
    }
    const numbers = { mean: [100, 110, 120], std: [50, 60, 70] }
    const pixels = photo(20, 10, 3)
    const found = imageToTensor(pixels, { ...given, ...numbers, ...parameters, dtype })
    expect([found.dtype, found.shape]).toEqual([dtype, [1, 3, 12, 9]])
    const isFloat = dtype.includes('float')
    const floats = imageToTensor(pixels, { ...given, ...numbers, dtype: isFloat ? dtype : 'float32' })
    if (isFloat) {
      const bytes = await resizedBytes(pixels, given)
      const planes = reorder(tensor(bytes, { shape: [1, 12, 9, 3] }), 'row_major')
      const normal = affine(planes, { ...numbers, axis: 3, dtype })
      expect(await imageToTensor(pixels, { ...given, ...numbers, dtype, layout: 'nhwc' }).bytes()).toEqual(
        await normal.bytes(),
      )
      return
    }
    const wide = dtype === 'uint32' ? 'int32' : dtype
    const codes = quantize(floats, wide, { scale: 1, ...parameters })
    expect(await found.bytes()).toEqual(await (wide === dtype ? codes : cast(codes, dtype)).bytes())
  })
})

describe('wrong and hostile options', () => {
  const info = { width: 4, height: 3, channels: 3 }
  const image = { data: new Uint8Array(36), info }
  it.each([
    [{ resize: { width: 5 } }, 'resize has width; it takes width and height'],
    [{ resize: {} }, 'resize has no size'],
    [{ resize: { width: 0, height: 3 } }, 'resize.width is 0; it must be a whole number from 1'],
    [
      { resize: { width: 2, height: 2, filter: 'cubic' } },
      'filter like pillow is "cubic"; did you mean "bicubic"?',
    ],
    [{ resize: { width: 2, height: 2, like: 'sharp' } }, 'like is "sharp"; expected one of: pillow'],
    [{ resize: { width: 9, height: 9, like: 'opencv', filter: 'area' } }, 'area'],
    [{ resize: { width: 2 ** 21, height: 1 } }, 'the limit of a side is 1048576'],
    [{ resize: { width: 2 ** 20, height: 2 ** 20 } }, 'the limit is 2147483648'],
    [{ resize: { maxWidth: 1, maxHeight: 1 }, crop: 1 }, 'both sides must be at least 1'],
    [{ pad: { width: 3, height: 3 } }, 'pixels is 4 × 3 before the border; pad is 3 × 3'],
    [{ pad: { left: -1 } }, 'pad.left is -1; it must be 0 or more'],
    [{ pad: { left: 2 ** 31 - 1, right: 2 ** 31 - 1 } }, 'the limit is'],
    [{ pad: { width: 9, height: 9, value: 256 } }, 'it must be at most 255'],
    [{ background: 256 }, 'background is [256]; it must be one number from 0 to 255, or three.'],
    [{ background: [1, 2] }, 'background is [1,2]; it must be one number'],
    [{ letterbox: 640, crop: 3 }, 'letterbox is a resize with a border'],
    [{ letterbox: 2 ** 30 }, 'the limit'],
    [{ dtype: 'complex64' }, 'imageToTensor makes floats and integers; dtype is complex64'],
    [{ std: 0 }, 'std is 0; it must be finite and not 0'],
    [{ mean: Number.NaN, resize: { width: 2, height: 2 } }, 'mean is NaN'],
    [{ layout: 'b_fs_yx_fsv16' }, 'layout is "b_fs_yx_fsv16"; it must be nchw or nhwc'],
    [{ scale: 2, dtype: 'float32' }, 'scale and zeroPoint make quantized elements'],
    [{ pixelFormat: 'nv12' }, 'pixels is 4 × 3; both sides of nv12 are even'],
  ])('%j', (options, text) => {
    let found: unknown
    try {
      imageToTensor(image, options as never).bytesSync()
    } catch (error) {
      found = error
    }
    expect(found).toBeInstanceOf(TileworkError)
    expect((found as Error).message).toContain(text)
  })

  it('refuses an edge that would make a gigabyte of one column', async () => {
    const column = { data: new Uint8Array(60_000), info: { width: 1, height: 60_000, channels: 1 } }
    expect(() => imageToTensor(column, { resize: { shortestEdge: 224 } })).toThrow('224 × 13440000')
    const processor = await imageProcessor({ image_processor_type: 'CLIPImageProcessor' })
    expect(() => processor(column)).toThrow(TileworkError)
  })

  it('warns once of a mean for pixels from 0 to 1, with the factor of the samples', async () => {
    const warned: string[] = []
    const listen = (warning: Error & { code?: string }): void => {
      if (warning.code === 'TILEWORK_IMAGE_MEAN') warned.push(warning.message)
    }
    process.on('warning', listen)
    imageToTensor(image, { mean: 0.5 })
    imageToTensor(image, { mean: [0.485, 0.456, 0.406] })
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', listen)
    expect(warned).toEqual([
      'imageToTensor: mean 0.5 is below 1, but pixels are 0 to 255. For the numbers of torchvision multiply mean and std by 255.',
    ])
  })

  it('computes nothing of pixels that were transferred, and says so', async () => {
    const data = new Uint8Array(36)
    const input = imageToTensor({ data, info }, { resize: { width: 2, height: 2 } })
    structuredClone(data.buffer, { transfer: [data.buffer] })
    await expect(input.bytes()).rejects.toMatchObject({ code: 'ERR_FILE_CHANGED' })
  })
})

describe('imageProcessor', () => {
  const config = { image_processor_type: 'ViTImageProcessor', size: 8 }
  it.each([
    [{ ...config, image_processor_type: 'SamImageProcessor' }, 'built are ViTImageProcessor'],
    [{}, 'image_processor_type is undefined'],
    [{ ...config, do_flip_channel_order: true }, 'the config asks for do_flip_channel_order'],
    [{ ...config, size: { longest_edge: 3 } }, 'size of the image processor is { longest_edge }'],
    [{ ...config, size: { shortest_edge: 3, width: 3 } }, '{ shortest_edge,width }'],
    [{ ...config, image_std: [1, 0, 1] }, 'image_std of the image processor is an array'],
    [{ ...config, rescale_factor: 0 }, 'rescale_factor of the image processor is 0'],
    [{ ...config, resample: 5 }, 'resample is 5 (hamming), which the backend torchvision lacks'],
    [{ ...config, resample: 8 }, 'it must be a whole number from 0 to 7'],
    [{ ...config, do_center_crop: true, crop_size: null }, 'crop_size'],
    [{ ...config, do_centre_crop: true }, 'unknown field "do_centre_crop"'],
  ])('refuses %j', async (wrong, text) => {
    await expect(imageProcessor(wrong, { strict: true })).rejects.toThrow(text)
    await expect(imageProcessor(wrong, { strict: true })).rejects.toBeInstanceOf(TileworkError)
  })

  it('limits the long edge of a DETR with a number for its size to 1333', async () => {
    const detr = await imageProcessor({ image_processor_type: 'DetrImageProcessor', size: 800 })
    expect(detr.outputSize(2000, 1000)).toEqual({ width: 1333, height: 666 })
    expect(detr.outputSize(1000, 800)).toEqual({ width: 1000, height: 800 })
  })

  it('takes the preset of torchvision as of Pillow images unless asked for tensors', async () => {
    const image = { data: photo(40, 30, 3), info: { width: 40, height: 30, channels: 3 } }
    const size = { size: 20, resizeSize: 24 }
    const [usual, pil, tensors] = await Promise.all(
      [{}, { backend: 'pil' }, { backend: 'torchvision' }].map(async (options) =>
        (await imageProcessor('torchvision', { ...size, ...options } as never))(
          image,
        ).pixel_values.toTypedArray(),
      ),
    )
    expect(usual).toEqual(pil)
    expect(usual).not.toEqual(tensors)
  })

  it('refuses a mask of more than 2 GiB', async () => {
    const pad_size = { width: 9000, height: 9000 }
    const detr = await imageProcessor({ image_processor_type: 'DetrImageProcessor', size: 8, pad_size })
    const image = { data: photo(4, 4, 3), info: { width: 4, height: 4, channels: 3 } }
    expect(() => detr(Array.from({ length: 4 }, () => image))).toThrow(
      'pixel_mask of 4 images is 9000 × 9000, 2592000000 bytes; the limit is 2147483648.',
    )
  })

  it('pads a batch of DETR to its largest image, with a mask', async () => {
    const detr = await imageProcessor({
      image_processor_type: 'DetrImageProcessor',
      size: { shortest_edge: 8, longest_edge: 12 },
    })
    const images = [
      { data: photo(20, 10, 3), info: { width: 20, height: 10, channels: 3 } },
      { data: photo(10, 10, 3), info: { width: 10, height: 10, channels: 3 } },
    ]
    const { pixel_values, pixel_mask } = detr(images)
    expect(pixel_values.shape).toEqual([2, 3, 8, 12])
    const mask = await pixel_mask!.toTypedArray()
    expect([...mask.subarray(0, 12)].join('')).toBe('111111111111')
    expect([...mask.subarray(96, 108)].join('')).toBe('111111110000')
    const alone = await detr([images[1]!]).pixel_values.toTypedArray()
    const values = await pixel_values.toTypedArray()
    expect(values[3 * 8 * 12 + 8]).toBe(0)
    expect(values.slice(3 * 8 * 12, 3 * 8 * 12 + 8)).toEqual(alone.slice(0, 8))
  })
})

describe('fromModelSpace', () => {
  const way = { width: 200, height: 100, letterbox: { width: 64, height: 64 } }
  it('takes centers, points and masks back', async () => {
    const { boxes, points } = fromModelSpace(
      { boxes: [32, 32, 16, 8], points: [0, 0, 64, 64, 32, 16] },
      { ...way, boxFormat: 'center' },
    )
    expect([...boxes]).toEqual([75, 37.5, 125, 62.5])
    expect([...points]).toEqual([0, 0, 200, 100, 100, 0])
    const values = Float32Array.from({ length: 64 * 64 }, (_, at) => Math.floor(at / 64) - 16)
    const mask = tensor(values, { shape: [64, 64] })
    const back = fromModelSpace({ mask }, way).mask!
    expect(back.shape).toEqual([100, 200])
    const found = await back.toTypedArray()
    for (const row of [0, 1, 50, 99])
      expect(found[row * 200 + 5]).toBeCloseTo(Math.min(Math.max((row + 0.5) * 0.32 - 0.5, 0), 31), 4)
    const classes = await fromModelSpace({ mask }, { ...way, maskFilter: 'nearest' }).mask!.toTypedArray()
    expect([classes[0], classes[99 * 200], classes[50 * 200]]).toEqual([0, 31, 16])
  })

  it('refuses masks of more than 2 GiB before it takes memory', () => {
    const mask = tensor(new Float32Array(4), { shape: [2, 2] })
    const large = { width: 2 ** 20, height: 2 ** 10, letterbox: 64 }
    expect(() => fromModelSpace({ mask }, large)).toThrow(
      'the mask of 2 × 2 pixels would be resized to 1048576 × 1024, 4294967296 bytes; the limit is 2147483648.',
    )
    expect(() => fromModelSpace({ mask }, { ...large, width: 2 ** 40 })).toThrow('the limit of a side')
  })

  it('refuses what is no box', () => {
    expect(() => fromModelSpace({ boxes: [1, 2, 3] }, way)).toThrow(
      'boxes is 3 numbers; it must be one flat array with 4 numbers for each',
    )
    expect(() => fromModelSpace({ boxes: [[1, 2, 3, 4]] as never }, way)).toThrow(
      'boxes is a list of lists; it must be one flat array with 4 numbers for each',
    )
    expect(() => fromModelSpace({ mask: tensor([1], { dtype: 'float32' }) }, way)).toThrow(
      'the mask has the shape [1]',
    )
  })
})
