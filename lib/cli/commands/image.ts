/** `tilework image INPUT… -o OUT`: pixels to the input of a model. */
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import {
  type DenseTensor,
  type ImageProcessorOptions,
  type ImageResizeOptions,
  type ImageToTensorOptions,
  imageProcessor,
  imageToTensor,
  open,
  type PixelsWithInfo,
  save,
  TileworkError,
} from '../../index.js'
import { systemError } from '../../internal.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { formatBytes } from '../text/byte_count.js'
import { wholeNumber } from '../text/parse_number.js'
import { printable, printJson } from '../text/printable.js'
import type { Terminal } from '../text/terminal.js'
import { fileOptions, noClobberOption, type OutputChoice, replaceGraphOption } from './output_options.js'

interface Size {
  readonly width: number
  readonly height: number
}

interface ImageChoice extends OutputChoice {
  readonly output: string
  readonly inputSize?: Size
  readonly channels?: number
  readonly pixelFormat?: string
  readonly resize?: ImageResizeOptions
  readonly filter?: string
  readonly like?: string
  readonly crop?: Size
  readonly pad?: Size
  readonly letterbox?: Size
  readonly mean?: readonly number[]
  readonly std?: readonly number[]
  readonly scale?: number
  readonly zeroPoint?: number
  readonly dtype?: string
  readonly layout?: string
  readonly order?: string
  readonly processor?: string
  readonly backend?: string
  readonly size?: number
  readonly strict?: boolean
  readonly json?: boolean
}

export interface ImageReport {
  readonly inputs: readonly string[]
  readonly output: string
  readonly dtype: string
  readonly shape: readonly number[]
  readonly byteLength: number
}

/** What sharp is needed for; the rest of it is not used. */
type Sharp = (input: Buffer) => {
  rotate(): { raw(): { toBuffer(options: { resolveWithObject: true }): Promise<PixelsWithInfo> } }
}

/** Options of `imageToTensor` under the same name, which a configuration replaces. */
const TENSOR_OPTIONS = ['pixelFormat', 'crop', 'pad', 'mean', 'std', 'scale', 'zeroPoint', 'order'] as const

/** Four channels of one byte. */
const MOST_PIXEL_BYTES = 4

const HELP = `
Examples:
  tilework image photo.jpg --processor preprocessor_config.json -o batch.npy       (needs: npm i sharp)
  tilework image photo.raw --input-size 600x512 --resize shortest=256 --filter bicubic --crop 224 \\
    --mean 123.675,116.28,103.53 --std 58.395,57.12,57.375 -o batch.npy
  tilework image a.npy b.npy --letterbox 640 --std 255 --dtype float16 -o batch.npy
  node decode.mjs | tilework image - --input-size 1920x1080 --processor yolo -o batch.npy

Inputs: raw samples, which need --input-size; .npy of uint8 or uint16 [height, width, channels]; "-" for raw
samples from standard input; with sharp installed any image file that sharp decodes.
--resize takes N for a square, WIDTHxHEIGHT, shortest=N, longest=N, shortest=N,longest=N or max=WIDTHxHEIGHT. Proportions and bytes are those of
the library that --like names: pillow, pillow12, torchvision or opencv.`

export function addImage(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  program
    .command('image')
    .summary('make the input of a model from pixels')
    .description('Resizes, crops and normalises images as Pillow, torchvision or OpenCV do.')
    .argument('<inputs...>', 'raw pixels, .npy, "-", or image files')
    .requiredOption('-o, --output <file>', 'where to write the batch; its extension is the format')
    .option('--input-size <WxH>', 'width and height of raw pixels', size('--input-size'))
    .option('--channels <n>', 'channels of raw pixels: 1 to 4', wholeNumber('--channels'))
    .option('--pixel-format <name>', 'interleaved, planar, nv12, nv21, i420 or yv12')
    .option('--resize <size>', 'size after the resize, see below', resizeSize)
    .option('--filter <name>', 'bilinear, bicubic, lanczos, nearest, …')
    .option('--like <library>', 'whose bytes: pillow, pillow12, torchvision or opencv')
    .option('--crop <size>', 'a square or WxH in the middle', size('--crop'))
    .option('--pad <size>', 'a border of zeros up to a square or WxH', size('--pad'))
    .option('--letterbox <size>', 'a resize in proportion with a grey border', size('--letterbox'))
    .option('--mean <numbers>', 'subtracted, in the unit of the pixels', numbers('--mean'))
    .option('--std <numbers>', 'divides the difference', numbers('--std'))
    .option('--scale <number>', 'scale of quantized results', number('--scale'))
    .option('--zero-point <number>', 'zero point of quantized results', number('--zero-point'))
    .option('--dtype <type>', 'element type; default float32')
    .option('--layout <name>', 'nchw (default) or nhwc')
    .option('--order <name>', 'rgb (default) or bgr')
    .option('--processor <config>', 'a preprocessor_config.json, yolo or torchvision')
    .option('--size <n>', 'of --processor yolo (default 640) or torchvision (224)', wholeNumber('--size'))
    .option('--backend <name>', 'of --processor: torchvision or pil')
    .option('--strict', 'unknown fields of --processor are errors')
    .addOption(noClobberOption())
    .addOption(replaceGraphOption())
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (inputs: string[], options: ImageChoice) => finish(await image(inputs, options, terminal)))
}

