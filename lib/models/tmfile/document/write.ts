/** Plans the bytes of a tmfile from a model, edits included. */

import { driveSync } from '../../../bytes/drive.js'
import { checkOneOf } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import type { WritePlan } from '../../../formats/format.js'
import { Report } from '../../../formats/report.js'
import { PagedFile, type ReadTask } from '../../../formats/tmfile/decode/paged_file.js'
import { walkFile } from '../../../formats/tmfile/decode/walk.js'
import type { Chunk, WriteMode } from '../../../formats/tmfile/encode/chunk.js'
import { encodeModel, type OriginalFile } from '../../../formats/tmfile/encode/encode_model.js'
import { serializeInOrder, serializeInPlace } from '../../../formats/tmfile/encode/serialize.js'
import { isConstant } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from '../../../formats/tmfile/schema.js'
import { checkModelFields } from './check_arguments.js'
import type { TmfileModel } from './model.js'
import { originOf } from './origin.js'

export type { WriteMode } from '../../../formats/tmfile/encode/chunk.js'

export interface TmfileWriteOptions {
  /**
   * `exact` (default) keeps every byte that no edit changed. `canonical` writes structs in the order of the reference, and
   * 0 for uninitialised bytes. `upgrade` is canonical and writes older, shorter structs in their current form.
   */
  readonly mode?: WriteMode
}

const MODES: readonly WriteMode[] = ['exact', 'canonical', 'upgrade']

/** For reading the original file again: the limits were applied when it was opened. */
const NO_LIMITS = { tensors: Infinity, headerBytes: Infinity, totalBytes: Infinity }

/**
 * Plans the file of a model in its current state.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_GRAPH and ERR_RANK for a model that cannot be written, ERR_OVERFLOW from
 * 4 GiB on; ERR_FILE_CHANGED, ERR_CLOSED and ERR_IO where the original file can no longer be read
 */
export async function planModel(
  model: TmfileModel,
  { mode = 'exact' }: TmfileWriteOptions = {},
): Promise<WritePlan> {
  checkOneOf(mode, 'mode', MODES)
  checkModelFields(model)
  const origin = originOf(model)
  const report = new Report(FORMAT_NAME, 'lenient', 'throw')
  const file = origin && new PagedFile(origin.source, NO_LIMITS, report)
  const records = origin && (await walkFile(origin.source, NO_LIMITS, report))
  const original: OriginalFile | undefined = origin && records && { origin, records }
  const chunks = encodeModel(model, mode, original)
  const encode = (chunk: Chunk, target: DataView) => encodeChunk(chunk, target, file, mode === 'exact')
  if (original && file && mode === 'exact') {
    const { records, origin } = original
    const inPlace = serializeInPlace(chunks, encode, { records, source: origin.source, file })
    const plan = await file.run(inPlace)
    if (plan) return plan
  }
  checkTensors(model)
  const inOrder = serializeInOrder(chunks, encode)
  return file ? file.run(inOrder) : driveSync(inOrder, noOriginalFile)
}

function noOriginalFile(): never {
  throw new Error('A model without an original file requested bytes of it.')
}

/** Encodes a chunk over its original bytes. */
function* encodeChunk(
  { byteLength, original, encode }: Chunk,
  target: DataView,
  file: PagedFile | undefined,
  keepsAllBytes: boolean,
): ReadTask<void> {
  const originalBytes =
    original && file ? yield* file.read(original.offset, original.byteLength) : NO_ORIGINAL_BYTES
  if (keepsAllBytes && originalBytes.byteLength === byteLength) {
    new Uint8Array(target.buffer, target.byteOffset, byteLength).set(
      new Uint8Array(originalBytes.buffer, originalBytes.byteOffset, byteLength),
    )
  }
  encode?.(target, originalBytes)
}

const NO_ORIGINAL_BYTES = new DataView(new ArrayBuffer(0))

/** Rules that hold for a tensor as a whole, not for one of its fields. */
function checkTensors({ graph }: TmfileModel): void {
  for (const [index, tensor] of graph.tensors.entries()) {
    const path = `tensors[${index}]`
    const rank = tensor.shape?.length ?? 0
    if (rank > RUNTIME_LIMITS.dims) {
      const message = `${path} "${tensor.name ?? ''}" has rank ${rank}; a tmfile holds at most ${RUNTIME_LIMITS.dims} dimensions.`
      throw new TileworkError('ERR_RANK', message, { format: FORMAT_NAME, path })
    }
    if (isConstant(tensor) && !tensor.buffer) {
      const message = `${path} is a constant without a buffer.`
      throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME, path })
    }
  }
}
