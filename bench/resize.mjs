/**
 * A frame of 1920 × 1080 RGB pixels to a square, bytes to bytes, beside sharp and Pillow. Each round times all of them in turn.
 * Pillow's bytes are compared with the library's; sharp filters in another way. Pillow has one thread.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { imageToTensor, setThreads } from '../dist/index.js'
import { pythonIn, sharpIn } from './peers.mjs'
import { photo } from './photo.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const SCRIPT = fileURLToPath(new URL('resize.py', import.meta.url))
const [WIDTH, HEIGHT] = [1920, 1080]
/** Time of the calls of a candidate in a round. */
const REPEAT_SECONDS = 0.1
/** Names of the filters in sharp. */
const SHARP_KERNELS = { bilinear: 'linear', bicubic: 'cubic' }
const MEAN = [123.675, 116.28, 103.53]
const STD = [58.395, 57.12, 57.375]

const list = (text) => text.split(',').map(Number)

/** @param {import('commander').Command} program */
export function addResize(program) {
  program
    .command('resize')
    .description('resize of a frame: beside sharp and Pillow')
    .option('--threads <list>', 'numbers of threads', list, [1, 2])
    .option('--size <list>', 'width and height of the result', list, [224, 640])
    .option('--rounds <n>', 'rounds', Number, 10)
    .option('--modules <folder>', 'folder whose node_modules has sharp')
    .option('--python <command>', 'a Python with numpy and Pillow', 'python3')
    .option('--json', 'print JSON')
    .action(run)
}

async function run({ threads, size, rounds, modules, python, json }) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-resize-'))
  const pixels = photo({ width: WIDTH, height: HEIGHT })
  writeFileSync(join(folder, 'pixels'), pixels)
  const sharp = await sharpIn(resolve(modules ?? '.'))
  const pillow = pythonIn(python, SCRIPT, 'Pillow')
  const rows = []
  try {
    for (const count of threads) {
      setThreads(count)
      sharp?.concurrency(count)
      for (const side of size) {
        for (const filter of ['bilinear', 'bicubic']) {
          const given = { pixels: join(folder, 'pixels'), width: WIDTH, height: HEIGHT, side, filter }
          rows.push(rowOf(given, count, await measure(pixels, given, { sharp, pillow, rounds })))
        }
      }
    }
  } finally {
    pillow.end()
    rmSync(folder, { recursive: true })
  }
  report(rows, { json })
}

async function measure(pixels, { side, filter, ...given }, { sharp, pillow, rounds }) {
  const image = { width: WIDTH, height: HEIGHT, channels: 3, resize: { width: side, height: side, filter } }
  const bytes = imageToTensor(pixels, { ...image, dtype: 'uint8', layout: 'nhwc' })
  const batch = imageToTensor(pixels, { ...image, mean: MEAN, std: STD })
  const out = new Uint8Array(side * side * 3)
  const floats = new Float32Array(side * side * 3)
  const raw = { width: WIDTH, height: HEIGHT, channels: 3 }
  const resized = { fit: 'fill', kernel: SHARP_KERNELS[filter] }
  const candidates = {
    tilework: () => bytes.copyTo(out),
    normalised: () => batch.toTypedArray({ out: floats }),
    ...(sharp && { sharp: () => sharp(pixels, { raw }).resize(side, side, resized).raw().toBuffer() }),
  }
  const best = {}
  for (let round = 0; round < rounds; round++) {
    const times = await bestOfRounds(candidates, 1, { repeatSeconds: REPEAT_SECONDS })
    const answer = await pillow.ask({ ...given, side, filter, seconds: REPEAT_SECONDS })
    if (answer) {
      times.pillow = answer.seconds
      if (answer.sum !== weightedSum(out)) throw new Error(`${filter} to ${side}: the bytes are not Pillow's`)
    }
    for (const [name, seconds] of Object.entries(times))
      best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, seconds)
  }
  return best
}

const weightedSum = (bytes) => bytes.reduce((sum, byte, at) => sum + byte * (at + 1), 0)

const rounded = (value) => Number(value.toPrecision(3))

function rowOf({ side, filter }, threads, { tilework, normalised, ...peers }) {
  return {
    case: `${WIDTH} × ${HEIGHT} to ${side} × ${side}, ${filter}`,
    threads,
    'uint8 ms': rounded(tilework * 1e3),
    'float32 NCHW ms': rounded(normalised * 1e3),
    ...Object.fromEntries(
      Object.entries(peers).map(([name, seconds]) => [`${name}/uint8`, rounded(seconds / tilework)]),
    ),
  }
}
