/**
 * Plans a GGUF file of version 3: keys in the order given, `general.architecture` first, tensors in their order, each padded with
 * zeros to the alignment, the last too. Byte for byte as gguf-py writes the same keys and tensors.
 */
import { isBlockDtype } from '../../dtype/block_types.js'
import { TileworkError } from '../../errors.js'
import { StoredBlocks } from '../../tensor/block_tensor.js'
import { checkTensor } from '../../tensor/check_tensor.js'
import { StoredTensor } from '../../tensor/dense.js'
import { storedShape } from '../../tensor/stored_shape.js'
import type { AnyTensor, BlockTensor, DenseTensor } from '../../tensor/tensor.js'
import { encodeUtf8 } from '../../utf8.js'
import { valueText } from '../../value_text.js'
import type { TensorSequence, WritePlan, WriteSegment, WriteTarget } from '../format.js'
import { checkHasData, checkStorageBytes, uniqueNames } from '../write_checks.js'
import { GgufMetadata } from './metadata.js'
import { type GgufValueInput, u32Bytes, u64Bytes } from './metadata_values.js'
import type { GgufModel } from './model.js'
import {
  ALIGNMENT_KEY,
  ARCHITECTURE_KEY,
  aligned,
  DEFAULT_ALIGNMENT,
  FORMAT_NAME,
  HEADER_BYTES,
  MAGIC,
  MAX_NAME_BYTES,
  MAX_RANK,
  NUMBER_BY_DTYPE,
  VERSION,
} from './schema.js'
import { isPowerOfTwo } from './walk_keys.js'

/** What the writer of GGUF files takes. */
export interface GgufOptions {
  /**
   * Keys and values, in order; see `GgufMetadata.set` for the values. By default a model keeps its own, and other tensors have
   * none: llama.cpp needs `general.architecture` and those of the architecture.
   */
  readonly metadata?:
    | GgufMetadata
    | Iterable<readonly [string, GgufValueInput]>
    | Readonly<Record<string, GgufValueInput>>
  /** The data and each tensor start at multiples of this power of two. Default: the key general.alignment, else 32. */
  readonly alignment?: number
}

export interface GgufWriteOptions {
  /** Options of GGUF files. */
  readonly gguf?: GgufOptions
}

/** Largest alignment that is written: more than any page. */
const MAX_ALIGNMENT = 2 ** 20

/**
 * Plans a file of `tensors`, whose names must differ; tensors without a name get one. Blocked storage is written as a row-major
 * array of its blocks.
 *
 * @throws TileworkError ERR_UNSUPPORTED for element types, ranks and names that the format lacks, ERR_ARGUMENT for options and
 * equal names, ERR_NO_DATA
 */
export async function plan(
  tensors: TensorSequence<AnyTensor>,
  options: GgufWriteOptions = {},
  _target: WriteTarget = {},
): Promise<WritePlan> {
  const { metadata, alignment } = readOptions(options.gguf ?? {})
  const names = uniqueNames(
    Array.from(tensors, ({ name }) => name),
    'tensor_',
  )
  checkNames(names)
  const planned = names.map((name, index) => planTensor(tensors.at(index)!, name, index))
  return planOf(planned, metadata, alignment)
}

/**
 * Plans the file of a model. Where nothing but keys changed, the infos and the data are copied as they are: offsets count from the
 * start of the data. A model of several files becomes one file.
 */
export async function planModel(
  model: GgufModel,
  options: GgufWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  const isShard = model.files.length > 1
  const { metadata = isShard ? model.wholeMetadata() : model.metadata, ...others } = options.gguf ?? {}
  const { alignment } = readOptions({ ...others, metadata })
  const [first] = model.files
  const isPlain = !isShard && model.isLittleEndian && model.version > 1
  if (!isPlain || alignment !== model.alignment) {
    return plan(model.tensors, { gguf: { alignment, ...others, metadata } }, target)
  }
  const { source, header } = first!
  const keys = readOptions({ ...others, metadata }).metadata
  const start = headerOf(header.table.length, keys)
  const infosEnd = start.byteLength + header.infosEnd - header.infosStart
  const range = (from: number, to: number): WriteSegment[] =>
    to > from ? [{ kind: 'range', source, start: from, end: to }] : []
  const dataStart = Math.min(header.dataStart, source.byteLength)
  const hasData = source.byteLength > header.infosEnd
  const padding = hasData ? aligned(infosEnd, alignment) - infosEnd : 0
  return {
    byteLength: infosEnd + padding + source.byteLength - Math.max(dataStart, header.infosEnd),
    segments: [
      { kind: 'bytes', bytes: start },
      ...range(header.infosStart, header.infosEnd),
      ...zeros(padding),
      ...range(dataStart, source.byteLength),
    ],
  }
}

