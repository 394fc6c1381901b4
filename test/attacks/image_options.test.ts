/**
 * Options, sizes and configurations of images that are wrong in random places: a call ends in a result or in a TileworkError,
 * and no size takes memory before it is checked. `TILEWORK_FUZZ_COUNT` cases, by default 1,500.
 */
import { describe, expect, it } from 'vitest'
import {
  fromModelSpace,
  imageProcessor,
  imageToTensor,
  TileworkError,
  tensor,
  tensorToImage,
} from '../../lib/index.js'
import { fuzzSeed, type Random, randomNumbers } from './random_numbers.js'

const COUNT = Number(process.env.TILEWORK_FUZZ_COUNT ?? 1500)
/** Results below this are computed; of larger ones the description is enough. */
const MOST_COMPUTED_BYTES = 4_000_000

const NUMBERS = [
  0,
  -0,
  1,
  2,
  3,
  5,
  8,
  17,
  64,
  255,
  256,
  640,
  4097,
  65_535,
  65_536,
  1_048_576,
  1_048_577,
  2 ** 31 - 1,
]
const ODD = [
  -1,
  0.5,
  1e-300,
  2 ** 31,
  2 ** 32,
  2 ** 53,
  1e308,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  '3',
  '',
  null,
]
const STRANGE: readonly unknown[] = [
  undefined,
  true,
  {},
  [],
  [1, 2, 3],
  [1, 2, 3, 4, 5],
  3n,
  () => 3,
  Symbol('s'),
  new Date(0),
]
const WORDS = [
  'pillow',
  'pillow12',
  'torchvision',
  'opencv',
  'bilinear',
  'nearest',
  'area',
  'linear',
  'mks2021',
  'nchw',
  'NHWC',
]
const MORE = [
  'bgr',
  'keep',
  'independent',
  'drop',
  'grey',
  'rgb',
  'planar',
  'nv12',
  'i420',
  'center',
  'start',
  'uint8',
  'int4',
]
const LAST = ['float16', 'complex64', 'string', 'bool', '__proto__', 'toString']

const SIZES = ['width', 'height', 'shortestEdge', 'longestEdge', 'maxWidth', 'maxHeight', 'filter', 'like']
const LETTERBOX = ['width', 'height', 'center', 'scaleUp', 'auto', 'stride', 'value', 'filter', 'like']
const PAD = ['width', 'height', 'position', 'left', 'top', 'right', 'bottom', 'value']
const FORMS: Readonly<Record<string, readonly string[]>> = {
  resize: SIZES,
  letterbox: LETTERBOX,
  crop: ['width', 'height', 'left', 'top'],
  pad: PAD,
  size: ['height', 'width', 'shortest_edge', 'longest_edge', 'max_height', 'max_width', 'min_pixels'],
  crop_size: ['height', 'width'],
  pad_size: ['height', 'width'],
}
const OPTIONS = [
  'resize',
  'letterbox',
  'crop',
  'pad',
  'pixelFormat',
  'alpha',
  'background',
  'colors',
  'mean',
  'std',
]
const OTHERS = ['scale', 'zeroPoint', 'layout', 'dtype', 'order', 'width', 'height', 'channels']
const FIELDS = [
  'size',
  'crop_size',
  'pad_size',
  'do_resize',
  'do_center_crop',
  'do_pad',
  'do_rescale',
  'do_normalize',
]
const FACTS = [
  'resample',
  'rescale_factor',
  'image_mean',
  'image_std',
  'crop_pct',
  'size_divisor',
  'ensure_multiple_of',
]
const FLAGS = [
  'keep_aspect_ratio',
  'do_convert_rgb',
  'default_to_square',
  'max_size',
  'do_flip_channel_order',
  'odd',
]
const KINDS = ['ViT', 'DeiT', 'CLIP', 'Siglip', 'ConvNext', 'Detr', 'DPT', 'GLPN', 'Sam']

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random(list.length)]!
}

function value(random: Random, name: string): unknown {
  const form = FORMS[name]
  if (form && random(3) > 0) return members(random, form, 4)
  const kind = random(20)
  if (kind < 11) return pick(random, NUMBERS)
  if (kind < 15) return pick(random, [...WORDS, ...MORE, ...LAST])
  if (kind < 17) return random(2) === 0
  return kind < 19 ? pick(random, ODD) : pick(random, STRANGE)
}

