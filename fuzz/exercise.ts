/** What is done with the bytes of a case, and what must hold whatever they are. */
import type * as Tilework from '../lib/index.js'
import type * as Onnx from '../lib/onnx.js'
import { edit } from './edits.js'
import type { Target } from './targets.js'

type Library = typeof Tilework

/** Tensors that were read are written in one of these, which the length of the case decides. */
const FORMATS = ['btf', 'safetensors', 'npz', 'onnx'] as const

/** Values are read up to this size: a file of 100 bytes may declare any shape. */
const MAX_VALUE_BYTES = 2 ** 20

export interface How {
  readonly format: string
  readonly input?: Target['input']
  /** The module of ONNX models, where models are to be edited. */
  readonly onnx?: typeof Onnx
  /** Every edit, not only a few. */
  readonly allEdits?: boolean
}

/**
 * Opens, checks, lists, reads and writes the bytes as a caller would.
 *
 * @returns how far it came, as the key of a counter: `refused: CODE`, `lenient` or `strict`
 * @throws Error for anything but a TileworkError, and where two answers about the same bytes contradict each other
 */
export async function exercise(
  library: Library,
  { format, input, onnx, allEdits = false }: How,
  given: Uint8Array,
): Promise<string> {
  const { check, open, TileworkError } = library
  const { bytes, options } = input?.(given) ?? { bytes: given, options: {} }
  const named = { format, ...options } as Parameters<Library['open']>[1]
  const outcome = async <T>(call: () => Promise<T>): Promise<T | InstanceType<typeof TileworkError>> => {
    try {
      return await call()
    } catch (error) {
      if (error instanceof TileworkError && error.code !== 'ERR_INTERNAL') return error
      throw error
    }
  }
  let result = 'refused'
  for (const level of ['strict', 'lenient'] as const) {
    const findings = await outcome(() => check(bytes, { ...named, level }))
    const file = await outcome(() => open(bytes, { ...named, level }))
    if (file instanceof TileworkError) {
      if (result === 'refused') result = `refused: ${file.code}`
      const isFound =
        findings instanceof TileworkError || findings.some(({ severity }) => severity === 'error')
      if (!isFound)
        throw new Error(`open refuses with ${file.code} (${file.message}) at ${level}; check finds no error`)
      continue
    }
    try {
      await use(library, file, bytes.length, outcome)
      if (onnx && file.onnx) await edit(library, onnx, file.onnx, bytes, allEdits)
    } finally {
      file.close()
    }
    return level
  }
  return result
}

async function use(
  { serialize, open }: Library,
  file: Tilework.OpenFile,
  byteLength: number,
  outcome: <T>(call: () => Promise<T>) => Promise<T | Error>,
): Promise<void> {
  const tensors = [...file.tensors]
  if (tensors.length !== file.tensors.length) throw new Error('the list has another length than its tensors')
  for (const [index, tensor] of tensors.entries()) {
    if (file.tensors.at(index)?.name !== tensor.name) throw new Error(`tensor ${index} has two names`)
    if (!tensor.hasData || storedBytes(tensor) > MAX_VALUE_BYTES) continue
    if (tensor.kind === 'string') await outcome(() => tensor.strings())
    else if (tensor.kind === 'sparse') await outcome(() => tensor.toDense({ maxBytes: MAX_VALUE_BYTES }))
    else if (tensor.kind === 'block') await outcome(() => tensor.toTypedArray())
    else await readDense(tensor, outcome)
  }
  const { onnx, tmfile } = file
  await outcome(async () => (onnx ? [...onnx.graph.allNodes()].length + onnx.functions.length : 0))
  await outcome(async () => tmfile?.graph.nodes.length)
  const small = tensors.filter((tensor) => tensor.kind !== 'string' && storedBytes(tensor) <= MAX_VALUE_BYTES)
  const format = FORMATS[byteLength % FORMATS.length]!
  const written = await outcome(() => serialize(small, { format }))
  if (written instanceof Error) return
  const again = await outcome(() => open(written, { format, level: 'strict' }))
  if (again instanceof Error) throw new Error(`what was written as ${format} is refused: ${again.message}`)
  // Tied tensors are stored once; the metadata names the one that an alias is.
  const metadata = again.tensors.at(0)?.metadata
  const aliases = small.filter(({ name }) => again.tensors.get(metadata?.get(name) ?? '') !== undefined)
  if (again.tensors.length + aliases.length < small.length) throw new Error(`${format} lost tensors`)
}

/** What reading the tensor takes: strings have no size before they are read. */
function storedBytes(tensor: Tilework.AnyTensor): number {
  if (tensor.kind === 'dense') return tensor.storage.byteLength
  if (tensor.kind === 'block') return tensor.byteLength
  // An index of 8 bytes per axis, and a value of at most 16.
  return tensor.kind === 'sparse' ? tensor.entryCount * (tensor.shape.length * 8 + 16) : 0
}

async function readDense(
  tensor: Tilework.DenseTensor,
  outcome: <T>(call: () => Promise<T>) => Promise<T | Error>,
): Promise<void> {
  const bytes = await outcome(() => tensor.bytes())
  if (bytes instanceof Error) return
  if (bytes.byteLength !== tensor.storage.byteLength)
    throw new Error(`tensor "${tensor.name}" has other bytes than it says`)
  const values = await outcome(() => tensor.toTypedArray())
  if (!(values instanceof Error) && values.length !== tensor.size && !tensor.dtype.startsWith('complex')) {
    throw new Error(`tensor "${tensor.name}" has ${values.length} values, not ${tensor.size}`)
  }
}
