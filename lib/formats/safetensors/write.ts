/**
 * Plans a safetensors file, byte for byte as the reference writes it: entries sorted by dtype, then name; the header without
 * whitespace, padded with spaces to a multiple of 8. The plan refers to payloads and does not copy them.
 */

import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { storedShape } from '../../tensor/stored_shape.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import { isWellFormed } from '../../utf8.js'
import { valueText } from '../../value_text.js'
import { exactSizeOf } from '../exact_size.js'
import type { TensorSequence, WritePlan, WriteSegment, WriteTarget } from '../format.js'
import { isTensorKey } from '../tensor_metadata.js'
import { checkHasData, checkStorageBytes, uniqueNames } from '../write_checks.js'
import { compareCodePoints } from './code_points.js'
import { layoutEntryOf } from './layout_entries.js'
import {
  FORMAT_HEADER_BYTES,
  FORMAT_NAME,
  INDEX_EXTENSION,
  LAYOUT_KEY_PREFIX,
  LENGTH_BYTES,
  MAX_METADATA_ENTRIES,
  METADATA_KEY,
  quote,
  RANK_OF_DTYPE,
  TENSOR_CODES,
} from './schema.js'
import { untie } from './tied_tensors.js'
import { planShards } from './write_shards.js'

export interface SafetensorsWriteOptions {
  /**
   * The metadata of the file. By default the tensors' metadata are merged: every tensor from a safetensors file has the
   * metadata of that file. Required where two tensors disagree on a key.
   */
  readonly metadata?: Readonly<Record<string, string>>
  /**
   * Maximum tensor bytes per file; a larger tensor gets a file of its own. Tensors that need several files become an
   * index and its shards, and the path must end in `.index.json`. Shards that an index of the folder names are never
   * overwritten. Shards of a replaced index are removed after it, unless another index names them too.
   */
  readonly maxShardBytes?: number
  /** The data of a file starts at a multiple of this: a power of two from 8 (default) to 65,536. */
  readonly alignment?: number
}

/** Tensors in file order. Each is planned on access: a million plans would need more memory than the file. */
interface PlannedList {
  readonly order: Uint32Array
  at(index: number): PlannedTensor
}

/** A tensor as it will be stored. */
interface PlannedTensor {
  readonly tensor: DenseTensor
  readonly name: string
  /** Shape in the header. */
  readonly shape: readonly number[]
  readonly typeRank: number
  readonly byteLength: number
  /** Metadata entry of a blocked tensor. */
  readonly layoutEntry: string | undefined
}

const DEFAULT_ALIGNMENT = 8
/** The largest page size in use; more would only make files longer. */
const MAX_ALIGNMENT = 65_536

/**
 * Plans a file of tensors, whose names must differ; where several have none, they get names. Tied tensors are stored once. The
 * storage of a blocked tensor is written as a row-major array, with a metadata entry that restores the tensor on opening.
 *
 * @throws TileworkError ERR_UNSUPPORTED for a dtype without a code; ERR_ARGUMENT for options, equal names and
 * conflicting metadata; ERR_NO_DATA; ERR_LIMIT for a header that is too long or too many shards; ERR_IO
 */
export async function plan(
  given: TensorSequence,
  options: SafetensorsWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  const alignment = checkAlignment(options.alignment)
  const maxShardBytes = checkShardBytes(options.maxShardBytes)
  const own = options.metadata === undefined ? joinMetadata(given) : checkMetadata(options.metadata)
  const { tensors, aliases } = untie(given, own)
  const metadata = new Map([...own, ...aliases])
  const names = namesOf(tensors)
  const plannedAt = (index: number): PlannedTensor => planTensor(tensors.at(index)!, names[index]!, index)
  const typeRanks = new Uint8Array(names.length)
  let total = 0
  for (let index = 0; index < names.length; index++) {
    const { typeRank, byteLength } = plannedAt(index)
    typeRanks[index] = typeRank
    total += byteLength
  }
  checkNames(names)
  const isIndex = target.path?.toLowerCase().endsWith(INDEX_EXTENSION) === true
  const write = (order: Uint32Array): WritePlan => {
    order.sort(
      (one, other) => typeRanks[other]! - typeRanks[one]! || compareCodePoints(names[one]!, names[other]!),
    )
    return planFile({ order, at: plannedAt }, metadata, alignment)
  }
  const all = Uint32Array.from(names.keys())
  if (!isIndex && total <= maxShardBytes) return write(all)
  const sharded = Array.from(all, (index) => {
    const { name, byteLength } = plannedAt(index)
    return { name, byteLength, index }
  })
  return planShards(sharded, {
    ...{ maxShardBytes, path: target.path, isIndex },
    write: (part) => write(Uint32Array.from(part, ({ index }) => index)),
  })
}

