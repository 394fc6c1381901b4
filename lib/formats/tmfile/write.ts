/** Plans a tmfile: from an open or built model with its edits, or from loose tensors as constants. */
import { driveSync } from '../../bytes/drive.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import type { WritePlan } from '../format.js'
import { Report } from '../report.js'
import { FileBytes, type Reading } from './decode/file_bytes.js'
import { walkFile } from './decode/walk.js'
import type { Piece, WriteMode } from './encode/chunk.js'
import { layOutModel, type Previous } from './encode/encode_model.js'
import { placeAsBefore, placeInOrder } from './encode/serialize.js'
import { isConstant } from './enums.js'
import { checkModelFields } from './model/check_arguments.js'
import type { TmfileModel } from './model/model.js'
import { originOf } from './model/origin.js'
import { FORMAT_NAME, RUNTIME_LIMITS } from './schema.js'

export type { WriteMode } from './encode/chunk.js'

export interface TmfileWriteOptions {
  /**
   * `exact` (default) keeps every byte that no edit touched; `canonical` writes parts in the order of the reference and
   * 0 where nobody set anything; `upgrade` does so and writes old, shorter structs in their current form.
   */
  readonly mode?: WriteMode
}

const MODES: readonly WriteMode[] = ['exact', 'canonical', 'upgrade']

/** What reads everything: the file was read before, and what it may cost was decided then. */
const NO_LIMITS = { tensors: Infinity, headerBytes: Infinity, totalBytes: Infinity }

/**
 * Plans the file of a model as it is now.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_GRAPH and ERR_RANK for a model that cannot be written, ERR_OVERFLOW from
 * 4 GiB on; ERR_FILE_CHANGED, ERR_CLOSED and ERR_IO where the file it came from cannot be read any more
 */
export async function planModel(
  model: TmfileModel,
  { mode = 'exact' }: TmfileWriteOptions = {},
): Promise<WritePlan> {
  if (!MODES.includes(mode)) {
    const message = `mode must be ${MODES.join(', ')}; it is ${valueText(mode)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  checkModelFields(model)
  const origin = originOf(model)
  const report = new Report(FORMAT_NAME, 'lenient', 'throw')
  const file = origin && new FileBytes(origin.source, NO_LIMITS, report)
  const records = origin && (await walkFile(origin.source, NO_LIMITS, report))
  const previous: Previous | undefined = origin && records && { origin, records }
  const pieces = layOutModel(model, mode, previous)
  const encode = (piece: Piece, target: DataView) => encodePiece(piece, target, file, mode === 'exact')
  if (previous && file && mode === 'exact') {
    const before = placeAsBefore(pieces, encode, { records: previous.records, source: origin!.source, file })
    const placed = await file.run(before)
    if (placed) return placed
  }
  checkModel(model)
  const placed = placeInOrder(pieces, encode)
  return file ? file.run(placed) : driveSync(placed, noFile)
}

function noFile(): never {
  throw new Error('A model without a file asked for bytes of one.')
}

/** Writes a part, from the bytes it had where it comes from. */
function* encodePiece(
  { byteLength, base, fill }: Piece,
  target: DataView,
  file: FileBytes | undefined,
  keepsAll: boolean,
): Reading<void> {
  const old = base && file ? yield* file.read(base.at, base.byteLength) : NO_BASE
  if (keepsAll && old.byteLength === byteLength) {
    new Uint8Array(target.buffer, target.byteOffset, byteLength).set(
      new Uint8Array(old.buffer, old.byteOffset, byteLength),
    )
  }
  fill?.(target, old)
}

const NO_BASE = new DataView(new ArrayBuffer(0))

/** What no field could refuse. */
function checkModel({ graph }: TmfileModel): void {
  for (const [index, tensor] of graph.tensors.entries()) {
    const path = `tensors[${index}]`
    const rank = tensor.shape?.length ?? 0
    if (rank > RUNTIME_LIMITS.dims) {
      const message = `${path} "${tensor.name ?? ''}" has ${rank} axes; a tmfile has at most ${RUNTIME_LIMITS.dims}.`
      throw new TileworkError('ERR_RANK', message, { format: FORMAT_NAME, path })
    }
    if (isConstant(tensor) && !tensor.buffer) {
      throw new TileworkError('ERR_GRAPH', `${path} is a constant without a buffer.`, {
        format: FORMAT_NAME,
        path,
      })
    }
  }
}
