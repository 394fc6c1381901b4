/** Image processors as models were trained with: values equal to those of the Python classes, from their configuration. */
import { openSource } from '../bytes/open_source.js'
import { checkOneOf, checkOptions, isInstance, readInput } from '../caller_input.js'
import { DTYPES, type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { TileworkError } from '../errors.js'
import { expectedText } from '../nearest_names.js'
import { tensor } from '../tensor/from_values.js'
import type { DenseTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'
import { type ColourStep, planOf } from './image_plan.js'
import { plannedImages } from './image_source.js'
import { batchOf, borderOf, readPlaces } from './image_to_tensor.js'
import { checkSize, coloursOf, type Image, type Pixels, type PixelsWithInfo, readImages } from './pixels.js'
import {
  type PixelRules,
  type ProcessorBackend,
  type ProcessorConfig,
  readConfig,
} from './processor_config.js'
import { PRESET_NAMES, presetOf } from './processor_presets.js'
import { frameOf, withBorder } from './processor_sizes.js'
import { type ByteRules, checkChannelNumbers, valuesOfBytes } from './processor_tables.js'
import { checkBytes, type Frame, type Size } from './sizes.js'
import { type Numbers, type Tables, tablesOf, tablesOfValues } from './tables.js'

/** Configurations have a few fields; a file beyond this is something else. */
const MAX_CONFIG_BYTES = 1_048_576

export interface ImageProcessorOptions<Name extends DtypeName = DtypeName> {
  /**
   * Whose resize and rounding. Default `torchvision`, as transformers 5 chooses where torchvision is installed; for the name
   * `torchvision` `pil`, as its presets are called with Pillow's images.
   */
  readonly backend?: ProcessorBackend
  /** An unknown field of the configuration is an error, not a warning. Default false. */
  readonly strict?: boolean
  /** Element type of the result. Default float32, or uint8 where the configuration neither rescales nor normalises. */
  readonly dtype?: Name
  /** As for `imageToTensor`. Default `nchw`. */
  readonly layout?: string
  /** Side of the model's input, for the names `yolo` (default 640) and `torchvision` (default 224). */
  readonly size?: number
  /** Shortest edge before the crop, for the name `torchvision`. Default 256. */
  readonly resizeSize?: number
}

/** The names that transformers and models use for their inputs. */
export interface ProcessedImages {
  /** Shape `[images, channels, height, width]`. */
  readonly pixel_values: DenseTensor
  /** Of DETR: int64 `[images, height, width]`, 1 where the image is and 0 on the border. */
  readonly pixel_mask?: DenseTensor<'int64'>
}

export interface ImageProcessor {
  /**
   * Lazy, as `imageToTensor`.
   *
   * @param images - one image, or several, which need `info` unless `size` says their size
   * @throws TileworkError ERR_ARGUMENT for images whose results differ in size, for a crop or border that does not fit, and for
   * channels that mean and std have no numbers for; ERR_LIMIT
   */
  (
    images: Pixels | PixelsWithInfo | readonly (Pixels | PixelsWithInfo)[],
    size?: { readonly width?: number; readonly height?: number; readonly channels?: number },
  ): ProcessedImages
  /** Size of the result for an image of a size, alone in its batch. */
  outputSize(width: number, height: number): { readonly width: number; readonly height: number }
}

const OPTIONS = ['backend', 'strict', 'dtype', 'layout', 'size', 'resizeSize'] as const

/**
 * An image processor from a `preprocessor_config.json` of Hugging Face, or by the name of a convention: `yolo` (letterbox, pixels
 * divided by 255) and `torchvision` (the preset of its classification models: with `pil` as of a Pillow image, with `torchvision`
 * as the same steps of `transforms.v2` of a uint8 tensor).
 *
 * @param config - the parsed object, a path, a URL, or a name
 * @returns a function from pixels to tensors
 * @throws TileworkError ERR_ARGUMENT for wrong fields, ERR_UNSUPPORTED for classes and fields that are not built, ERR_LIMIT for a
 * file of more than 1 MiB; as `open` for a file that cannot be read
 */
export async function imageProcessor(
  config: object | string | URL,
  options: ImageProcessorOptions = {},
): Promise<ImageProcessor> {
  checkOptions(options, 'imageProcessor', OPTIONS)
  const asked = readInput('The options of imageProcessor', () => readOptions(options))
  const preset = typeof config === 'string' ? presetOf(config, asked) : undefined
  if (preset) return processorOf(preset.rules, preset.frameOf, asked, preset)
  const parsed = typeof config === 'string' || isInstance(config, URL) ? await readConfigFile(config) : config
  const read = readInput('The configuration', () =>
    readConfig(fieldsOf(parsed), asked.backend ?? 'torchvision', asked.warn),
  )
  return processorOf(read, (name, from) => frameOf(read, name, from), asked, read)
}

interface AskedProcessor {
  /** Undefined: the default. */
  readonly backend: ProcessorBackend | undefined
  readonly warn: (message: string) => void
  readonly dtype: Numbers['dtype'] | undefined
  readonly isPlanar: boolean
  readonly size: number | undefined
  readonly resizeSize: number | undefined
}

function readOptions(options: ImageProcessorOptions): AskedProcessor {
  const { backend, strict = false, dtype, layout, size, resizeSize } = options
  const warn = (message: string): void => {
    if (strict) throw new TileworkError('ERR_ARGUMENT', message)
    process.emitWarning(message, { code: 'TILEWORK_IMAGE_PROCESSOR' })
  }
  return {
    backend:
      backend === undefined ? undefined : checkOneOf(backend, 'backend', ['torchvision', 'pil'] as const),
    warn,
    dtype: dtype === undefined ? undefined : checkDtype(dtype),
    isPlanar: readPlaces(layout === undefined ? {} : { layout }).isPlanar,
    size: size === undefined ? undefined : checkSize(size, 'size'),
    resizeSize: resizeSize === undefined ? undefined : checkSize(resizeSize, 'resizeSize'),
  }
}

function checkDtype(name: DtypeName): Numbers['dtype'] {
  const dtype = resolveDtype(name)
  if (DTYPES[dtype].kind === 'float' && DTYPES[dtype].bits >= 8) return dtype
  throw new TileworkError(
    'ERR_DTYPE',
    `dtype is ${dtype}; an image processor makes floats of 8 bits and more.`,
  )
}

async function readConfigFile(input: string | URL): Promise<unknown> {
  const source = await openSource(input, { mode: 'read' }).catch((cause: unknown) => {
    throw isName(input) ? unknownPreset(input, cause) : cause
  })
  try {
    if (source.byteLength > MAX_CONFIG_BYTES) {
      const message = `the configuration has ${source.byteLength} bytes; the limit is ${MAX_CONFIG_BYTES}.`
      throw new TileworkError('ERR_LIMIT', message)
    }
    const bytes = await source.read(0, source.byteLength)
    return JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()) as unknown
  } catch (cause) {
    if (cause instanceof TileworkError) throw cause
    throw new TileworkError('ERR_ARGUMENT', `the configuration is not JSON: ${(cause as Error).message}.`, {
      cause,
    })
  } finally {
    source.close?.()
  }
}

/** Rather the name of a convention than of a file. */
function isName(input: string | URL): input is string {
  return typeof input === 'string' && /^\w+$/.test(input)
}

function unknownPreset(name: string, cause: unknown): TileworkError {
  const message = `${valueText(name)} is no file that can be read, and no convention${expectedText(name, PRESET_NAMES)}`
  return new TileworkError('ERR_IO', message, { path: name, cause })
}

function fieldsOf(config: unknown): Readonly<Record<string, unknown>> {
  if (typeof config === 'object' && config !== null && !Array.isArray(config)) return { ...config }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `the configuration is ${valueText(config)}; it must be an object of fields.`,
  )
}

