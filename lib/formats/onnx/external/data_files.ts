/**
 * Plans external data files: aligned tensors in the order in which they were added, zeros between them, and a new file
 * where the next tensor would exceed the size limit; or safetensors files. All offsets are known before anything is written.
 */
import { createHash } from 'node:crypto'
import { READER_WINDOW_BYTES } from '../../../bytes/reader.js'
import { throwIfAborted } from '../../../cancel.js'
import { TileworkError } from '../../../errors.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import type { SiblingPlan, WriteSegment } from '../../format.js'
import { WireWriter } from '../protobuf/wire_writer.js'
import { FORMAT_NAME, fieldNumber, LOCATION_EXTERNAL } from '../schema.js'
import { type Property, TENSOR } from '../tensor/header.js'
import { namesForData } from './names.js'
import type { CheckedExternal } from './options.js'
import {
  compareValues,
  EMPTY_HEADER_BYTES,
  headerBytesOf,
  type NamedValues,
  safetensorsHeader,
  ValueNames,
} from './safetensors_header.js'

/** The range of a tensor in the planned files. */
export interface DataRange {
  /** Index among the files. */
  readonly file: number
  /** Known once the files are finished. */
  offset: number
  readonly byteLength: number
}

interface DataFile {
  segments: WriteSegment[]
  byteLength: number
  /** Tensors of a safetensors file, whose offsets follow from its header. */
  readonly values: (NamedValues & { readonly range: DataRange })[]
  sha1?: Promise<Uint8Array>
}

const PROPERTY = {
  key: fieldNumber('StringStringEntryProto', 'key'),
  value: fieldNumber('StringStringEntryProto', 'value'),
}

/** Length of a SHA-1 in hexadecimal digits. */
const DIGEST_BYTES = 40

export class ExternalData {
  readonly #options: CheckedExternal
  readonly #files: DataFile[] = []
  readonly #valueNames = new ValueNames()
  #names: readonly string[] = []

  constructor(options: CheckedExternal) {
    this.#options = options
  }

  /** True where tensors of attributes may be external. */
  get takesAttributes(): boolean {
    return this.#options.attributes
  }

  /** True where each tensor has a name in its data file. */
  get hasNames(): boolean {
    return this.#options.format === 'safetensors'
  }

  /** True for a tensor that is large enough to be external. */
  takes(tensor: DenseTensor): boolean {
    const { byteLength } = tensor.storage
    return byteLength > 0 && byteLength >= this.#options.threshold
  }

  /** @param name - of the tensor in the model */
  add(tensor: DenseTensor, name: string): DataRange {
    if (this.hasNames) return this.#addNamed(tensor, name)
    const { shardBytes, alignmentOf } = this.#options
    const { byteLength } = tensor.storage
    const alignment = alignmentOf(byteLength)
    let file = this.#files.at(-1)
    let offset = file ? Math.ceil(file.byteLength / alignment) * alignment : 0
    if (!file || offset + byteLength > shardBytes) {
      file = this.#newFile(0)
      offset = 0
    }
    const gap = offset - file.byteLength
    if (gap > 0) file.segments.push({ kind: 'bytes', bytes: new Uint8Array(gap) })
    file.segments.push({ kind: 'tensor', tensor })
    file.byteLength = offset + byteLength
    return { file: this.#files.length - 1, offset, byteLength }
  }

  #newFile(byteLength: number): DataFile {
    const file = { segments: [], byteLength, values: [] }
    this.#files.push(file)
    return file
  }