function readOptions({ metadata, alignment }: GgufOptions): { metadata: GgufMetadata; alignment: number } {
  const keys = asMetadata(metadata ?? {}).copy()
  const own = keys.typeOf(ALIGNMENT_KEY) === 'uint32' ? (keys.get(ALIGNMENT_KEY)!.value as number) : undefined
  const chosen = alignment ?? own ?? DEFAULT_ALIGNMENT
  if (!isPowerOfTwo(chosen) || chosen > MAX_ALIGNMENT) {
    const message = `alignment is ${valueText(chosen)}; it must be a power of two up to ${MAX_ALIGNMENT}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const isSaid = keys.has(ALIGNMENT_KEY)
  if (isSaid ? own !== chosen : chosen !== DEFAULT_ALIGNMENT) {
    keys.set(ALIGNMENT_KEY, { type: 'uint32', value: chosen })
  }
  return { metadata: keys.withFirst(ARCHITECTURE_KEY), alignment: chosen }
}

function asMetadata(given: NonNullable<GgufOptions['metadata']>): GgufMetadata {
  if (given instanceof GgufMetadata) return given
  if (typeof given !== 'object' || given === null) {
    const message = `metadata is ${valueText(given)}; expected an object, a map, or entries.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const metadata = new GgufMetadata()
  const entries = Symbol.iterator in given ? given : Object.entries(given)
  for (const [key, value] of entries as Iterable<readonly [string, GgufValueInput]>) metadata.set(key, value)
  return metadata
}

/** A tensor as it will be stored. */
interface PlannedTensor {
  readonly name: Uint8Array
  /** Fastest first. */
  readonly dims: readonly number[]
  readonly type: number
  readonly byteLength: number
  /** Absent for an empty tensor. */
  readonly data: DenseTensor | undefined
}

function planTensor(tensor: AnyTensor, name: string, index: number): PlannedTensor {
  checkTensor(tensor, 'A GGUF file', 'or blocks')
  const what = `Tensor ${index} (${valueText(name)})`
  checkHasData(tensor as never, what, FORMAT_NAME)
  const type = NUMBER_BY_DTYPE.get(tensor.dtype)
  if (tensor.kind === 'sparse' || tensor.kind === 'string' || type === undefined) {
    const known = [...NUMBER_BY_DTYPE.keys()].filter((dtype) => !isBlockDtype(dtype))
    const found = tensor.kind === 'sparse' ? 'sparse' : tensor.dtype
    throw unsupported(`${what} is ${found}; GGUF takes ${known.join(', ')} and types of blocks.`)
  }
  const shape = tensor.kind === 'block' ? tensor.shape : storedShape(tensor)
  if (shape.length > MAX_RANK) {
    throw unsupported(`${what} has ${shape.length} axes; GGUF takes up to ${MAX_RANK}.`)
  }
  if (tensor.kind === 'dense') checkStorageBytes(tensor, shape, what, FORMAT_NAME)
  const byteLength = tensor.kind === 'block' ? tensor.byteLength : tensor.storage.byteLength
  const data = tensor.kind === 'block' ? blockBytes(tensor) : tensor
  return {
    name: encodeName(name, what),
    dims: [...shape].reverse(),
    type,
    byteLength,
    data: byteLength === 0 ? undefined : data,
  }
}

/** The blocks as a tensor of bytes, which a save copies. */
function blockBytes(tensor: BlockTensor): DenseTensor {
  const { byteLength } = tensor
  const range =
    tensor instanceof StoredBlocks
      ? { source: tensor.source, start: tensor.start }
      : {
          source: {
            byteLength,
            label: `tensor "${tensor.name}"`,
            read: (start: number, end: number) => tensor.bytes({ start, end }),
          },
          start: 0,
        }
  return new StoredTensor({ ...range, dtype: 'uint8', shape: [byteLength], name: tensor.name })
}

function encodeName(name: string, what: string): Uint8Array {
  const bytes = encodeUtf8(name, `${what}: the name`, FORMAT_NAME)
  if (bytes.byteLength <= MAX_NAME_BYTES) return bytes
  throw unsupported(
    `${what}: the name has ${bytes.byteLength} bytes; readers of GGUF take up to ${MAX_NAME_BYTES}.`,
  )
}

function checkNames(names: readonly string[]): void {
  const taken = new Set<string>()
  for (const name of names) {
    if (taken.has(name)) {
      const message = `Two tensors are named ${valueText(name)}; names in a GGUF file must differ.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    taken.add(name)
  }
}

function unsupported(message: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
}

/** Magic number, version, counts and keys. */
function headerOf(tensors: number, metadata: GgufMetadata): Uint8Array {
  const start = Buffer.alloc(HEADER_BYTES)
  start.set(MAGIC)
  start.writeUInt32LE(VERSION, MAGIC.byteLength)
  start.writeBigUInt64LE(BigInt(tensors), MAGIC.byteLength + 4)
  start.writeBigUInt64LE(BigInt(metadata.size), MAGIC.byteLength + 12)
  return Buffer.concat([start, ...metadata.encoded()])
}

function infoOf({ name, dims, type }: PlannedTensor, offset: number): Uint8Array {
  const parts = [u64Bytes(name.byteLength), name, u32Bytes(dims.length), ...dims.map(u64Bytes)]
  return Buffer.concat([...parts, u32Bytes(type), u64Bytes(offset)])
}

function planOf(tensors: readonly PlannedTensor[], metadata: GgufMetadata, alignment: number): WritePlan {
  let dataBytes = 0
  const infos = tensors.map((tensor) => {
    const info = infoOf(tensor, dataBytes)
    dataBytes += aligned(tensor.byteLength, alignment)
    return info
  })
  const header = Buffer.concat([headerOf(tensors.length, metadata), ...infos])
  const padding = tensors.length === 0 ? 0 : aligned(header.byteLength, alignment) - header.byteLength
  const segments = {
    *[Symbol.iterator](): Generator<WriteSegment> {
      yield { kind: 'bytes', bytes: header }
      yield* zeros(padding)
      for (const { data, byteLength } of tensors) {
        if (data) yield { kind: 'tensor', tensor: data }
        yield* zeros(aligned(byteLength, alignment) - byteLength)
      }
    },
  }
  return { byteLength: header.byteLength + padding + dataBytes, segments }
}

function zeros(count: number): WriteSegment[] {
  return count === 0 ? [] : [{ kind: 'bytes', bytes: Buffer.alloc(count) }]
}
