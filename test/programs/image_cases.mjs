/**
 * Runs cases of images: JSON lines in, JSON lines out, in the form of the fixtures of `test/image/fixtures.test.ts`. Each line is
 * `{ op, input: { seed, kind, height, width, channels }, … }`, and its answer `{ shape, dtype, data }` with base64 data.
 *
 *   node test/programs/image_cases.mjs < cases.jsonl > answers.jsonl
 */
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

/** Pixels by formula: a 32-bit mixing function of the seed and the running index, the same in every language. */
export function pixelsOf({ seed, height, width, channels, kind }) {
  const pixels = new Uint8Array(height * width * channels)
  const start = Math.imul(seed, 40503) + 12345
  for (let i = 0; i < pixels.length; i++) {
    let x = (Math.imul(i, 2654435761) + start) | 0
    x ^= x >>> 15
    x = Math.imul(x, 2246822519)
    x ^= x >>> 13
    x = Math.imul(x, 3266489917)
    x ^= x >>> 16
    const byte = x >>> 24
    if (kind === 'noise') pixels[i] = byte
    else if (kind === 'edges') pixels[i] = byte < 128 ? 0 : 255
    else {
      const channel = i % channels
      const column = Math.floor(i / channels) % width
      const row = Math.floor(i / channels / width)
      pixels[i] = 3 * column + 5 * row + 37 * channel + (byte >> 3)
    }
  }
  return pixels
}

/** The options that all images of a case have: nothing but the tested step, uint8 out. */
const PLAIN = { layout: 'nhwc', dtype: 'uint8' }

/** What each operation is in this library; gives a tensor, or numbers with their shape. */
function run(tilework, given) {
  const { input, height, width, filter, like } = given
  const { imageToTensor } = tilework
  const size = { height: input.height, width: input.width }
  const image = { ...size, channels: input.channels, ...PLAIN }
  switch (given.op) {
    case 'pillow':
      return imageToTensor(pixelsOf(input), {
        ...image,
        alpha: given.alpha ? 'keep' : 'independent',
        resize: { width, height, filter, like },
      })
    case 'pillow16': {
      const bytes = pixelsOf({ ...input, channels: 2 })
      const options = {
        ...size,
        channels: 1,
        layout: 'nhwc',
        dtype: 'uint16',
        resize: { width, height, filter, like },
      }
      return imageToTensor(new Uint16Array(bytes.buffer), options)
    }
    case 'opencv':
    case 'torch':
      return imageToTensor(pixelsOf(input), {
        ...image,
        alpha: 'independent',
        resize: { width, height, filter, like: given.op === 'torch' ? 'torchvision' : 'opencv' },
      })
    case 'letterbox':
      return imageToTensor(pixelsOf(input), { ...image, alpha: 'independent', letterbox: letterboxOf(given) })
    case 'yuv': {
      const luma = pixelsOf({ ...input, height: (input.height * 3) / 2, channels: 1 })
      return imageToTensor(luma, { ...size, ...PLAIN, pixelFormat: given.layout })
    }
    case 'background':
      return imageToTensor(pixelsOf(input), { ...image, background: given.background })
    case 'grey':
      return imageToTensor(pixelsOf(input), { ...image, colors: 'grey' })
    case 'boxes': {
      const { points, shape } = boxesOf(tilework, given)
      return { dtype: 'float64', shape, bytes: points }
    }
    case 'preset': {
      const { name, size: side, resizeSize, backend } = given
      const options = {
        ...(side && { size: side }),
        ...(resizeSize && { resizeSize }),
        ...(backend && { backend }),
      }
      return tilework
        .imageProcessor(name, options)
        .then((processor) => processor({ data: pixelsOf(input), info: input }).pixel_values)
    }
    default:
      return tilework
        .imageProcessor(given.config, { backend: given.backend })
        .then((processor) => processor([{ data: pixelsOf(input), info: input }]).pixel_values)
  }
}

function letterboxOf({ height, width, center, scaleup, auto, stride }) {
  return { height, width, center, scaleUp: scaleup, auto, stride }
}

function boxesOf({ fromModelSpace }, given) {
  const { width, height } = given.input
  const boxes = fromModelSpace(
    { boxes: given.boxes.flat() },
    { width, height, letterbox: letterboxOf(given) },
  ).boxes
  return { shape: [boxes.length / 4, 4], points: new Uint8Array(Float64Array.from(boxes).buffer) }
}

/** Batches of one image have no axis for it. */
function shapeOf({ op }, { shape }) {
  if (op === 'boxes') return shape
  return op === 'pillow16' ? shape.slice(1, 3) : shape.slice(1)
}

/** The answer to a case. */
export async function answerOf(tilework, given) {
  const result = await run(tilework, given)
  const bytes = await (typeof result.bytes === 'function' ? result.bytes() : result.bytes)
  return { shape: shapeOf(given, result), dtype: result.dtype, bytes }
}

async function main() {
  const tilework = await import('../../dist/index.js')
  for await (const line of createInterface({ input: process.stdin })) {
    const { shape, dtype, bytes } = await answerOf(tilework, JSON.parse(line))
    console.log(JSON.stringify({ shape, dtype, data: Buffer.from(bytes).toString('base64') }))
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await main()