async function image(inputs: readonly string[], options: ImageChoice, terminal: Terminal): Promise<ExitCode> {
  const pixels: PixelsWithInfo[] = []
  for (const input of inputs) pixels.push(await readPixels(input, options, terminal))
  const batch = await batchOf(pixels, options)
  await save(options.output, [batch], { ...fileOptions(options), signal: terminal.signal })
  const { dtype, shape, storage } = batch
  const report: ImageReport = { inputs, output: options.output, dtype, shape, byteLength: storage.byteLength }
  if (options.json) printJson(report, terminal)
  else {
    terminal.stdout.write(
      `${printable(options.output)}: ${dtype} [${shape.join(', ')}], ${formatBytes(storage.byteLength)}\n`,
    )
  }
  return EXIT.ok
}

async function batchOf(pixels: readonly PixelsWithInfo[], options: ImageChoice): Promise<DenseTensor> {
  if (options.processor === undefined) return imageToTensor(pixels, tensorOptions(options))
  const both = (['resize', 'filter', 'like', 'letterbox', ...TENSOR_OPTIONS] as const).find(
    (name) => options[name] !== undefined,
  )
  if (both !== undefined) {
    const flag = both.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    throw new TileworkError(
      'ERR_ARGUMENT',
      `--${flag} and --processor do not go together; the processor says it.`,
    )
  }
  const { backend, size, strict, dtype, layout } = options
  const asked = {
    ...(backend && { backend }),
    ...(size !== undefined && { size }),
    ...(strict && { strict }),
    ...(dtype && { dtype }),
    ...(layout && { layout }),
  }
  const processor = await imageProcessor(options.processor, asked as ImageProcessorOptions)
  return processor(pixels).pixel_values
}

/** The library checks the names. */
function tensorOptions(options: ImageChoice): ImageToTensorOptions {
  const { resize, letterbox, filter, like } = options
  const rule = { ...(filter && { filter }), ...(like && { like }) }
  if (Object.keys(rule).length > 0 && !resize && !letterbox) {
    throw new TileworkError('ERR_ARGUMENT', '--filter and --like belong to --resize or --letterbox.')
  }
  const names = [...TENSOR_OPTIONS, 'dtype', 'layout'] as const
  const given = names.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]]))
  return {
    ...Object.fromEntries(given),
    ...(resize && { resize: { ...resize, ...rule } }),
    ...(letterbox && { letterbox: { ...letterbox, ...rule } }),
  } as ImageToTensorOptions
}

async function readPixels(input: string, options: ImageChoice, terminal: Terminal): Promise<PixelsWithInfo> {
  if (input === '-') return rawPixels(await standardInput(options, terminal), input, options)
  if (/\.npy$/i.test(input)) return npyPixels(input)
  if (/\.(raw|bin|rgb|rgba|yuv|nv12)$/i.test(input) || options.inputSize) {
    return rawPixels(await bytesOf(input), input, options)
  }
  return decodedPixels(input)
}

/** @throws TileworkError ERR_IO, also for a folder */
function bytesOf(path: string): Promise<Buffer> {
  return systemError.wrapAsync(path, () => readFile(path))
}

