/**
 * Plans an npz archive of stored members in list order. Local headers contain size and checksum, because some readers stream the
 * file; so each tensor is read once for its checksum just before it is written. Dates are fixed, so the same tensors give the
 * same bytes.
 */

import { crc32 } from 'node:zlib'
import { bufferWithinBudget } from '../../../bytes/memory_budget.js'
import { throwIfAborted } from '../../../cancel.js'
import { TileworkError } from '../../../errors.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import { asStored } from '../../../tensor/dense.js'
import { isWellFormed } from '../../../utf8.js'
import { valueText } from '../../../value_text.js'
import type { TensorSequence, WritePlan, WriteSegment } from '../../format.js'
import { quote } from '../../quote.js'
import { uniqueNames } from '../../write_checks.js'
import { contentOf, type NpyContent, numbersContentOf } from '../content.js'
import { heldBetweenReads } from '../held_tensor.js'
import { FORMAT_NAME, MEMBER_ENDING } from './npz_schema.js'
import {
  directoryEntry,
  directoryEntryBytes,
  endRecords,
  localHeader,
  localHeaderBytes,
  type StoredMember,
  storedMember,
} from './zip_print.js'

export interface NpzWriteOptions {
  /**
   * `auto` (default) writes ZIP's 64-bit fields where sizes, offsets or the number of members need them; `always` writes
   * them everywhere, as numpy does in local headers.
   */
  readonly zip64?: 'auto' | 'always'
}

/** Bytes per read for a checksum. */
const CHECKSUM_WINDOW_BYTES = 2 * 1024 * 1024

/** ZIP stores name lengths in 16 bits. */
const MAX_NAME_BYTES = 0xffff

/** Directory entries that are encoded together. */
const ENTRIES_PER_SEGMENT = 1000

/**
 * Plans an archive with a member NAME.npy for each tensor; tensors without a name get numpy's names.
 *
 * @throws TileworkError ERR_UNSUPPORTED for invalid member names and for dtypes that numpy lacks, ERR_DUPLICATE for two
 * tensors of one name, ERR_NO_DATA, ERR_ARGUMENT
 */
export async function plan(tensors: TensorSequence, options: NpzWriteOptions = {}): Promise<WritePlan> {
  const { zip64 = 'auto' } = options
  if (zip64 !== 'auto' && zip64 !== 'always') {
    throw new TileworkError('ERR_ARGUMENT', `zip64 is ${valueText(zip64)}; it must be "auto" or "always".`)
  }
  const members = new PlannedMembers(tensors, memberNames(tensors), zip64 === 'always')
  const byteLength = await members.measure()
  return { byteLength, segments: { [Symbol.iterator]: () => members.segments() } }
}

/** The members of an archive, of which only numbers and names are kept: a million plans would need more memory than the file. */
class PlannedMembers {
  readonly #tensors: TensorSequence
  readonly #names: readonly string[]
  readonly #forcesZip64: boolean
  readonly #byteLengths: Float64Array
  readonly #offsets: Float64Array
  /** String tensors that were encoded already, because their length was needed. */
  readonly #strings = new Map<number, NpyContent>()
  #directoryStart = 0
  #directoryBytes = 0

  constructor(tensors: TensorSequence, names: readonly string[], forcesZip64: boolean) {
    this.#tensors = tensors
    this.#names = names
    this.#forcesZip64 = forcesZip64
    this.#byteLengths = new Float64Array(names.length)
    this.#offsets = new Float64Array(names.length)
  }

  /** Computes the offsets of the members. @returns the length of the archive */
  async measure(): Promise<number> {
    let position = 0
    for (let index = 0; index < this.#names.length; index++) {
      const tensor = this.#tensors.at(index)!
      const content = await contentOf(tensor, index, FORMAT_NAME)
      if (tensor.kind === 'string') this.#strings.set(index, content)
      this.#byteLengths[index] = content.byteLength
      this.#offsets[index] = position
      const member = this.#member(index)
      position += localHeaderBytes(member) + content.byteLength
      this.#directoryBytes += directoryEntryBytes(member)
    }
    this.#directoryStart = position
    return position + this.#directoryBytes + this.#endRecords().byteLength
  }

