/**
 * Images for inference: pictures resized to model inputs (`model_input.mjs`), then raw pixels to a normalised batch in NCHW, beside
 * a JavaScript loop, numpy, OpenCV's blobFromImages and the image processor of transformers.js. What is not installed is
 * skipped with the reason.
 */
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { imageToTensor, setThreads } from '../dist/index.js'
import { measureModelInputs } from './model_input.mjs'
import { bestOfRounds, report } from './rounds.mjs'

const SCRIPT = fileURLToPath(new URL('image.py', import.meta.url))
const MEAN = [123.675, 116.28, 103.53]
const STD = [58.395, 57.12, 57.375]
/** Results in new memory that stay referenced, so that none is recycled. */
const HELD_RESULTS = 32
/** Time of the calls of a round: a call of 0.1 ms after a collection of garbage would measure cold caches and cold code. */
const REPEAT_SECONDS = 0.05

const list = (text) => text.split(',').map(Number)

/** @param {import('commander').Command} program */
export function addImage(program) {
  program
    .command('image')
    .description(
      'pictures to model inputs, and batches without a resize: beside Pillow, torch, OpenCV, sharp and others',
    )
    .option('--only <part>', 'inputs (pictures to model inputs, one thread) or batches')
    .option('--threads <list>', 'numbers of threads', list, [1, 2])
    .option('--batch <list>', 'images in a batch', list, [1, 8, 64])
    .option('--size <list>', 'width and height', list, [224, 640])
    .option('--rounds <n>', 'rounds', Number, 10)
    .option('--modules <folder>', 'folder whose node_modules has sharp and @huggingface/transformers')
    .option(
      '--python <command>',
      'a Python with numpy, Pillow, torchvision, opencv-python-headless',
      'python3',
    )
    .option('--json', 'print JSON')
    .action(run)
}

async function run({ only, ...options }) {
  const { batch, rounds, python, json } = options
  const modules = resolve(options.modules ?? '.')
  if (only !== 'batches') report(await measureModelInputs({ batch, rounds, modules, python }), { json })
  if (only !== 'inputs') await measureBatches({ ...options, modules })
}

async function measureBatches({ threads, batch, size, rounds, modules, python, json }) {
  const cases = size.flatMap((side) =>
    batch.flatMap((images) =>
      [
        { dtype: 'float32', order: 'rgb' },
        { dtype: 'float32', order: 'bgr' },
        { dtype: 'float16', order: 'rgb' },
      ].map((each) => ({ size: side, batch: images, ...each })),
    ),
  )
  const transformers = await processor(modules)
  const rows = []
  for (const count of threads) {
    setThreads(count)
    const before = inPython(python, cases, count, rounds)
    const own = []
    for (const each of cases) own.push(await measure(each, rounds, transformers))
    // A second time, because machines are shared.
    const after = before && inPython(python, cases, count, rounds)
    for (const [i, each] of cases.entries()) {
      const peers = before ? bestOf(before[i], after?.[i] ?? before[i]) : {}
      rows.push(rowOf(each, count, { ...peers, ...own[i] }))
    }
  }
  report(rows, { json })
}

function rowOf({ size, batch, dtype, order }, threads, { kept, fresh, opencvHeld, ...peers }) {
  const times = Object.entries(peers).map(([name, seconds]) => [`${name}/kept`, ratio(seconds / kept)])
  return {
    case: `${batch} × ${size} × ${size} ${dtype} ${order}`,
    threads,
    'kept ms': ratio(kept * 1e3),
    'new ms': ratio(fresh * 1e3),
    ...Object.fromEntries(times),
    ...(opencvHeld && { 'opencv/new': ratio(opencvHeld / fresh) }),
  }
}

const ratio = (value) => Number(value.toPrecision(3))

const bestOf = (a, b) =>
  Object.fromEntries(Object.entries(a).map(([name, seconds]) => [name, Math.min(seconds, b[name])]))

async function measure({ size, batch, dtype, order }, rounds, transformers) {
  const images = Array.from({ length: batch }, (_, n) =>
    Uint8Array.from({ length: size * size * 3 }, (_, i) => (i * 31 + n) & 255),
  )
  const options = { width: size, height: size, channels: 3, mean: MEAN, std: STD, dtype, order }
  const isHalf = dtype === 'float16'
  const out = isHalf ? new Uint16Array(batch * size * size * 3) : new Float32Array(batch * size * size * 3)
  const compute = (memory) => {
    const input = imageToTensor(images, options)
    return isHalf ? input.bits(memory) : input.toTypedArray(memory)
  }
  const times = await bestOfRounds(
    {
      kept: () => compute({ out }),
      ...(!isHalf && { javascript: () => loop(images, size, order, out) }),
      ...(transformers && !isHalf && order === 'rgb' && { transformers: () => transformers(images, size) }),
    },
    rounds,
    { repeatSeconds: REPEAT_SECONDS },
  )
  return { ...times, fresh: await bestOfHeld(() => compute({})) }
}

/** The shortest of calls whose results all stay referenced. */
async function bestOfHeld(run) {
  const held = []
  let best = Number.POSITIVE_INFINITY
  for (let i = 0; i < HELD_RESULTS; i++) {
    const started = process.hrtime.bigint()
    held.push(await run())
    best = Math.min(best, Number(process.hrtime.bigint() - started) / 1e9)
  }
  return best
}

/** The batch as one writes it by hand. */
function loop(images, size, order, out) {
  const plane = size * size
  for (let n = 0; n < images.length; n++) {
    const image = images[n]
    for (let c = 0; c < 3; c++) {
      const from = order === 'bgr' ? 2 - c : c
      const [scale, bias] = [1 / STD[c], -MEAN[c] / STD[c]]
      const at = (n * 3 + c) * plane
      for (let i = 0; i < plane; i++) out[at + i] = image[3 * i + from] * scale + bias
    }
  }
}

/** transformers.js without its resize, which the others do not do either; undefined where it is not installed. */
async function processor(folder) {
  try {
    const path = createRequire(join(folder, 'package.json')).resolve('@huggingface/transformers')
    const { ImageProcessor, RawImage } = await import(pathToFileURL(path).href)
    const make = new ImageProcessor({
      do_resize: false,
      do_rescale: true,
      do_normalize: true,
      image_mean: MEAN.map((mean) => mean / 255),
      image_std: STD.map((std) => std / 255),
    })
    return (images, size) => make(images.map((image) => new RawImage(image, size, size, 3)))
  } catch (error) {
    console.error(`transformers.js is skipped: ${error.code ?? error.message}.`)
    return undefined
  }
}

function inPython(python, cases, threads, rounds) {
  const input = JSON.stringify({ cases, threads, rounds })
  const { status, signal, stdout, stderr, error } = spawnSync(python, [SCRIPT], { input, encoding: 'utf8' })
  if (status !== 0) {
    const reason = error?.code ?? signal ?? stderr.trim().split('\n').at(-1)
    console.error(`a run of numpy and OpenCV is skipped: ${python} ended with ${reason}.`)
    return undefined
  }
  const { results, opencv } = JSON.parse(stdout)
  if (opencv === null) console.error('OpenCV is skipped: opencv-python-headless is not installed.')
  return results
}
