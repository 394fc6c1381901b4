/** The way back from a model: crop, resize and letterbox of `tensorToImage`. */
import { describe, expect, it } from 'vitest'
import {
  cast,
  type DenseTensor,
  imageToTensor,
  open,
  save,
  TileworkError,
  tensor,
  tensorToImage,
} from '../../lib/index.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { pixelsOf } from '../programs/image_cases.mjs'

const inFolder = temporaryFolder()
const [width, height] = [30, 20]
const photo = pixelsOf({ seed: 7, kind: 'smooth', width, height, channels: 3 })
const NUMBERS = { mean: [120, 110, 100], std: [60, 58, 56] }

const other = pixelsOf({ seed: 9, kind: 'noise', width, height, channels: 3 })

/** What a model would give: two photos, normalised. */
function output(layout: string, order: 'rgb' | 'bgr' = 'rgb'): DenseTensor {
  return imageToTensor([photo, other], { width, height, ...NUMBERS, layout, order })
}

/** The bytes of a part of both photos, resized by `imageToTensor`. */
async function partsResized(
  part: { left: number; top: number; width: number; height: number },
  resize: object,
): Promise<Buffer> {
  return Buffer.concat([await partResized(photo, part, resize), await partResized(other, part, resize)])
}

async function partResized(
  photo: Uint8Array,
  part: { left: number; top: number; width: number; height: number },
  resize: object,
): Promise<Uint8Array> {
  const pixels = new Uint8Array(part.width * part.height * 3)
  for (let row = 0; row < part.height; row++) {
    const from = ((part.top + row) * width + part.left) * 3
    pixels.set(photo.subarray(from, from + part.width * 3), row * part.width * 3)
  }
  const size = { width: part.width, height: part.height }
  return imageToTensor(pixels, { ...size, resize, dtype: 'uint8', layout: 'nhwc' } as never).bytes()
}

