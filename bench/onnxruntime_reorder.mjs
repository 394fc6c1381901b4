/**
 * Times onnxruntime-node and tilework, both called from JavaScript on the same buffers, and a copy of the same bytes, in
 * interleaved rounds. onnxruntime-node is not a dependency: a folder that has it installed is given.
 */
import { planReorder, setThreads } from '../dist/index.js'
import { transposeModel, transposeOf } from './onnx_transpose.mjs'
import { bestOfRounds } from './rounds.mjs'

/** Rounds of the largest and of the smallest cases. */
const MIN_ROUNDS = 9
const MAX_ROUNDS = 60
/** Half a page. glibc's memcpy is slow for some page offsets; of two targets this far apart, one avoids them. */
const HALF_PAGE = 2048

/**
 * Adds `inNode` to each result that a Transpose can express: the rates in GB/s of one call from JavaScript for tilework,
 * onnxruntime and a copy, and whether the results are equal.
 */
export async function measureOnnxruntime(onnxruntime, results) {
  const measured = []
  for (const result of results) {
    // A Transpose cannot slice.
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
  const rounds = Math.min(MAX_ROUNDS, Math.max(MIN_ROUNDS, Math.round((MAX_ROUNDS * 2 ** 22) / bytes)))
  const best = await bestOfRounds(
    {
      copy: () => target.set(source),
      'copy, offset by half a page': () => target.set(source, HALF_PAGE),
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
    copy: rate(Math.min(best.copy, best['copy, offset by half a page'])),
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
