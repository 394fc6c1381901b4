/** The pixels that callers pass: raw samples, alone or as sharp returns them. */
import { bytesOfView } from '../bytes/view_bytes.js'
import { TileworkError } from '../errors.js'
import { dtypeOfTypedArray } from '../tensor/typed_array_dtype.js'
import { valueText } from '../value_text.js'

/** Raw samples: `await sharp(path).raw().toBuffer()`. One image, or several of one size one after the other. */
export type Pixels = Uint8Array | Uint8ClampedArray | Uint16Array

/** What `sharp(path).raw().toBuffer({ resolveWithObject: true })` gives. */
export interface PixelsWithInfo {
  readonly data: Pixels
  readonly info: {
    readonly width: number
    readonly height: number
    readonly channels: number
    /** `uchar`, or `ushort` for samples of 16 bits; others are refused. */
    readonly depth?: string
  }
}

/**
 * Order of the samples in memory. `interleaved`: height × width × channels, as sharp gives them; `planar`: channels × height ×
 * width. The others are video frames of 8 bits, a plane of luma and chroma at half the resolution: `nv12` (U and V interleaved),
 * `nv21` (V first), `i420` (a plane of U, then one of V), `yv12` (V first). They become RGB by OpenCV's integers (BT.601,
 * limited range), and both sides are even.
 */
export type PixelFormat = 'interleaved' | 'planar' | 'nv12' | 'nv21' | 'i420' | 'yv12'

export const PIXEL_FORMATS = ['interleaved', 'planar', 'nv12', 'nv21', 'i420', 'yv12'] as const

/** What the caller says of all pixels. */
export interface AskedPixels {
  readonly width?: number
  readonly height?: number
  readonly channels?: number
  readonly pixelFormat: PixelFormat
}

/** Checked pixels of one or more images of one size. */
export interface Image {
  /** For errors: `pixels[3]`. */
  readonly name: string
  readonly bytes: Uint8Array
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly sampleBytes: 1 | 2
  /** Images one after the other. */
  readonly count: number
}

export function isLuma(format: PixelFormat): boolean {
  return format !== 'interleaved' && format !== 'planar'
}

/** Channels without alpha. */
export function coloursOf(channels: number): number {
  return channels - ((channels + 1) % 2)
}

/** @throws TileworkError ERR_ARGUMENT unless `value` is a whole number from 1 */
export function checkSize(value: unknown, name: string): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1) return value as number
  throw new TileworkError('ERR_ARGUMENT', `${name} is ${valueText(value)}; it must be a whole number from 1.`)
}

export function checkChannels(value: unknown): number {
  if (Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= 4) return value as number
  throw new TileworkError('ERR_ARGUMENT', `channels is ${valueText(value)}; it must be 1, 2, 3 or 4.`)
}

/** @throws TileworkError ERR_ARGUMENT for anything that is not a list of images with memory of their size */
export function readImages(
  pixels: Pixels | PixelsWithInfo | readonly (Pixels | PixelsWithInfo)[],
  asked: AskedPixels,
): readonly Image[] {
  const list = Array.isArray(pixels) ? pixels : [pixels]
  if (list.length === 0) throw new TileworkError('ERR_ARGUMENT', 'pixels is an empty list of images.')
  return Array.from(list, (image, at) =>
    readImage(image, asked, Array.isArray(pixels) ? `pixels[${at}]` : 'pixels'),
  )
}

