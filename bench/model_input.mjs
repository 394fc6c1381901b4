/**
 * Pictures to model inputs, one thread, in CPU seconds: resize or letterbox, normalisation, float32 NCHW, beside Pillow and torch
 * (each in its own rounding), OpenCV, and sharp with a loop. Rounds are interleaved: machines are shared.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { imageToTensor, setThreads } from '../dist/index.js'
import { pythonIn, sharpIn } from './peers.mjs'
import { photo } from './photo.mjs'
import { cpuSeconds } from './rounds.mjs'

const SCRIPT = fileURLToPath(new URL('model_input.py', import.meta.url))
/** CPU time of the calls of a candidate in a round. */
const REPEAT_SECONDS = 0.04
/** Results in new memory that stay referenced, so that none is recycled. */
const HELD_BYTES = 512 * 1024 * 1024
const MEAN = [123.675, 116.28, 103.53]
const STD = [58.395, 57.12, 57.375]
const SHARP_KERNELS = { bilinear: 'linear', bicubic: 'cubic' }

/** @param {number[]} batch */
function casesOf(batch) {
  const resizes = ['pillow', 'torchvision'].flatMap((like) =>
    ['bilinear', 'bicubic'].flatMap((filter) =>
      batch.map((images) => ({ width: 600, height: 512, side: 224, batch: images, like, filter })),
    ),
  )
  const frames = [
    [1920, 1080],
    [1280, 720],
    [1000, 700],
  ].map(([width, height]) => ({ width, height, side: 640, batch: 1, letterbox: true }))
  return [...resizes, ...frames]
}

/** @returns a row for each case: CPU milliseconds of a call, and those of the others relative to it */
export async function measureModelInputs({ batch, rounds, modules, python }) {
  const folder = mkdtempSync(join(tmpdir(), 'tilework-input-'))
  const peers = pythonIn(python, SCRIPT, 'Python')
  const sharp = await sharpIn(modules)
  sharp?.concurrency(1)
  setThreads(1)
  const cases = casesOf(batch).map((given) => prepared(given, folder, sharp))
  try {
    for (let round = 0; round < rounds; round++) {
      for (const each of cases) await measure(each, peers)
    }
  } finally {
    peers.end()
    rmSync(folder, { recursive: true })
  }
  return cases.map(rowOf)
}

function prepared(given, folder, sharp) {
  const pixels = photo(given)
  const path = join(folder, `${given.width}x${given.height}`)
  writeFileSync(path, pixels)
  const { width, height, side, batch, like, filter, letterbox } = given
  const images = Array.from({ length: batch }, () => pixels)
  const numbers = letterbox ? { letterbox: side, std: 255 } : { mean: MEAN, std: STD }
  const resize = letterbox ? {} : { resize: { width: side, height: side, filter, like } }
  const compute = (memory) =>
    imageToTensor(images, { width, height, channels: 3, ...numbers, ...resize }).toTypedArray(memory)
  const out = new Float32Array(batch * 3 * side * side)
  const held = []
  const candidates = {
    kept: () => compute({ out }),
    fresh: async () => {
      if (held.length * out.byteLength >= HELD_BYTES) held.length = 0
      held.push(await compute({}))
    },
    ...(sharp && { sharp: () => withSharp(sharp, images, given, out) }),
  }
  return {
    given,
    candidates,
    held,
    asked: { ...given, pixels: path, letterbox: letterbox === true },
    best: {},
  }
}

async function measure({ candidates, held, asked, best }, peers) {
  const keep = (name, seconds) => {
    best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, seconds)
  }
  for (const [name, run] of Object.entries(candidates)) keep(name, await cpuSeconds(run, REPEAT_SECONDS))
  held.length = 0
  const answer = await peers.ask({ ...asked, seconds: REPEAT_SECONDS })
  for (const [name, seconds] of Object.entries(answer ?? {})) keep(name, seconds)
}

/** As one writes it by hand: sharp's resize, then a loop. */
async function withSharp(sharp, images, { width, height, side, filter, letterbox }, out) {
  const plane = side * side
  const fit = letterbox
    ? { fit: 'contain', kernel: 'linear', background: { r: 114, g: 114, b: 114 } }
    : { fit: 'fill', kernel: SHARP_KERNELS[filter] }
  for (const [n, image] of images.entries()) {
    const raw = { width, height, channels: 3 }
    const bytes = await sharp(image, { raw }).resize(side, side, fit).raw().toBuffer()
    for (let c = 0; c < 3; c++) {
      const scale = letterbox ? 1 / 255 : 1 / STD[c]
      const bias = letterbox ? 0 : -MEAN[c] / STD[c]
      const at = (n * 3 + c) * plane
      for (let i = 0; i < plane; i++) out[at + i] = bytes[3 * i + c] * scale + bias
    }
  }
}

const rounded = (value) => Number(value.toPrecision(3))

function rowOf({ given, best }) {
  const { width, height, side, batch, like, filter, letterbox } = given
  const { kept, fresh, ...peers } = best
  const times = Object.entries(peers).map(([name, seconds]) => [`${name}/kept`, rounded(seconds / kept)])
  const what = letterbox ? `letterbox ${side}` : `${side}², ${filter} like ${like}`
  return {
    case: `${batch} × ${width} × ${height} to ${what}`,
    'kept CPU ms': rounded(kept * 1e3),
    'new CPU ms': rounded(fresh * 1e3),
    ...Object.fromEntries(times),
  }
}