  *segments(): Generator<WriteSegment> {
    const count = this.#names.length
    const crcs = new Uint32Array(count)
    const running = new Set<Promise<number>>()
    for (let index = 0; index < count; index++) {
      const content = this.#content(index)
      const member = this.#member(index)
      const compute = async (signal: AbortSignal | undefined): Promise<Uint8Array> => {
        const crc = checksumOf(content, signal)
        running.add(crc)
        try {
          crcs[index] = await crc
        } finally {
          running.delete(crc)
        }
        return localHeader(member, crcs[index]!)
      }
      yield { kind: 'computed', byteLength: localHeaderBytes(member), compute }
      yield { kind: 'bytes', bytes: content.header }
      if (content.data) yield content.data
    }
    for (let start = 0; start < count; start += ENTRIES_PER_SEGMENT) {
      const members = Array.from({ length: Math.min(ENTRIES_PER_SEGMENT, count - start) }, (_, at) =>
        this.#member(start + at),
      )
      // Waits for the checksums that are still being computed.
      const compute = async (): Promise<Uint8Array> => {
        await Promise.all(running)
        return Buffer.concat(members.map((member, at) => directoryEntry(member, crcs[start + at]!)))
      }
      const byteLength = members.reduce((sum, member) => sum + directoryEntryBytes(member), 0)
      yield { kind: 'computed', byteLength, compute }
    }
    yield { kind: 'bytes', bytes: this.#endRecords() }
  }

  #content(index: number): NpyContent {
    const strings = this.#strings.get(index)
    if (strings) return strings
    const tensor = heldBetweenReads(this.#tensors.at(index)!)
    const content = tensor.kind === 'string' ? undefined : numbersContentOf(tensor, index, FORMAT_NAME)
    if (content?.byteLength === this.#byteLengths[index]) return content!
    // A caller's own tensor may change at any time, but the offsets of the following members are fixed.
    const message = `Tensor ${index} ("${tensor.name}") changed its type or shape while it was saved.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }

  #member(index: number): StoredMember {
    return storedMember(
      new TextEncoder().encode(`${this.#names[index]!}${MEMBER_ENDING}`),
      this.#byteLengths[index]!,
      this.#offsets[index]!,
      this.#forcesZip64,
    )
  }

  #endRecords(): Uint8Array {
    return endRecords(this.#names.length, this.#directoryBytes, this.#directoryStart, this.#forcesZip64)
  }
}

async function checksumOf({ header, data }: NpyContent, signal: AbortSignal | undefined): Promise<number> {
  const crc = crc32(header)
  if (data?.kind === 'bytes') return crc32(data.bytes, crc)
  return data?.kind === 'tensor' ? checksumOfTensor(data, crc, signal) : crc
}

async function checksumOfTensor(
  { tensor }: Extract<WriteSegment, { kind: 'tensor' }>,
  start: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { byteLength } = tensor.storage
  // One source for all windows, so that a caller's tensor is adapted once.
  const { source, start: base } = asStored(tensor)
  let crc = start
  const window = bufferWithinBudget(CHECKSUM_WINDOW_BYTES)
  for (let at = 0; at < byteLength; at += window) {
    throwIfAborted(signal)
    crc = crc32(await source.read(base + at, base + Math.min(byteLength, at + window)), crc)
  }
  return crc
}

/** numpy names arrays without a name `arr_0`, `arr_1`, … */
const MADE_NAME = 'arr_'

function memberNames(tensors: TensorSequence): string[] {
  const seen = new Set<string>()
  const given = Array.from(tensors, (tensor) => checkTensor(tensor, `An ${FORMAT_NAME} file`).name)
  const names = uniqueNames(given, MADE_NAME)
  for (const [index, name] of names.entries()) {
    const what = `Tensor ${index} has the name ${quote(name)}`
    if (seen.has(name)) {
      throw new TileworkError('ERR_DUPLICATE', `${what}, which another tensor has.`, { format: FORMAT_NAME })
    }
    seen.add(name)
    const fault = nameFault(name)
    if (fault === undefined) continue
    throw new TileworkError('ERR_UNSUPPORTED', `${what}, which ${fault}.`, { format: FORMAT_NAME })
  }
  return names
}

/**
 * Why a name cannot be a member name: it could not be read back, or a tool would unpack it outside its folder. Names are no paths
 * otherwise: numpy takes `/model.10/Conv_output_0` of an ONNX model, too, and tools that unpack remove the first `/`.
 */
function nameFault(name: string): string | undefined {
  if (!isWellFormed(name)) return 'is not valid Unicode'
  if (name.includes('\0')) return 'contains NUL'
  if (name.split(/[/\\]/).includes('..')) return 'leads out of the target folder'
  if (Buffer.byteLength(name) + MEMBER_ENDING.length > MAX_NAME_BYTES) return 'is too long for a member name'
  return undefined
}