type FrameOf = (name: string, from: Size & { readonly pixelBytes: number }) => Frame

function processorOf(
  rules: ByteRules,
  frameOf: FrameOf,
  asked: AskedProcessor,
  of: ProcessorConfig | PixelRules,
): ImageProcessor {
  const pixelRules: PixelRules =
    'like' in of ? of : { ...of, like: of.backend === 'pil' ? 'pillow' : 'torchvision', border: 0 }
  const work = { rules, frameOf, asked, of: pixelRules }
  const processor = (
    images: Pixels | PixelsWithInfo | readonly (Pixels | PixelsWithInfo)[],
    size: { readonly width?: number; readonly height?: number; readonly channels?: number } = {},
  ): ProcessedImages => {
    checkOptions(size, 'the image processor', ['width', 'height', 'channels'])
    return processed(
      readInput('The pixels', () => readImages(images, { ...sizeOf(size), pixelFormat: 'interleaved' })),
      work,
    )
  }
  const outputSize = (width: number, height: number): Size => {
    const from = { width: checkSize(width, 'width'), height: checkSize(height, 'height'), pixelBytes: 3 }
    return withBorder(frameOf('the image', from), 'the image', pixelRules.pad).size
  }
  return Object.assign(processor, { outputSize })
}

function sizeOf(
  size: Partial<Size & { readonly channels: number }>,
): Partial<Size & { readonly channels: number }> {
  return Object.fromEntries(
    (['width', 'height', 'channels'] as const).flatMap((name) =>
      size[name] === undefined ? [] : [[name, checkSize(size[name], name)]],
    ),
  )
}