/** @throws TileworkError ERR_LIMIT for more bytes than an image of the size can have, which would fill the memory */
async function standardInput({ inputSize }: ImageChoice, { stdin }: Terminal): Promise<Uint8Array> {
  const most = inputSize ? inputSize.width * inputSize.height * MOST_PIXEL_BYTES : 0
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of stdin?.() ?? []) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    length += bytes.byteLength
    if (length > most) {
      const text = inputSize
        ? `the standard input has more than the ${most} bytes of ${inputSize.width} × ${inputSize.height} pixels of four channels`
        : 'the standard input holds raw samples; --input-size WxH says its size'
      throw new TileworkError('ERR_LIMIT', `${text}.`)
    }
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function rawPixels(
  data: Uint8Array,
  input: string,
  { inputSize, channels, pixelFormat }: ImageChoice,
): PixelsWithInfo {
  if (!inputSize) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${printable(input)} holds raw samples; --input-size WxH says its size.`,
    )
  }
  const { width, height } = inputSize
  const isLuma = pixelFormat !== undefined && !['interleaved', 'planar'].includes(pixelFormat)
  const found = isLuma ? 3 : (channels ?? Math.max(1, Math.floor(data.byteLength / (width * height))))
  return { data, info: { width, height, channels: found } }
}

async function npyPixels(input: string): Promise<PixelsWithInfo> {
  const file = await open(input)
  try {
    const tensor = file.dense(0)
    const { dtype, shape } = tensor
    const [height, width, channels = 1] = shape
    if ((dtype !== 'uint8' && dtype !== 'uint16') || (shape.length !== 2 && shape.length !== 3)) {
      const message = `${printable(input)} is ${dtype} [${shape}]; an image is uint8 or uint16 [height, width, channels].`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    const data = (await tensor.toTypedArray()) as Uint8Array | Uint16Array
    return {
      data,
      info: { width: width!, height: height!, channels, ...(dtype === 'uint16' && { depth: 'ushort' }) },
    }
  } finally {
    file.close()
  }
}

async function decodedPixels(input: string): Promise<PixelsWithInfo> {
  const file = await bytesOf(input)
  // A name that no bundler and no compiler resolves: the package is optional.
  const name = 'sharp'
  let sharp: Sharp
  try {
    sharp = ((await import(name)) as { readonly default: Sharp }).default
  } catch (cause) {
    const message = `${printable(input)} has to be decoded, which sharp does: npm i sharp. Raw pixels need --input-size.`
    throw new TileworkError('ERR_UNSUPPORTED', message, { cause })
  }
  try {
    return await sharp(file).rotate().raw().toBuffer({ resolveWithObject: true })
  } catch (cause) {
    const message = `${printable(input)} cannot be decoded: ${(cause as Error).message}.`
    throw new TileworkError('ERR_UNKNOWN_FORMAT', message, { cause })
  }
}

/** `640`, or `640x480`; the sign may be a × too. */
function size(flag: string): (text: string) => Size {
  return (text) => {
    const [, width, height] = /^(\d{1,9})(?:[x×](\d{1,9}))?$/.exec(text) ?? []
    if (width !== undefined && (height !== undefined || flag !== '--input-size')) {
      return { width: Number(width), height: Number(height ?? width) }
    }
    throw new TileworkError('ERR_ARGUMENT', `${flag} is "${text}"; it must be a size such as 640x480.`)
  }
}

function resizeSize(text: string): ImageResizeOptions {
  const [, edge, limit] = /^shortest=(\d{1,9})(?:,longest=(\d{1,9}))?$/.exec(text) ?? []
  if (edge !== undefined) {
    return { shortestEdge: Number(edge), ...(limit !== undefined && { longestEdge: Number(limit) }) }
  }
  const [, longest] = /^longest=(\d{1,9})$/.exec(text) ?? []
  if (longest !== undefined) return { longestEdge: Number(longest) }
  const isMost = text.startsWith('max=')
  const { width, height } = size('--resize')(isMost ? text.slice('max='.length) : text)
  return isMost ? { maxWidth: width, maxHeight: height } : { width, height }
}

function number(flag: string): (text: string) => number {
  return (text) => numbers(flag)(text)[0]!
}

function numbers(flag: string): (text: string) => readonly number[] {
  return (text) => {
    const list = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)))
    if (list.every(Number.isFinite)) return list
    throw new TileworkError('ERR_ARGUMENT', `${flag} is "${text}"; it must be numbers separated by commas.`)
  }
}