function readImage(image: Pixels | PixelsWithInfo, asked: AskedPixels, name: string): Image {
  const { bytes, sampleBytes, info } = readSamples(image, name)
  if (asked.width === undefined && info.width === undefined) {
    const message = `${name} has no width and height: give them, or both results of sharp(…).raw().toBuffer({ resolveWithObject: true }).`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const width = asked.width ?? checkSize(info.width, 'width')
  const height = asked.height ?? checkSize(info.height, 'height')
  if (isLuma(asked.pixelFormat)) return readLuma({ name, bytes, width, height, sampleBytes }, asked)
  const given = asked.channels ?? info.channels
  const channels =
    given === undefined ? bytes.byteLength / (width * height * sampleBytes) : checkChannels(given)
  const needed = width * height * channels * sampleBytes
  const isWhole = Number.isInteger(channels) && channels >= 1 && channels <= 4
  if (isWhole && bytes.byteLength > 0 && bytes.byteLength % needed === 0) {
    return { name, bytes, width, height, channels, sampleBytes, count: bytes.byteLength / needed }
  }
  const size = `${width} × ${height} pixels`
  const pixelBytes = width * height * sampleBytes
  const expected =
    given === undefined
      ? `${size} have ${pixelBytes * 3} bytes in RGB and ${pixelBytes * 4} with alpha (several images in one buffer need the option channels)`
      : `${size} of ${channels} channels are a multiple of ${needed} bytes`
  // An image file is mostly smaller than its pixels.
  const isFile = bytes.byteLength < width * height
  const advice = isFile ? ' Decode image files first: sharp(…).raw().toBuffer().' : ''
  throw new TileworkError('ERR_ARGUMENT', `${name} has ${bytes.byteLength} bytes; ${expected}.${advice}`)
}

function readLuma(image: Omit<Image, 'channels' | 'count'>, { pixelFormat, channels }: AskedPixels): Image {
  const { name, bytes, width, height, sampleBytes } = image
  if (sampleBytes === 2) {
    throw new TileworkError('ERR_ARGUMENT', `${name} has samples of 16 bits; ${pixelFormat} has 8.`)
  }
  if (channels !== undefined && channels !== 3) {
    throw new TileworkError('ERR_ARGUMENT', `channels is ${channels}; ${pixelFormat} becomes 3.`)
  }
  if (width % 2 !== 0 || height % 2 !== 0) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${name} is ${width} × ${height}; both sides of ${pixelFormat} are even.`,
    )
  }
  const needed = (width * height * 3) / 2
  if (bytes.byteLength === 0 || bytes.byteLength % needed !== 0) {
    const message = `${name} has ${bytes.byteLength} bytes; ${width} × ${height} pixels in ${pixelFormat} are a multiple of ${needed}.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return { ...image, channels: 3, count: bytes.byteLength / needed }
}

interface Samples {
  readonly bytes: Uint8Array
  readonly sampleBytes: 1 | 2
  readonly info: Partial<PixelsWithInfo['info']>
}

function readSamples(image: Pixels | PixelsWithInfo, name: string): Samples {
  const hasInfo = !ArrayBuffer.isView(image) && typeof image === 'object' && image !== null
  const data: unknown = hasInfo ? (image.data ?? image) : image
  const dtype = dtypeOfTypedArray(data)
  if (dtype !== 'uint8' && dtype !== 'uint16') {
    const isPromise = hasInfo && 'then' in image
    const what = isPromise ? 'a promise (await it first)' : valueText(data)
    const message = `${name} is ${what}; it must be a Uint8Array or Uint16Array of raw pixels, or { data, info } of sharp.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const info: Partial<PixelsWithInfo['info']> = hasInfo ? (image.info ?? {}) : {}
  const { depth = dtype === 'uint16' ? 'ushort' : 'uchar' } = info
  if (depth !== 'uchar' && depth !== 'ushort') {
    const message = `${name} has samples of type ${valueText(depth)}; it must be "uchar", which sharp's raw() gives without depth, or "ushort".`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  if (depth === 'uchar' && dtype === 'uint16') {
    throw new TileworkError('ERR_ARGUMENT', `${name} is a Uint16Array; its info.depth is "uchar".`)
  }
  const bytes = bytesOfView(data as Uint8Array, name)
  return { bytes: depth === 'ushort' ? aligned(bytes) : bytes, sampleBytes: depth === 'ushort' ? 2 : 1, info }
}

/** Bytes that start at an address of 16-bit numbers: a copy where a pool of Buffers gave them an odd one. */
function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset % 2 === 0 ? bytes : bytes.slice()
}