describe('tensorToImage', () => {
  it.each([
    ['nchw', 'rgb', 'pillow', 'bicubic'],
    ['NHWC', 'rgb', 'torchvision', 'bilinear'],
    ['nchw', 'bgr', 'opencv', 'linear'],
  ] as const)('crops, then resizes, from %s %s like %s %s', async (layout, order, like, filter) => {
    const crop = { left: 3, top: 2, width: 21, height: 15 }
    const resize = { width: 40, height: 33, like, filter }
    const image = tensorToImage(output(layout, order), { ...NUMBERS, layout, order, crop, resize })
    expect([image.dtype, image.shape]).toEqual(['uint8', [2, 33, 40, 3]])
    const both = await partsResized(crop, resize)
    expect(Buffer.from(await image.bytes()).equals(both)).toBe(true)
    expect(Buffer.from(image.bytesSync()).equals(both)).toBe(true)
    const range = { start: 1001, end: both.length - 77 }
    expect(Buffer.from(await image.bytes(range)).equals(both.subarray(range.start, range.end))).toBe(true)
  })

  it('crops the middle, and takes the forms of a size', async () => {
    const middle = tensorToImage(output('nchw'), { ...NUMBERS, crop: 10 })
    expect(middle.shape).toEqual([2, 10, 10, 3])
    const part = { left: 10, top: 5, width: 10, height: 10 }
    const wanted = await partsResized(part, { width: 10, height: 10 })
    expect(Buffer.from(await middle.bytes()).equals(wanted)).toBe(true)
    expect(tensorToImage(output('nchw'), { resize: { shortestEdge: 40 } }).shape).toEqual([2, 40, 60, 3])
    expect(tensorToImage(output('nchw'), { resize: { width, height } }).shape).toEqual([2, height, width, 3])
  })

  it('resizes an image of three axes, and weights colours by alpha', async () => {
    const pixels = pixelsOf({ seed: 8, kind: 'noise', width, height, channels: 4 })
    const hwc = tensor(pixels, { shape: [height, width, 4] })
    const resize = { width: 11, height: 13 }
    const image = tensorToImage(hwc, { layout: 'nhwc', resize })
    expect(image.shape).toEqual([13, 11, 4])
    const given = { width, height, channels: 4, dtype: 'uint8', layout: 'nhwc', resize } as const
    const wanted = await imageToTensor(pixels, { ...given, alpha: 'keep' }).bytes()
    expect(Buffer.from(await image.bytes()).equals(wanted)).toBe(true)
    const torch = { ...resize, like: 'torchvision' } as const
    const independent = imageToTensor(pixels, { ...given, resize: torch, alpha: 'independent' })
    expect(await tensorToImage(hwc, { layout: 'nhwc', resize: torch }).bytes()).toEqual(
      await independent.bytes(),
    )
  })

  it.each([64, { width: 64, height: 48, center: false }])('undoes the letterbox %j', async (letterbox) => {
    const slope = Uint8Array.from(photo, (_, at) => 8 * (Math.floor(at / 3) % width) + (at % 3))
    const input = imageToTensor(slope, { width, height, letterbox, std: 255 })
    const [down, along] = input.shape.slice(2) as [number, number]
    const image = tensorToImage(input, { std: 255, letterbox, width, height })
    expect(image.shape).toEqual([1, height, width, 3])
    // Enlarged and shrunk again; an offset of one pixel would be a difference of 8.
    const back = await image.bytes()
    const inner = [...back.keys()].filter((at) => Math.floor(at / 3) % width < width - 1)
    for (const at of inner) expect(Math.abs(back[at]! - slope[at]!)).toBeLessThan(5)
    // An output of half the resolution has half the border.
    const small = tensorToImage(
      tensor(new Float32Array((3 * down * along) / 4).fill(0.5), { shape: [3, down / 2, along / 2] }),
      { std: 255, letterbox, width, height },
    )
    expect(small.shape).toEqual([height, width, 3])
    expect(new Set(await small.bytes())).toEqual(new Set([128]))
  })

  it('reads an output of a file when bytes are asked for, and refuses to without waiting', async () => {
    const path = inFolder('output.npy')
    await save(path, [output('nchw')])
    const file = await open(path, { mode: 'read' })
    const resize = { width: 12, height: 9 }
    const image = tensorToImage(file.dense(0), { ...NUMBERS, resize })
    const wanted = await partsResized({ left: 0, top: 0, width, height }, resize)
    expect(Buffer.from(await image.bytes()).equals(wanted)).toBe(true)
    file.close()
    await expect(image.bytes()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('refuses elements that are not real numbers', () => {
    const floats = tensor(new Float32Array(12), { dtype: 'float32', shape: [3, 2, 2] })
    const pairs = cast(floats, 'complex64')
    expect(() => tensorToImage(pairs)).toThrow('tensor "" is complex64; its elements must be real numbers.')
  })

  it.each([
    [{ crop: 21 }, 'crop is 21 × 21 and leaves the image, which is 30 × 20; it must lie within.'],
    [{ crop: { left: 25, width: 6, height: 3 } }, 'crop is 6 × 3 and leaves the image'],
    [{ crop: { left: -1, width: 6, height: 3 } }, 'crop is 6 × 3 and leaves the image'],
    [{ resize: { width: 3 } }, 'resize has width; it takes width and height'],
    [{ resize: { width: 2 ** 20, height: 2 ** 20 } }, 'the limit is 2147483648'],
    [{ width: 3, height: 3 }, 'width and height belong to letterbox'],
    [{ letterbox: 64 }, 'width is undefined; it must be a whole number from 1'],
    [{ letterbox: 64, width: 3, height: 3, crop: 2 }, 'letterbox is a crop and a resize'],
    [{ letterbox: 64, width: 2 ** 20, height: 2 ** 20 }, 'the limit is 2147483648'],
    [{ mean: Number.NaN }, 'mean is NaN; it must be finite'],
    [{ std: [1, 2] }, 'tensor "" has 3 channels along axis 1; std has 2 numbers.'],
    [{ mean: [1, 2], layout: 'nhwc' }, 'has 30 channels along axis 3; rgb images have 1 to 4.'],
    [{ dtype: 'uint8' }, 'unknown option "dtype"'],
    [{ affine: 1 }, 'unknown option "affine"'],
  ])('refuses %j', (options, text) => {
    let found: unknown
    try {
      tensorToImage(output('nchw'), options as never)
    } catch (error) {
      found = error
    }
    expect(found).toBeInstanceOf(TileworkError)
    expect((found as Error).message).toContain(text)
  })
})
