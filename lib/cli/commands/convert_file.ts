/** The conversion of one open file: select, cast, reorder, write, and say how to come back. */
import type { FormatEntry } from '../../formats/format.js'
import { chooseFormat, formatOfModel } from '../../formats/registry.js'
import {
  type Dtype,
  type Finding,
  type FormatName,
  type OpenFile,
  onDevice,
  reorder,
  type SaveProgress,
  save,
  type Tensor,
  TileworkError,
  type TmfileModel,
} from '../../index.js'
import type { UndoNote } from '../../pipeline/many/manifest_line.js'
import { isPlain } from '../../tensor/plain_storage.js'
import { undoNotes } from '../text/undo_command.js'
import type { ConvertChoice } from './convert_options.js'
import { castAll, reorderAll } from './reorder_tensors.js'
import { selectTensors } from './select_tensors.js'
import { type TensorReport, tensorReport } from './tensor_report.js'

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
  const isStored = await storedIn(file, format, choice)
  const selected = selectTensors(file.tensors, choice.tensor ?? []).filter(isStored)
  const isReordered = choice.layout !== undefined || choice.fromLayout !== undefined
  const reordered = isReordered ? reorderAll(selected, choice, isSelection) : []
  const { dtype } = choice
  const isCast = dtype !== undefined && selected.some((tensor) => tensor.dtype !== dtype)
  // Whoever names tensors wants these out of the model, and no model.
  const staysWhole = !isSelection && format.name === file.format
  const isUnchanged = staysWhole && !isReordered && !isCast
  if (staysWhole && !isReordered && isCast && file.tmfile) {
    return convertModel(file, run, file.tmfile, dtype)
  }
  if (staysWhole && !isUnchanged) refuseToDropGraph(file, run.input)
  const kept = isCast && !isReordered ? castAll(selected, dtype, isSelection) : selected
  const tensors = isReordered
    ? reordered.map(({ after }) => after)
    : kept.map((tensor) => (isUnchanged ? tensor : inKeptLayout(tensor, format)))
  const { device } = choice
  const computed = device === undefined ? tensors : tensors.map((tensor) => computedOn(device, tensor))
  const byteLength = await write(isUnchanged ? file : computed, format.name as FormatName, run)
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

/**
 * Its tensors in another type or layout would not fit the nodes of a model, and without these it is none; over itself it
 * would be lost.
 */
function refuseToDropGraph({ onnx, tmfile }: OpenFile, input: string): void {
  const nodes = onnx?.graph.nodes.length ?? tmfile?.graph.nodes.length ?? 0
  if (nodes === 0) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `${input} is a model of ${nodes} nodes, which its tensors would no longer fit; name them with --tensor to take them out.`,
  )
}

/** A model stays one: its weights are cast where they are, and no activation. */
async function convertModel(
  file: OpenFile,
  run: FileRun,
  model: TmfileModel,
  dtype: Dtype,
): Promise<ConvertReport> {
  if (dtype !== 'float32' && dtype !== 'float16') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${run.input} is a model, whose weights become float32 or float16, not ${dtype}; name them with --tensor to take them out.`,
    )
  }
  model.castWeights(dtype)
  const byteLength = await write(file, file.format, run)
  const { input, output } = run
  const tensors = [...file.tensors].map(tensorReport)
  return { input, output, format: file.format, byteLength, tensors, findings: file.findings, undo: [] }
}

/** Of a model that becomes a file of another format only the weights are meant, unless tensors are named. */
async function storedIn(
  { tmfile: model, format: own }: OpenFile,
  format: FormatEntry,
  { tensor }: ConvertChoice,
): Promise<(tensor: Tensor) => boolean> {
  const weights = model && (await formatOfModel(model)?.load())?.weightsOf(model)
  if (!weights || tensor !== undefined || format.name === own) return () => true
  const names = new Set(weights.map(({ name }) => name))
  return ({ name }) => names.has(name)
}

/** A tensor whose layout the format would forget, though nobody asked for it, is written in row-major order. */
function inKeptLayout(tensor: Tensor, format: FormatEntry): Tensor {
  if (tensor.kind !== 'dense' || isPlain(tensor.storage) || format.keepsLayout?.(tensor.storage))
    return tensor
  return reorder(tensor, 'row_major')
}

/** Other tensors than dense ones are copied. */
function computedOn(device: string, tensor: Tensor): Tensor {
  return tensor.kind === 'dense' ? onDevice(tensor, device) : tensor
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
