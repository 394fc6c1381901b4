/**
 * onnxruntime-node beside ours, both called from JavaScript over the same buffers, with a copy of the same bytes in turns.
 * It is no dependency: it is taken from where the user has installed it.
 */
import { planReorder, setThreads } from '../dist/index.js'
import { transposeModel, transposeOf } from './onnx_transpose.mjs'
import { bestOfRounds } from './rounds.mjs'

/** Turns of large cases and of small ones. */
const LEAST_ROUNDS = 9
const MOST_ROUNDS = 60
/** Half of a page: of two targets that far apart one lies clear of the places where glibc's memcpy is slow. */
const HALF_PAGE = 2048

/**
 * Adds to each result that a Transpose can express the rates in GB/s of one call from JavaScript: ours, onnxruntime's
 * and a copy's, and whether onnxruntime's bytes are ours.
 */
export async function measureOnnxruntime(onnxruntime, results) {
  const measured = []
  for (const result of results) {
    // A Transpose takes no slices.
    const transpose = result.slice ? undefined : transposeOf(result)
    const model = transpose && transposeModel(result.dtype, transpose)
    measured.push(
      model ? { ...result, inNode: await measureOne(onnxruntime, result, transpose, model) } : result,
    )
  }
  return measured
}

async function measureOne(onnxruntime, { shape, from, to, dtype, threads, bytes }, transpose, model) {
  const plan = planReorder({ dtype, shape, from, to })
  const source = new Uint8Array(plan.sourceBytes).map((_, i) => (Math.imul(i, 2654435761) >>> 24) & 0x3f)
  const target = new Uint8Array(plan.destinationBytes + HALF_PAGE)
  const ours = target.subarray(0, plan.destinationBytes)
  const theirs = new Uint8Array(plan.destinationBytes)
  setThreads(threads)
  const session = await onnxruntime.InferenceSession.create(model, {
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
  })
  const { dims, permutation } = transpose
  const outputDims = permutation.map((axis) => dims[axis])
  const x = tensorOver(onnxruntime, dtype, source, dims)
  const y = tensorOver(onnxruntime, dtype, theirs, outputDims)
  const rounds = Math.min(MOST_ROUNDS, Math.max(LEAST_ROUNDS, Math.round((MOST_ROUNDS * 2 ** 22) / bytes)))
  const best = await bestOfRounds(
    {
      copy: () => target.set(source),
      'copy, half a page on': () => target.set(source, HALF_PAGE),
      tilework: () => plan.runSync(source, ours),
      onnxruntime: () => session.run({ x }, { y }),
    },
    rounds,
  )
  await session.release()
  const rate = (seconds) => Number((bytes / seconds / 1e9).toPrecision(5))
  return {
    tilework: rate(best.tilework),
    onnxruntime: rate(best.onnxruntime),
    copy: rate(Math.min(best.copy, best['copy, half a page on'])),
    equal: Buffer.compare(ours, theirs) === 0,
  }
}

function tensorOver({ Tensor }, dtype, bytes, dims) {
  const arrays = {
    float32: Float32Array,
    float16: globalThis.Float16Array ?? Uint16Array,
    uint8: Uint8Array,
    int8: Int8Array,
  }
  const Elements = arrays[dtype]
  const elements = new Elements(bytes.buffer, bytes.byteOffset, bytes.byteLength / Elements.BYTES_PER_ELEMENT)
  return new Tensor(dtype, elements, dims)
}
