/**
 * Plans an npz archive of stored members in list order. Local headers hold size and checksum before the data, because
 * readers in other languages stream the file; so each tensor is read once for its checksum just before it is written.
 * Dates are fixed, so the same tensors give the same bytes.
 */

import { crc32 } from 'node:zlib'
import { bufferWithinBudget } from '../../../bytes/memory_budget.js'
import { throwIfAborted } from '../../../cancel.js'
import { TileworkError } from '../../../errors.js'
import { checkTensor } from '../../../tensor/check_tensor.js'
import { asStored } from '../../../tensor/dense.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { isWellFormed } from '../../../utf8.js'
import type { TensorSequence, WritePlan, WriteSegment } from '../../format.js'
import { uniqueNames } from '../../write_checks.js'
import { contentOf, type NpyContent } from '../content.js'
import { heldBetweenReads } from '../held_tensor.js'
import { quote } from '../literal.js'
import { directoryOf, localHeader, type PlannedMember, paddingBefore } from './zip_print.js'
import { FORMAT_NAME, MEMBER_ENDING } from './zip_schema.js'

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

/**
 * Plans an archive with a member NAME.npy for each tensor; tensors without a name get numpy's names.
 *
 * @throws TileworkError ERR_UNSUPPORTED for invalid member names and for element types that numpy lacks,
 * ERR_DUPLICATE for two tensors of one name, ERR_NO_DATA, ERR_ARGUMENT
 */
export async function plan(given: TensorSequence, options: NpzWriteOptions = {}): Promise<WritePlan> {
  const tensors = [...given]
  const { zip64 = 'auto' } = options
  if (zip64 !== 'auto' && zip64 !== 'always') {
    throw new TileworkError('ERR_ARGUMENT', `zip64 must be "auto" or "always"; it is ${String(zip64)}.`)
  }
  const names = memberNames(tensors)
  const members: PlannedMember[] = []
  const segments: WriteSegment[] = []
  let position = 0
  for (const [index, tensor] of tensors.entries()) {
    const content = await contentOf(heldBetweenReads(tensor), index, FORMAT_NAME)
    const member = planMember(names[index]!, content, position, zip64 === 'always')
    const header = localHeader(member, 0)
    segments.push(
      {
        kind: 'computed',
        byteLength: header.byteLength,
        compute: async (signal) => localHeader(member, await member.crc(signal)),
      },
      { kind: 'bytes', bytes: content.header },
      ...(content.data ? [content.data] : []),
    )
    members.push(member)
    position += header.byteLength + content.byteLength
  }
  const compute = async (signal: AbortSignal | undefined): Promise<Uint8Array> => {
    const crcs: number[] = []
    for (const member of members) crcs.push(await member.crc(signal))
    return directoryOf(members, crcs, position, zip64 === 'always')
  }
  const { byteLength } = directoryOf(
    members,
    members.map(() => 0),
    position,
    zip64 === 'always',
  )
  segments.push({ kind: 'computed', byteLength, compute })
  return { byteLength: position + byteLength, segments }
}

function planMember(
  name: Uint8Array,
  content: NpyContent,
  offset: number,
  forcesZip64: boolean,
): PlannedMember {
  let crc: Promise<number> | undefined
  const member = {
    name,
    byteLength: content.byteLength,
    offset,
    forcesZip64,
    // Cached for the directory, which may ask while the header's checksum is still computed. A failure is not cached.
    crc: (signal: AbortSignal | undefined) => {
      crc ??= checksumOf(content, signal).catch((error) => {
        crc = undefined
        throw error
      })
      return crc
    },
  }
  return { ...member, padding: paddingBefore(member) }
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

function memberNames(tensors: readonly Tensor[]): Uint8Array[] {
  const seen = new Set<string>()
  const named = tensors.map((tensor) => checkTensor(tensor, `An ${FORMAT_NAME} file`))
  return uniqueNames(
    named.map(({ name }) => name),
    MADE_NAME,
  ).map((name, index) => {
    const what = `Tensor ${index} has the name ${quote(name)}`
    if (seen.has(name)) {
      throw new TileworkError('ERR_DUPLICATE', `${what}, which another tensor has.`, { format: FORMAT_NAME })
    }
    seen.add(name)
    const fault = nameFault(name)
    if (fault === undefined) return new TextEncoder().encode(`${name}${MEMBER_ENDING}`)
    throw new TileworkError('ERR_UNSUPPORTED', `${what}, which ${fault}.`, { format: FORMAT_NAME })
  })
}

/** Why a name cannot be a member name: it could not be read back, or would be unpacked outside the folder. */
function nameFault(name: string): string | undefined {
  if (!isWellFormed(name)) return 'is not valid Unicode'
  if (name.includes('\0')) return 'contains NUL'
  if (name.startsWith('/') || name.includes('\\')) return 'is not a relative path'
  if (name.split('/').includes('..')) return 'leads out of the target folder'
  if (Buffer.byteLength(name) + MEMBER_ENDING.length > MAX_NAME_BYTES) return 'is too long for a member name'
  return undefined
}