function checkAlignment(alignment: number = DEFAULT_ALIGNMENT): number {
  const isPower = Number.isInteger(alignment) && (alignment & (alignment - 1)) === 0
  if (isPower && alignment >= DEFAULT_ALIGNMENT && alignment <= MAX_ALIGNMENT) return alignment
  const message = `alignment is ${valueText(alignment)}; it must be a power of two from ${DEFAULT_ALIGNMENT} to ${MAX_ALIGNMENT}.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function checkShardBytes(maxShardBytes: number | undefined): number {
  if (maxShardBytes === undefined) return Number.POSITIVE_INFINITY
  if (Number.isSafeInteger(maxShardBytes) && maxShardBytes > 0) return maxShardBytes
  const message = `maxShardBytes is ${valueText(maxShardBytes)}; it must be a whole number of bytes from 1.`
  throw new TileworkError('ERR_ARGUMENT', message)
}

function checkMetadata(metadata: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  if (typeof metadata !== 'object' || metadata === null) {
    throw new TileworkError('ERR_ARGUMENT', `metadata is ${valueText(metadata)}; it must be an object.`)
  }
  const entries = Object.entries(metadata)
  for (const [key, value] of entries) {
    if (typeof value !== 'string') {
      const message = `metadata[${quote(key)}] is ${typeof value}; expected a string.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    if (key.startsWith(LAYOUT_KEY_PREFIX)) {
      const message = `metadata[${quote(key)}]: keys that start with ${LAYOUT_KEY_PREFIX} are reserved for layouts.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    checkUnicode(key, 'metadata key')
    checkUnicode(value, `metadata value of ${quote(key)}`)
  }
  return new Map(entries)
}

/** The merged metadata of all tensors. Tensors of one file share a map, which is read once. */
function joinMetadata(tensors: Iterable<Tensor>): ReadonlyMap<string, string> {
  const joined = new Map<string, string>()
  const all = new Set<Tensor['metadata']>()
  // A caller's own tensors may be plain objects without metadata. In other formats each tensor has its own map.
  for (const { metadata } of tensors) if (metadata && metadata.size > 0) all.add(metadata)
  for (const metadata of all) {
    for (const [key, value] of metadata) {
      if (key.startsWith(LAYOUT_KEY_PREFIX) || isTensorKey(key)) continue
      const other = joined.get(key)
      if (other !== undefined && other !== value) {
        const message = `The tensors' metadata have two values of ${quote(key)}, ${quote(other)} and ${quote(value)}; pass the option metadata.`
        throw new TileworkError('ERR_ARGUMENT', message)
      }
      checkUnicode(key, 'metadata key')
      checkUnicode(value, `metadata value of ${quote(key)}`)
      joined.set(key, value)
    }
  }
  return joined
}

/** The empty text is a valid name, but only for one tensor. */
function namesOf(tensors: Iterable<Tensor>): readonly string[] {
  const names = Array.from(tensors, ({ name }) => name)
  return names.indexOf('') === names.lastIndexOf('') ? names : uniqueNames(names, 'tensor_')
}

function planTensor(tensor: Tensor, name: string, index: number): PlannedTensor {
  const what = `Tensor ${index} (${quote(name)})`
  if (tensor.kind === 'sparse') {
    throw unsupported(`${what} is sparse; safetensors takes dense tensors. Use toDense().`)
  }
  const typeRank = RANK_OF_DTYPE.get(tensor.dtype)
  if (tensor.kind === 'string' || typeRank === undefined) {
    const codes = TENSOR_CODES.map(({ dtype }) => dtype)
    throw unsupported(`${what} is ${tensor.dtype}; safetensors takes ${codes.join(', ')}.`)
  }
  checkHasData(tensor, what, FORMAT_NAME)
  if (name === METADATA_KEY) throw unsupported(`${what} has the name that the format reserves for metadata.`)
  checkUnicode(name, 'tensor name')
  const { byteLength } = tensor.storage
  const shape = storedShape(tensor)
  const { bits } = DTYPES[tensor.dtype]
  const { elements } = exactSizeOf(shape)
  if (bits < 8 && (Number(elements) * bits) % 8 !== 0) {
    throw unsupported(`${what} has ${elements} elements of ${bits} bits; safetensors needs whole bytes.`)
  }
  checkStorageBytes(tensor, shape, what, FORMAT_NAME)
  return { tensor, name, shape, typeRank, byteLength, layoutEntry: layoutEntryOf(tensor) }
}

function unsupported(message: string): TileworkError {
  return new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
}

/** A header is UTF-8, which cannot represent an unpaired surrogate. */
function checkUnicode(text: string, what: string): void {
  if (isWellFormed(text)) return
  throw unsupported(`The ${what} ${quote(text)} has an unpaired surrogate, which UTF-8 cannot represent.`)
}