  #addNamed(tensor: DenseTensor, wanted: string): DataRange {
    const { byteLength } = tensor.storage
    const name = this.#valueNames.take(wanted)
    const needed = headerBytesOf({ name, tensor }) + byteLength
    let file = this.#files.at(-1)
    if (!file || file.byteLength + needed > this.#options.shardBytes) file = this.#newFile(EMPTY_HEADER_BYTES)
    const range = { file: this.#files.length - 1, offset: 0, byteLength }
    file.values.push({ name, tensor, range })
    file.byteLength += needed
    return range
  }

  /** Orders the tensors of a safetensors file, and writes its header. */
  #layOut(file: DataFile): void {
    if (file.values.length === 0) return
    file.values.sort(compareValues)
    const bytes = safetensorsHeader(file.values)
    file.segments = [{ kind: 'bytes', bytes }]
    file.byteLength = bytes.byteLength
    for (const { tensor, range } of file.values) {
      range.offset = file.byteLength
      file.segments.push({ kind: 'tensor', tensor })
      file.byteLength += range.byteLength
    }
  }

  /**
   * Names the files, which `fieldsOf` requires, and plans them.
   *
   * @throws TileworkError ERR_UNSUPPORTED without a path, ERR_PATH_ESCAPE, ERR_ARGUMENT, ERR_LIMIT, ERR_IO
   */
  async finish(path: string | undefined): Promise<readonly SiblingPlan[]> {
    if (this.#files.length === 0) return []
    if (path === undefined) {
      const message = 'External data is stored in files beside the model; save to a path.'
      throw new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
    }
    for (const file of this.#files) this.#layOut(file)
    const names = await namesForData(path, this.#options, this.#files.length)
    this.#names = names.map(({ name }) => name)
    return this.#files.map(({ segments, byteLength }, at) => ({ ...names[at]!, segments, byteLength }))
  }

  /** The fields of a TensorProto that locate its values. @param others - further properties to write */
  fieldsOf(
    { file, offset, byteLength }: DataRange,
    others: readonly Property[] = [],
  ): readonly WriteSegment[] {
    const head = new WireWriter()
    const put = (key: string, value: string): void => {
      head.message(TENSOR.externalData, new WireWriter().text(PROPERTY.key, key).text(PROPERTY.value, value))
    }
    put('location', this.#names[file]!)
    put('offset', String(offset))
    put('length', String(byteLength))
    for (const { key, value } of others) put(key, value)
    const location = new WireWriter().varint(TENSOR.dataLocation, LOCATION_EXTERNAL).finish()
    const checksum = this.#options.checksum ? this.#checksumOf(file) : []
    return [{ kind: 'bytes', bytes: head.finish() }, ...checksum, { kind: 'bytes', bytes: location }]
  }

  /** The property `checksum`, whose value is computed while the file is written. */
  #checksumOf(file: number): readonly WriteSegment[] {
    const entry = new WireWriter().text(PROPERTY.key, 'checksum').lengthOf(PROPERTY.value, DIGEST_BYTES)
    const head = new WireWriter()
      .lengthOf(TENSOR.externalData, entry.byteLength + DIGEST_BYTES)
      .raw(entry.finish())
    const compute = (signal: AbortSignal | undefined): Promise<Uint8Array> => {
      const data = this.#files[file]!
      data.sha1 ??= sha1Of(data.segments, signal)
      return data.sha1
    }
    return [
      { kind: 'bytes', bytes: head.finish() },
      { kind: 'computed', byteLength: DIGEST_BYTES, compute },
    ]
  }
}

/** The SHA-1 in hexadecimal digits; tensors are read in windows. */
async function sha1Of(
  segments: readonly WriteSegment[],
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const hash = createHash('sha1')
  const window = new Uint8Array(READER_WINDOW_BYTES)
  for (const segment of segments) {
    if (segment.kind === 'bytes') hash.update(segment.bytes)
    if (segment.kind !== 'tensor') continue
    const { byteLength } = segment.tensor.storage
    for (let start = 0; start < byteLength; start += window.byteLength) {
      throwIfAborted(signal)
      const part = window.subarray(0, Math.min(window.byteLength, byteLength - start))
      await segment.tensor.copyTo(part, { start })
      hash.update(part)
    }
  }
  return new Uint8Array(Buffer.from(hash.digest('hex'), 'latin1'))
}
