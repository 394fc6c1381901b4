/** Edits of ONNX models, and what must hold after each: a model without errors has none afterwards. */
import type * as Tilework from '../lib/index.js'
import type * as Onnx from '../lib/onnx.js'
import { Random } from './random.js'

type Edit = (model: Onnx.OnnxModel, random: Random, onnx: typeof Onnx) => unknown

const EDITS: Readonly<Record<string, Edit>> = {
  inferTypes: (model, _, { inferTypes }) => inferTypes(model),
  inferShapes: (model, _, { inferShapes }) => inferShapes(model),
  setBatch: (model, random, { setBatch }) => setBatch(model, random.pick<number | string>([1, 7, 'batch'])),
  optimize: (model, _, { optimize }) => optimize(model),
  initializersToConstants: (model, _, { initializersToConstants }) => initializersToConstants(model),
  liftConstants: (model, _, { optimize }) => optimize(model, { only: ['lift-constants'] }),
  rename: ({ graph }, random) => {
    const values = graph.values()
    if (values.length > 0) graph.rename(random.pick(values).name, 'renamed')
  },
  toFloat16: (model, random, { toFloat16 }) =>
    toFloat16(model, {
      dtype: random.pick(['float16', 'bfloat16'] as const),
      keepIo: random.once(2),
      block: random.pick(['reference', 'minimal'] as const),
    }),
  quantizeWeights: (model, random, { quantizeWeights }) =>
    quantizeWeights(model, {
      bits: random.pick([2, 4, 8] as const),
      symmetric: random.once(2),
      format: random.pick(['matmulnbits', 'qdq'] as const),
    }),
  quantizeTables: (model, random, { quantizeWeights }) =>
    quantizeWeights(model, { bits: random.pick([4, 8] as const), gather: true, blockSize: 16 }),
  bnb4: (model, _, { quantizeWeights }) => quantizeWeights(model, { format: 'bnb4', blockSize: 16 }),
  quantizeDynamic: (model, random, { quantizeDynamic }) =>
    quantizeDynamic(model, {
      weightType: random.pick(['int8', 'uint8', 'auto'] as const),
      perChannel: random.once(2),
      reduceRange: random.once(2),
      subgraphs: random.once(2),
    }),
}

/** Edits of a case. */
const EDITS_OF_A_CASE = 3

/**
 * Makes a few edits, each of a copy.
 *
 * @param isAll - makes every edit
 * @throws Error where an edit ends in another error than a TileworkError, or breaks a model
 */
export async function edit(
  library: typeof Tilework,
  onnx: typeof Onnx,
  model: Onnx.OnnxModel,
  bytes: Uint8Array,
  isAll: boolean,
): Promise<void> {
  const random = new Random(bytes.reduce((sum, byte) => (Math.imul(sum, 31) + byte) | 0, bytes.length))
  const before = await faults(library, bytes)
  const every = Object.keys(EDITS)
  const names = isAll ? every : Array.from({ length: EDITS_OF_A_CASE }, () => random.pick(every))
  for (const name of names) {
    const copy = model.copy()
    try {
      await EDITS[name]!(copy, random, onnx)
      const written = await library.serialize(copy, { format: 'onnx' })
      const after = await faults(library, written)
      if (before.length === 0 && after.length > 0) throw new Error(`${name} broke the model: ${after[0]}`)
    } catch (error) {
      if (error instanceof library.TileworkError && error.code !== 'ERR_INTERNAL') continue
      throw new Error(`${name}: ${error instanceof Error ? error.stack : String(error)}`)
    }
  }
}

async function faults({ check }: typeof Tilework, bytes: Uint8Array): Promise<string[]> {
  const findings = await check(bytes, { format: 'onnx', level: 'strict' })
  return findings
    .filter(({ severity }) => severity === 'error')
    .map(({ code, message }) => `${code} ${message}`)
}