function checkNames(names: readonly string[]): void {
  const taken = new Set<string>()
  for (const [index, name] of names.entries()) {
    if (taken.has(name)) {
      const message = `Tensors ${names.indexOf(name)} and ${index} are both named ${quote(name)}; names in a safetensors file must differ.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    taken.add(name)
  }
}

function planFile(tensors: PlannedList, metadata: ReadonlyMap<string, string>, alignment: number): WritePlan {
  const header = new Header(tensors, metadata, alignment)
  const segments = {
    *[Symbol.iterator](): Generator<WriteSegment> {
      for (const bytes of header.parts()) yield { kind: 'bytes', bytes }
      for (const index of tensors.order) {
        const { tensor, byteLength } = tensors.at(index)
        if (byteLength > 0) yield { kind: 'tensor', tensor }
      }
    },
  }
  return { byteLength: header.byteLength + header.dataBytes, segments }
}

/** Approximate number of characters that are encoded together. */
const ENCODED_LENGTH = 2 ** 16

/** The length field and the header. Entries are printed twice: for their length, and when they are written. */
class Header {
  /** Multiple of the alignment. */
  readonly byteLength: number
  /** Length of the data after the header. */
  readonly dataBytes: number
  readonly #tensors: PlannedList
  /** The metadata of the file and the layouts of blocked tensors. */
  readonly #texts: ReadonlyMap<string, string>
  readonly #jsonBytes: number

  /** @throws TileworkError ERR_LIMIT as soon as the header is too long */
  constructor(tensors: PlannedList, metadata: ReadonlyMap<string, string>, alignment: number) {
    const texts = new Map(metadata)
    let dataBytes = 0
    for (const index of tensors.order) {
      const { name, layoutEntry, byteLength } = tensors.at(index)
      if (layoutEntry !== undefined) texts.set(LAYOUT_KEY_PREFIX + name, layoutEntry)
      dataBytes += byteLength
    }
    checkMetadataCount(texts.size)
    this.#tensors = tensors
    this.#texts = texts
    let jsonBytes = 0
    for (const text of this.#json()) {
      jsonBytes += Buffer.byteLength(text)
      checkHeaderBytes(jsonBytes)
    }
    const byteLength = Math.ceil((LENGTH_BYTES + jsonBytes) / alignment) * alignment
    checkHeaderBytes(byteLength - LENGTH_BYTES)
    this.#jsonBytes = jsonBytes
    this.byteLength = byteLength
    this.dataBytes = dataBytes
  }

  *parts(): Generator<Uint8Array> {
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeBigUInt64LE(BigInt(this.byteLength - LENGTH_BYTES))
    yield length
    let jsonBytes = 0
    for (const text of this.#json()) {
      const bytes = Buffer.from(text)
      jsonBytes += bytes.byteLength
      yield bytes
    }
    if (jsonBytes !== this.#jsonBytes) {
      // A caller's own tensors may change at any time.
      const message = `A tensor changed its type or shape while it was saved: the header was planned with ${this.#jsonBytes} bytes and has ${jsonBytes}.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    yield Buffer.alloc(this.byteLength - LENGTH_BYTES - jsonBytes, ' ')
  }

  /** The header in strings of about {@link ENCODED_LENGTH} characters. */
  *#json(): Generator<string> {
    let text = ''
    let separator = '{'
    for (const entry of this.#entries()) {
      text += separator + entry
      separator = ','
      if (text.length < ENCODED_LENGTH) continue
      yield text
      text = ''
    }
    yield separator === '{' ? '{}' : `${text}}`
  }

  *#entries(): Generator<string> {
    if (this.#texts.size > 0) yield `${JSON.stringify(METADATA_KEY)}:${objectOf(this.#texts)}`
    let begin = 0
    for (const index of this.#tensors.order) {
      const { name, shape, typeRank, byteLength } = this.#tensors.at(index)
      const end = begin + byteLength
      const { code } = TENSOR_CODES[typeRank]!
      yield `${JSON.stringify(name)}:{"dtype":"${code}","shape":[${shape}],"data_offsets":[${begin},${end}]}`
      begin = end
    }
  }
}

function checkMetadataCount(count: number): void {
  if (count <= MAX_METADATA_ENTRIES) return
  const message = `The metadata would have ${count} entries; the limit is ${MAX_METADATA_ENTRIES}.`
  throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
}

function checkHeaderBytes(bytes: number): void {
  if (bytes <= FORMAT_HEADER_BYTES) return
  const message = `The header would have ${bytes} bytes or more; the limit of the format is ${FORMAT_HEADER_BYTES}.`
  throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
}

/** Printed by hand: an object would reorder keys like `10` and treat `__proto__` specially. */
function objectOf(texts: ReadonlyMap<string, string>): string {
  const pairs = [...texts].map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
  return `{${pairs.join(',')}}`
}
