/** The conversion of one open file: select, cast, reorder, write, and say how to come back. */
import type { Format } from '../formats/format.js'
import { chooseFormat, formatByName } from '../formats/registry.js'
import {
  type Finding,
  type FormatName,
  type OpenFile,
  reorder,
  type SaveProgress,
  save,
  type Tensor,
} from '../index.js'
import type { UndoNote } from '../pipeline/many/manifest_line.js'
import { isPlain } from '../tensor/plain_storage.js'
import type { ConvertChoice } from './convert_options.js'
import { castAll, reorderAll } from './reorder_tensors.js'
import { selectTensors } from './select_tensors.js'
import { type TensorReport, tensorReport } from './tensor_report.js'
import { undoNotes } from './undo_command.js'

export interface ConvertReport {
  readonly input: string
  readonly output: string
  readonly format: string
  /** Length of the output. */
  readonly byteLength: number
  readonly tensors: readonly TensorReport[]
  /** What the lenient read of the input noticed. */
  readonly findings: readonly Finding[]
  /** One for each tensor that is not in row-major order. */
  readonly undo: readonly UndoNote[]
}

export interface FileRun {
  readonly input: string
  readonly output: string
  readonly signal: AbortSignal
  readonly onProgress: (progress: SaveProgress) => void
}

/** Writes `run.output`. Errors: those of `save`, and of options that do not fit the tensors. */
export async function convertFile(
  file: OpenFile,
  run: FileRun,
  choice: ConvertChoice,
): Promise<ConvertReport> {
  const { input, output } = run
  const isSelection = choice.tensor !== undefined
  const format = chooseFormat(choice.format, output, file.format)
  const selected = selectTensors(file.tensors, choice.tensor ?? []).filter(storedIn(file, format, choice))
  const isReordered = choice.layout !== undefined || choice.fromLayout !== undefined
  const reordered = isReordered ? reorderAll(selected, choice, isSelection) : []
  const { dtype } = choice
  const isCast = dtype !== undefined && selected.some((tensor) => tensor.dtype !== dtype)
  const isUnchanged = !isReordered && !isCast && !isSelection && format.name === file.format
  const kept = isCast && !isReordered ? castAll(selected, dtype, isSelection) : selected
  const tensors = isReordered
    ? reordered.map(({ after }) => after)
    : kept.map((tensor) => (isUnchanged ? tensor : inKeptLayout(tensor, format)))
  const byteLength = await write(isUnchanged ? file : tensors, format.name as FormatName, run)
  return {
    input,
    output,
    format: format.name,
    byteLength,
    tensors: tensors.map(tensorReport),
    findings: file.findings,
    undo: undoNotes({ path: output, format }, reordered, choice.as),
  }
}

/** Of a model that becomes a file of another format only the weights are meant, unless tensors are named. */
function storedIn(
  { tmfile: model, format: own }: OpenFile,
  format: Format<unknown>,
  { tensor }: ConvertChoice,
): (tensor: Tensor) => boolean {
  const weights = model && formatByName(own).weightsOf?.(model)
  if (!weights || tensor !== undefined || format.name === own) return () => true
  const names = new Set(weights.map(({ name }) => name))
  return ({ name }) => names.has(name)
}

/** A tensor whose layout the format would forget, though nobody asked for it, is written in row-major order. */
function inKeptLayout(tensor: Tensor, format: Format<unknown>): Tensor {
  if (tensor.kind !== 'dense' || isPlain(tensor.storage) || format.keepsLayout?.(tensor.storage))
    return tensor
  return reorder(tensor, 'row_major')
}

/** Bytes of the file that was written. */
async function write(
  content: OpenFile | readonly Tensor[],
  format: FormatName,
  { output, signal, onProgress }: FileRun,
): Promise<number> {
  let byteLength = 0
  await save(output, content, {
    format,
    signal,
    onProgress: (progress) => {
      byteLength = progress.bytesTotal
      onProgress(progress)
    },
  })
  return byteLength
}
