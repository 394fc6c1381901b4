/**
 * Times casts called from JavaScript on the same buffers in interleaved rounds: tilework, onnxruntime's Cast, the loop of
 * `@petamoriken/float16`, and a copy of the same bytes.
 */
import { asTensor, cast, DTYPES, setThreads, tensor } from '../dist/index.js'
import { importFrom } from '../scripts/optional_package.mjs'
import { castBytes } from './cast_cases.mjs'
import { roundsOf } from './native_program.mjs'
import { modelOfNode } from './onnx_model.mjs'
import { bestOfRounds } from './rounds.mjs'

const MAX_ROUNDS = 60
/** So long that a candidate reaches its steady state after the caches were evicted. */
const REPEAT_SECONDS = 0.005
/** Fewer rounds for a slow library. */
const FLOAT16_ROUNDS = 3
/** Maximum magnitude: every integer type holds it, so that no cast is undefined. */
const MAX_MAGNITUDE = 100

/** Array classes of the types that onnxruntime's JavaScript API supports. */
const ARRAYS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: globalThis.Float16Array ?? Uint16Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
}

/** Adds `inNode` to each result that a peer supports: the rates in GB/s of one call from JavaScript. */
export async function measureInNode(results, peers, folder) {
  const onnxruntime = peers.includes('onnxruntime') && (await load('onnxruntime-node', folder))
  const float16 = peers.includes('float16') && (await load('@petamoriken/float16', folder))
  const measured = []
  for (const result of results) {
    const isInOrder = result.from === result.to
    const candidates = isInOrder ? { onnxruntime, float16 } : {}
    measured.push({ ...result, ...(await measureOne(result, candidates)) })
  }
  return measured
}

async function load(name, folder) {
  const found = await importFrom(folder, name)
  if (!found) {
    console.error(
      `${name} is skipped: ${folder} does not have it. Install it in a folder, and pass --modules FOLDER.`,
    )
  }
  return found
}

async function measureOne(each, { onnxruntime, float16 }) {
  const { dtype, castTo, threads } = each
  const withOnnxruntime = onnxruntime && dtype in ARRAYS && castTo in ARRAYS
  const withFloat16 = float16 && dtype === 'float32' && castTo === 'float16'
  if (!withOnnxruntime && !withFloat16) return {}
  setThreads(threads)
  const { source, ours, theirs, casting } = buffersOf(each)
  const peer = withOnnxruntime ? await sessionOf(onnxruntime, each, source, theirs) : undefined
  const bytes = castBytes(each)
  const best = await bestOfRounds(
    {
      tilework: () => casting.copyToSync(ours),
      copy: () => theirs.set(source.subarray(0, Math.min(source.length, theirs.length))),
      ...(peer && { onnxruntime: peer.run }),
    },
    roundsOf(bytes, MAX_ROUNDS),
    { warm: true, repeatSeconds: REPEAT_SECONDS },
  )
  await peer?.release()
  const equal = peer ? Buffer.compare(ours, theirs) === 0 : true
  const slow = withFloat16 ? await bestOfRounds({ float16: () => loop(float16, source) }, FLOAT16_ROUNDS) : {}
  const rates = Object.entries({ ...best, ...slow }).map(([name, seconds]) => [name, bytes / seconds / 1e9])
  return { inNode: { ...Object.fromEntries(rates), equal } }
}

function loop({ Float16Array: Halves }, source) {
  return new Halves(new Float32Array(source.buffer, source.byteOffset, source.byteLength / 4))
}

function buffersOf({ shape, dtype, castTo }) {
  const elements = shape.reduce((product, extent) => product * extent, 1)
  const isUnsigned = DTYPES[castTo].kind === 'uint'
  const numbers = Float32Array.from({ length: elements }, (_, i) => {
    const number = ((Math.imul(i, 2654435761) >> 8) / 2 ** 23) * MAX_MAGNITUDE
    return isUnsigned ? Math.abs(number) : number
  })
  const source = cast(tensor(numbers, { dtype: 'float32', shape }), dtype).bytesSync()
  const byteLength = Math.ceil((elements * DTYPES[castTo].bits) / 8)
  return {
    source,
    ours: new Uint8Array(byteLength),
    theirs: new Uint8Array(byteLength),
    casting: cast(asTensor(source, { dtype, shape }), castTo),
  }
}

async function sessionOf({ InferenceSession, Tensor }, { shape, dtype, castTo, threads }, source, theirs) {
  const model = modelOfNode(
    'Cast',
    { to: DTYPES[castTo].onnx },
    { dtype, dims: shape },
    { dtype: castTo, dims: shape },
  )
  const session = await InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 })
  const over = (type, bytes) => {
    const Elements = ARRAYS[type]
    const count = bytes.byteLength / Elements.BYTES_PER_ELEMENT
    return new Tensor(type, new Elements(bytes.buffer, bytes.byteOffset, count), shape)
  }
  const x = over(dtype, source)
  const y = over(castTo, theirs)
  return { run: () => session.run({ x }, { y }), release: () => session.release() }
}
