/** `tilework image`. */
import { writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { imageProcessor, imageToTensor, open, save, tensor } from '../../lib/index.js'
import { pixelsOf } from '../programs/image_cases.mjs'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const OUT = inFolder('out.npy')
const RAW = inFolder('photo.raw')
const NPY = inFolder('photo.npy')
const [width, height] = [60, 50]
const pixels = pixelsOf({ seed: 3, kind: 'smooth', height, width, channels: 3 })
const info = { width, height, channels: 3 }

beforeAll(async () => {
  writeFileSync(RAW, pixels)
  await save(NPY, [tensor(pixels, { shape: [height, width, 3] })])
})

async function written(): Promise<{ dtype: string; shape: readonly number[]; bytes: Uint8Array }> {
  const file = await open(OUT, { mode: 'read' })
  const { dtype, shape } = file.dense(0)
  const bytes = await file.dense(0).bytes()
  file.close()
  return { dtype, shape, bytes }
}

describe('tilework image', () => {
  const flags = ['--resize', 'shortest=40', '--filter', 'bicubic', '--like', 'torchvision', '--crop', '32x24']
  const numbers = ['--mean', '120,110,100', '--std', '60', '--dtype', 'float16', '--layout', 'NHWC']
  const expected = () =>
    imageToTensor(
      { data: pixels, info },
      {
        resize: { shortestEdge: 40, filter: 'bicubic', like: 'torchvision' },
        crop: { width: 32, height: 24 },
        mean: [120, 110, 100],
        std: 60,
        dtype: 'float16',
        layout: 'nhwc',
      },
    )

  it.each([
    ['raw samples', [RAW, '--input-size', '60x50']],
    ['an npy file', [NPY]],
  ])('writes the tensor of the library from %s', async (_, input) => {
    const { code, stdout } = await runCli(['image', ...input, ...flags, ...numbers, '-o', OUT])
    expect([code, stdout]).toEqual([0, expect.stringContaining('float16 [1, 24, 32, 3]')])
    expect((await written()).bytes).toEqual(await expected().bytes())
  })

  it.each([
    ['longest=40', [1, 3, 33, 40]],
    ['shortest=25', [1, 3, 25, 30]],
    ['shortest=45,longest=48', [1, 3, 40, 48]],
    ['max=30x40', [1, 3, 25, 30]],
    ['30×20', [1, 3, 20, 30]],
  ])('resizes to %s', async (size, shape) => {
    const { code } = await runCli(['image', NPY, '--resize', size, '-o', OUT])
    expect([code, (await written()).shape]).toEqual([0, shape])
  })

  it('makes a batch by a configuration', async () => {
    const config = inFolder('preprocessor_config.json')
    writeFileSync(
      config,
      JSON.stringify({ image_processor_type: 'ViTImageProcessorFast', size: 32, resample: 3 }),
    )
    const { code } = await runCli(['image', NPY, NPY, '--processor', config, '--backend', 'pil', '-o', OUT])
    const processor = await imageProcessor(config, { backend: 'pil' })
    const images = [0, 1].map(() => ({ data: pixels, info }))
    expect(code).toBe(0)
    expect(await written()).toEqual({
      dtype: 'float32',
      shape: [2, 3, 32, 32],
      bytes: await processor(images).pixel_values.bytes(),
    })
  })

  it.each([
    [[RAW], 'photo.raw holds raw samples; --input-size WxH says its size'],
    [[NPY, '--crop', '3x'], '--crop is "3x"; it must be a size such as 640x480'],
    [[NPY, '--resize', 'longest=3x'], '--resize is "longest=3x"; it must be a size such as 640x480'],
    [[NPY, '--filter', 'bicubic'], '--filter and --like belong to --resize or --letterbox'],
    [[NPY, '--processor', 'yolo', '--zero-point', '1'], '--zero-point and --processor do not go together'],
    [[NPY, '--mean', '1,,2'], '--mean is "1,,2"; it must be numbers separated by commas'],
    [[NPY, '--letterbox', '99999999'], 'the limit'],
  ])('refuses %j', async (args, text) => {
    const { code, stderr } = await runCli(['image', ...args, '-o', OUT])
    expect(stderr).toContain(text)
    expect(code).not.toBe(0)
  })

  // 74: an error of the system, not of tilework.
  it.each([
    [['none.jpg', '--processor', 'yolo'], 'none.jpg: ENOENT'],
    [['none.raw', '--input-size', '3x3'], 'none.raw: ENOENT'],
    [[inFolder('.'), '--processor', 'yolo'], 'EISDIR'],
    [
      [NPY, '--processor', 'yolov8'],
      '"yolov8" is no file that can be read, and no convention; expected one of: yolo, torchvision.',
    ],
    [[NPY, '--processor', 'imagenet'], 'and no convention; expected one of: yolo, torchvision.'],
  ])('says which file cannot be read: %j', async (args, text) => {
    const { code, stderr } = await runCli(['image', ...args, '-o', OUT])
    expect({ code, stderr }).toEqual({ code: 74, stderr: expect.stringContaining(text) })
    expect(stderr).not.toContain('ERR_INTERNAL')
  })

  it('takes the size of a convention', async () => {
    expect(await runCli(['image', NPY, '--processor', 'yolo', '--size', '320', '-o', OUT])).toMatchObject({
      code: 0,
    })
    expect((await written()).shape).toEqual([1, 3, 320, 320])
  })

  it('says how many bytes of the standard input were expected', async () => {
    const read = (args: string[]) =>
      runCli(['image', '-', ...args, '-o', OUT], {
        stdin: async function* () {
          yield pixels
        },
      })
    expect((await read(['--input-size', '6x4'])).stderr).toContain(
      'the standard input has more than the 96 bytes of 6 × 4 pixels of four channels.',
    )
    expect((await read([])).stderr).toContain(
      'the standard input holds raw samples; --input-size WxH says its size.',
    )
  })
})