interface Work {
  readonly rules: ByteRules
  readonly frameOf: FrameOf
  readonly asked: AskedProcessor
  readonly of: PixelRules
}

/** One image with its part of the result. */
interface Framed {
  readonly image: Image
  readonly frame: Frame
}

function processed(images: readonly Image[], work: Work): ProcessedImages {
  const { of } = work
  const framed = images.map((image): Framed => {
    const { name, width, height, channels } = image
    if (image.sampleBytes !== 1) {
      throw new TileworkError('ERR_UNSUPPORTED', `${name} has samples of 16 bits; image processors take 8.`)
    }
    return { image, frame: work.frameOf(name, { width, height, pixelBytes: Math.max(channels, 3) }) }
  })
  const pad = of.pad && !of.pad.size && of.kind !== 'DPT' ? { size: largest(framed) } : of.pad
  const bordered = framed.map(({ image, frame }) => ({ image, frame: withBorder(frame, image.name, pad) }))
  checkSizes(bordered)
  const { isPlanar } = work.asked
  const planned = bordered.flatMap(({ image, frame }) => {
    return plannedImages(planFor(image, frame, work), image)
  })
  const channels = planned[0]!.plan.channels
  if (planned.some(({ plan }) => plan.channels !== channels)) {
    throw new TileworkError('ERR_ARGUMENT', 'images of one batch have the same channels.')
  }
  const { dtype } = tablesFor(channels, work)
  const pixel_values = batchOf(planned, dtype, isPlanar)
  const hasMask = of.kind === 'Detr' && of.pad !== undefined
  return hasMask ? { pixel_values, pixel_mask: maskOf(framed, bordered[0]!.frame.size) } : { pixel_values }
}

function largest(framed: readonly Framed[]): Size {
  return {
    width: framed.reduce((most, { frame }) => Math.max(most, frame.size.width), 0),
    height: framed.reduce((most, { frame }) => Math.max(most, frame.size.height), 0),
  }
}

function checkSizes(framed: readonly Framed[]): void {
  const first = framed[0]!
  for (const { image, frame } of framed) {
    const { width, height } = frame.size
    if (width === first.frame.size.width && height === first.frame.size.height) continue
    const message = `${image.name} becomes ${width} × ${height} and ${first.image.name} ${first.frame.size.width} × ${first.frame.size.height}; images of one batch have one size.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
}

function planFor(image: Image, frame: Frame, work: Work): ReturnType<typeof planOf> {
  const { of, asked, rules } = work
  const { name, width, height, channels, sampleBytes } = image
  const hasAlpha = channels % 2 === 0
  if (channels === 2) {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${name} has grey and alpha; image processors take 1, 3 or 4 channels.`,
    )
  }
  const isLaid = of.toRgb && hasAlpha
  const colours: ColourStep = isLaid
    ? of.like === 'pillow'
      ? 'background'
      : 'whiteFloat'
    : hasAlpha && of.like === 'pillow'
      ? 'premultiply'
      : 'none'
  const shown = isLaid ? coloursOf(channels) : channels
  const list = of.toRgb && shown === 1 ? [0, 0, 0] : Array.from({ length: shown }, (_, at) => at)
  checkChannelNumbers(rules, list.length, name)
  return planOf({
    image: { name, width, height, channels, sampleBytes },
    pixelFormat: 'interleaved',
    colours,
    background: [255, 255, 255],
    like: of.like,
    filter: of.filter ?? (of.like === 'opencv' ? 'linear' : 'bilinear'),
    frame,
    channels: list,
    tables: tablesFor(list.length, work),
    border: borderOf(of.border, list.length, 1),
    isPlanar: asked.isPlanar,
  })
}

function tablesFor(channels: number, { rules, asked }: Work): Tables {
  const { rescale, normal, backend } = rules
  if (rescale === undefined && normal === undefined)
    return tablesOf({ dtype: asked.dtype ?? 'uint8' }, channels, 1)
  const key = JSON.stringify([backend, rescale, normal, channels])
  return tablesOfValues(key, { dtype: asked.dtype ?? 'float32' }, () => valuesOfBytes(rules, channels)!)
}

function maskOf(framed: readonly Framed[], { width, height }: Size): DenseTensor<'int64'> {
  const count = framed.reduce((sum, { image }) => sum + image.count, 0)
  checkBytes(`pixel_mask of ${count} images is ${width} × ${height}`, { width, height }, count * 8)
  const mask = new BigInt64Array(count * width * height)
  let at = 0
  for (const { image, frame } of framed) {
    for (let each = 0; each < image.count; each++, at += width * height) {
      for (let row = 0; row < frame.size.height; row++)
        mask.fill(1n, at + row * width, at + row * width + frame.size.width)
    }
  }
  return tensor(mask, { shape: [count, height, width] })
}