function members(random: Random, names: readonly string[], most: number): Record<string, unknown> {
  const count = random(most + 1)
  return Object.fromEntries(
    Array.from({ length: count }, () => pick(random, names)).map((name) => [name, value(random, name)]),
  )
}

/** The error of a call; others than TileworkError are thrown. */
async function outcome(run: () => unknown): Promise<'refused' | 'made'> {
  try {
    await run()
    return 'made'
  } catch (error) {
    if (error instanceof TileworkError && error.code !== 'ERR_INTERNAL') return 'refused'
    throw error
  }
}

async function computed(made: {
  storage: { byteLength: number }
  bytes(): Promise<Uint8Array>
}): Promise<void> {
  if (made.storage.byteLength <= MOST_COMPUTED_BYTES) await made.bytes()
}

const CALLS: Readonly<Record<string, (random: Random) => () => unknown>> = {
  imageToTensor: (random) => {
    const info = {
      width: pick(random, [1, 2, 5, 64]),
      height: pick(random, [1, 2, 5, 600]),
      channels: 1 + random(4),
    }
    const data = new Uint8Array(info.width * info.height * info.channels)
    const options = members(random, [...OPTIONS, ...OPTIONS, ...OTHERS], 4)
    const image = random(8) === 0 ? value(random, 'pixels') : { data, info }
    return () => computed(imageToTensor(image as never, options as never))
  },
  imageProcessor: (random) => {
    const config = {
      image_processor_type: `${pick(random, KINDS)}ImageProcessor`,
      ...members(random, [...FIELDS, ...FACTS, ...FLAGS], 5),
    }
    const options = { strict: true, ...members(random, ['backend', 'dtype', 'layout'], 1) }
    const info = { width: pick(random, [1, 7, 40, 900]), height: pick(random, [1, 33, 700]), channels: 3 }
    const data = new Uint8Array(info.width * info.height * 3)
    return async () => {
      const processor = await imageProcessor(config, options as never)
      processor.outputSize(info.width, info.height)
      await computed(processor({ data, info }).pixel_values)
    }
  },
  tensorToImage: (random) => {
    const shape = pick(random, [
      [3, 5, 7],
      [1, 4, 9, 2],
      [2, 3, 1, 64],
      [6, 6],
      [1, 1, 1, 1],
    ])
    const output = tensor(new Float32Array(shape.reduce((product, size) => product * size, 1)), { shape })
    const names = ['mean', 'std', 'layout', 'order', 'crop', 'resize', 'letterbox', 'width', 'height']
    const options = members(random, names, 4)
    return () => computed(tensorToImage(output, options as never))
  },
  fromModelSpace: (random) => {
    const odd = members(random, ['boxes', 'points', 'mask'], 1)
    const given = { boxes: [1, 2, 3, 4], points: [5, 6], ...odd }
    const options = {
      ...members(random, ['boxFormat', 'maskFilter'], 1),
      letterbox: value(random, 'letterbox'),
    }
    const hasMask = random(2) === 0
    // Below the limits a mask is as large as the image.
    const side = () =>
      hasMask || random(2) === 0 ? pick(random, [1, 3, 40, 41, 0, -1, 1.5, 2 ** 31]) : value(random, 'width')
    const size = { width: side(), height: side() }
    const mask = hasMask ? { mask: tensor(new Float32Array(6), { shape: [2, 3] }) } : {}
    return () => fromModelSpace({ ...given, ...mask } as never, { ...options, ...size } as never)
  },
}

describe('random options of images', () => {
  it.each(Object.keys(CALLS))(
    '%s ends in a result or a TileworkError',
    { timeout: 3_600_000 },
    async (name) => {
      const random = randomNumbers(fuzzSeed(50))
      const counts = { made: 0, refused: 0 }
      for (let at = 0; at < COUNT; at++) {
        const run = CALLS[name]!(random)
        try {
          counts[await outcome(run)]++
        } catch (error) {
          throw new Error(`case ${at} of ${name}: ${error}`, { cause: error })
        }
      }
      // Both outcomes, or the cases try nothing.
      expect(Math.min(counts.made, counts.refused)).toBeGreaterThan(COUNT / 100)
    },
  )
})
