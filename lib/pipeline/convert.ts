/** Converts one file: selects tensors, changes their dtype and layout, and writes them in any format. */
import type { Writable } from 'node:stream'
import type { TmfileToOnnxReport } from '../bridges/onnx_tmfile/to_onnx/index.js'
import type { OnnxToTmfileReport } from '../bridges/onnx_tmfile/to_tmfile/index.js'
import { checkFlags, checkListener, checkOptions, readInput } from '../caller_input.js'
import { throwIfAborted } from '../cancel.js'
import { checkDeadline, withDeadline } from '../deadline.js'
import { findDevice } from '../device/devices.js'
import { type BlockDtype, isBlockDtype, resolveElementType } from '../dtype/block_types.js'
import type { Dtype, DtypeName } from '../dtype/dtypes.js'
import { aboutFile, type Finding, TileworkError } from '../errors.js'
import type { FormatEntry } from '../formats/format.js'
import { mapTensors, type Tensors } from '../formats/tensor_list.js'
import type { OnnxModel } from '../models/onnx/index.js'
import type { TmfileModel } from '../models/tmfile/index.js'
import { dequantized, withoutBlocks } from '../tensor/block_tensor.js'
import { type CastLosses, castLosses, mayLoseMany } from '../tensor/cast_losses.js'
import { explain, type TensorExplanation } from '../tensor/explain.js'
import { isPlain } from '../tensor/plain_storage.js'
import { reorder } from '../tensor/reorder.js'
import type { AnyTensor } from '../tensor/tensor.js'
import {
  changeElementTypes,
  changesElements,
  changesLayout,
  checkTensorChanges,
  computeOnDevice,
  keepsInteger,
  reorderTensors,
  type TensorChanges,
} from './change_tensors.js'
import { convertGraph, type GraphOptions, hasBridge, refuseGraphOptions } from './convert_graph.js'
import { type Input, type OpenFile, type OpenOptions, open, openedFile, pathOf, remoteUrlOf } from './open.js'
import { checkValueQuantization, quantizeTensors, type ValueQuantization } from './quantize_tensors.js'
import {
  checkTarget,
  chooseFormat,
  type FormatName,
  formatByName,
  formatOfModel,
  writeOptionNames,
} from './registry.js'
import {
  checkMaxOutputBytes,
  FILE_FLAGS,
  type Saveable,
  type SaveOptions,
  SERIALIZE_NAMES,
  save,
  saveOptionNames,
} from './save.js'
import { selectTensors } from './select_tensors.js'
import { summarizeTensors, type TensorSummary } from './tensor_summary.js'
import { type UndoConversion, undoConversions } from './undo.js'

/**
 * Options of a conversion: the changes of tensors, the options of `save` for the output (`format` is the format to write), and
 * under `open` the options for the input.
 */
export type ConvertOptions = TensorChanges &
  SaveOptions &
  GraphOptions & {
    readonly open?: OpenOptions
    /** Writes the weights of a model without its graph, even in the format of the model. */
    readonly weightsOnly?: boolean
    /**
     * Quantizes float tensors with scales computed from their values. Scales and zero points become the tensors `<name>_scale`
     * and `<name>_zero_point`. Scalars and vectors are not quantized unless `tensors` names them. Cannot be combined with
     * `dtype`, `quantize` and layouts.
     */
    readonly quantizeTo?: ValueQuantization
    /** Counts the values that a cast to `dtype` destroys. Large tensors are counted only where samples show losses. */
    readonly countLosses?: boolean
    /**
     * Milliseconds for the whole conversion: reading the input, computing and writing the output; after that ERR_LIMIT, and the target
     * is unchanged. In a run over many files for each file. Default: none.
     */
    readonly deadline?: number
    /** Reports how each tensor was computed, see `explain`; not for a model that keeps its graph. */
    readonly explain?: boolean
  }

/** The target of a conversion. */
export type Output = string | URL | WritableStream<Uint8Array> | Writable

export interface ConvertResult {
  /** Format of the output. */
  readonly format: FormatName
  /** Length of the output in bytes, including the files beside it. */
  readonly byteLength: number
  /** The tensors as they were written. */
  readonly tensors: readonly TensorSummary[]
  /** Findings of the lenient read of the input. */
  readonly findings: readonly Finding[]
  /** One conversion for each tensor that was not written in row-major order. */
  readonly undo: readonly UndoConversion[]
  /** Number of graph nodes of the input that were dropped because the output has no graph. */
  readonly droppedNodes: number
  /**
   * With `countLosses`: the tensors that became all zeros, of which more than 1 % of the values were saturated, or of whose integers
   * some were rounded.
   */
  readonly losses: readonly TensorLosses[]
  /** With `explain`: what computed each dense tensor. */
  readonly explanations?: readonly ExplainedTensor[]
  /** For a graph that was converted to another format: what was folded, fused and replaced. */
  readonly graph?: OnnxToTmfileReport | TmfileToOnnxReport
}

/** What computed a tensor. */
export interface ExplainedTensor extends TensorExplanation {
  readonly name: string
}

/** The values of a tensor that a cast destroyed. */
export interface TensorLosses extends CastLosses {
  readonly name: string
  /** The dtype that was written. */
  readonly dtype: Dtype
}

/** Share of saturated values above which a cast counts as destructive; trained models have fewer outliers. */
const DESTRUCTIVE_SHARE = 0.01

const TENSOR_OPTIONS = {
  tensors: true,
  dtype: true,
  keepIntegers: true,
  quantize: true,
  layout: true,
  lower: true,
  upper: true,
  fromLayout: true,
  shape: true,
  fromLower: true,
  fromUpper: true,
  as: true,
  device: true,
} as const satisfies Record<keyof TensorChanges, true>

/** Names of all options of a conversion. */
export function convertOptionNames(): string[] {
  const own = [
    ...SERIALIZE_NAMES,
    ...saveOptionNames(),
    'open',
    'weightsOnly',
    'quantizeTo',
    'countLosses',
    'deadline',
    'explain',
    'inputShapes',
    'batch',
    'quantized',
  ]
  return [...Object.keys(TENSOR_OPTIONS), ...own, ...writeOptionNames()]
}

/**
 * Converts a file in bounded memory: its tensors are read, cast, reordered and written chunk by chunk.
 *
 * Without options that change tensors the file is copied byte for byte, or written in another format. The output may be
 * the input: a path is replaced when every byte of the new file is on disk.
 *
 * @param input - anything that `open` takes, or an open file, which stays open; a change of the dtype of a whole tmfile
 * changes the model of such an open file
 * @returns what was written, and the conversions that undo it
 * @throws TileworkError as `open`, `cast`, `reorder`, `quantize` and `save`; ERR_UNSUPPORTED where tensors would no longer
 * fit the graph of the model
 */
export async function convert(
  input: Input | OpenFile,
  output: Output,
  given: ConvertOptions = {},
): Promise<ConvertResult> {
  const options = readConvertOptions(given, 'convert', convertOptionNames())
  throwIfAborted(options.signal)
  if (openedFile(input)) return convertFile(input as OpenFile, output, options)
  checkTarget(options.format, pathOf(output), pathOf(input))
  return withinDeadline(options, async (limited) => {
    const file = await open(input as Input, remoteUrlOf(input) ? withSignal(limited) : limited.open)
    try {
      return await convertFile(file, output, limited)
    } catch (error) {
      throw aboutFile(error, pathOf(input))
    } finally {
      file.close()
    }
  })
}

/** Runs a conversion with options whose signal fires at its deadline too. */
function withinDeadline<T>(
  { deadline, ...options }: ConvertOptions,
  job: (options: ConvertOptions) => Promise<T>,
): Promise<T> {
  return withDeadline({ deadline, signal: options.signal, what: 'The conversion' }, (signal) =>
    job(signal ? { ...options, signal } : options),
  )
}

/** The options of a remote input, whose requests end with the conversion. */
function withSignal({ open: options, signal }: ConvertOptions): OpenOptions | undefined {
  if (!signal) return options
  const own = options?.remote?.signal
  const both = own ? AbortSignal.any([own, signal]) : signal
  return { ...options, remote: { ...options?.remote, signal: both } }
}

/**
 * A copy of the options, read once, with everything checked that does not depend on a file.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_LAYOUT_NAME, ERR_NO_DEVICE
 */
export function readConvertOptions<Options extends ConvertOptions>(
  given: Options,
  call: string,
  known: readonly string[],
): Options {
  checkOptions(given as Record<string, unknown>, call, known)
  const options = readInput(`The options of ${call}`, () => ({ ...given }))
  checkListener(options.onProgress, 'onProgress')
  readInput('The tensor options', () => checkTensorChanges(options))
  if (options.format !== undefined) formatByName(options.format)
  checkFlags(options, ['weightsOnly', 'countLosses', ...FILE_FLAGS])
  checkMaxOutputBytes(options)
  checkDeadline('deadline', options.deadline)
  if (options.quantizeTo !== undefined) {
    readInput('quantizeTo', () => checkValueQuantization(options.quantizeTo!))
    const other = (['dtype', 'quantize', 'layout', 'fromLayout'] as const).find(
      (name) => options[name] !== undefined,
    )
    if (other !== undefined) {
      throw new TileworkError('ERR_ARGUMENT', `quantizeTo and ${other} cannot be combined; convert twice.`)
    }
  }
  if (options.device !== undefined) findDevice(options.device)
  return options
}

/**
 * Checks what `convert` checks before it opens the input: the options, and whether the output's extension is known.
 *
 * @param input - not opened; the output may have its extension
 * @throws TileworkError ERR_ARGUMENT, ERR_DTYPE, ERR_LAYOUT_NAME, ERR_NO_DEVICE
 */
export function checkConvertOptions(
  input: Input | OpenFile,
  output: Output,
  options: ConvertOptions = {},
): void {
  const { format } = readConvertOptions(options, 'checkConvertOptions', convertOptionNames())
  checkTarget(format, pathOf(output), pathOf(input))
}

/** Converts an open file. The options are checked. */
export async function convertFile(
  file: OpenFile,
  output: Output,
  options: ConvertOptions,
): Promise<ConvertResult> {
  try {
    return await withinDeadline(options, (limited) => convertOpen(file, output, limited))
  } catch (error) {
    throw withFinding(error, file)
  }
}

/** Adds the reason why a tensor has no data, such as a missing data file, which is a finding of the input. */
function withFinding(error: unknown, { findings }: OpenFile): unknown {
  if (!(error instanceof TileworkError) || error.code !== 'ERR_NO_DATA') return error
  const reason = findings.find(({ code }) => code === 'ERR_IO')
  if (!reason) return error
  const { code, format, path, offset } = error
  const place = { ...(format && { format }), ...(path && { path }), ...(offset !== undefined && { offset }) }
  return new TileworkError(code, `${error.message} ${reason.message}`, { ...place, cause: error })
}

async function convertOpen(file: OpenFile, output: Output, options: ConvertOptions): Promise<ConvertResult> {
  const path = pathOf(output)
  const format = chooseFormat(options.format, path, {
    format: file.format,
    path: openedFile(file)?.source.label,
  })
  // Selecting tensors drops the graph.
  const isPart = options.tensors !== undefined || options.weightsOnly === true
  if (!isPart && hasBridge(file, format.name)) {
    return convertToModel(file, output, options, format.name as FormatName)
  }
  refuseGraphOptions(options)
  refuseBlocks(format, options)
  const selected = await selectedTensors(file, format, options)
  const staysWhole = !isPart && format.name === file.format
  const isReordered = changesLayout(options)
  const isRetyped = options.quantizeTo !== undefined || changesElements(selected, options)
  if (staysWhole && isRetyped && !isReordered && !options.quantize && !options.quantizeTo && file.tmfile) {
    return convertModel(file, file.tmfile, output, options)
  }
  if (
    staysWhole &&
    isRetyped &&
    !isReordered &&
    !options.quantize &&
    file.onnx &&
    isModelFloat(options.dtype)
  ) {
    return convertOnnx(file, file.onnx, output, options, options.dtype)
  }
  const isUnchanged = staysWhole && !isReordered && !isRetyped
  if (staysWhole && !isUnchanged) refuseToDropGraph(file)
  const losses = isUnchanged ? [] : await countLosses(selected, options)
  const tensors = isUnchanged
    ? selected
    : isReordered
      ? reorderTensors(selected, options)
      : mapTensors(await changedElements(selected, format, options), (tensor) =>
          inWritableLayout(tensor, format, file.format),
        )
  const computed = isUnchanged ? [] : mapTensors(tensors, (tensor) => computeOnDevice(tensor, options))
  const writeOptions = isUnchanged ? options : withMetadata(file, format, options)
  const byteLength = await write(
    output,
    isUnchanged ? file : computed,
    format.name as FormatName,
    writeOptions,
  )
  return {
    format: format.name as FormatName,
    byteLength,
    tensors: summarizeTensors(tensors),
    findings: file.findings,
    undo: isReordered ? undoConversions({ path, format }, selected, options) : [],
    droppedNodes: isUnchanged ? 0 : nodesOf(file),
    losses,
    ...(options.explain && { explanations: explanationsOf(computed) }),
  }
}

function explanationsOf(tensors: Iterable<AnyTensor>): ExplainedTensor[] {
  return [...tensors].flatMap((tensor) =>
    tensor.kind === 'dense' ? [{ name: tensor.name, ...explain(tensor) }] : [],
  )
}

/** Blocks are for formats that keep them: in others their numbers would be as large as before. */
function refuseBlocks({ name, keepsBlocks }: FormatEntry, { dtype }: ConvertOptions): void {
  if (keepsBlocks || dtype === undefined || !isBlockDtype(resolveElementType(dtype))) return
  const message = `${name} has no blocks; ${dtype} is for GGUF files.`
  throw new TileworkError('ERR_UNSUPPORTED', message, { format: name })
}

/** Changed tensors of a GGUF file keep its metadata. */
function withMetadata({ gguf }: OpenFile, { name }: FormatEntry, options: ConvertOptions): ConvertOptions {
  if (!gguf || name !== 'gguf') return options
  return { ...options, gguf: { metadata: gguf.wholeMetadata(), ...options.gguf } }
}

/** The selected tensors of a file, or the list of all. */
type Selected = Tensors

/** The tensors to write: those that are named; otherwise, for a model in another format, its weights. */
async function selectedTensors(
  file: OpenFile,
  format: FormatEntry,
  { tensors, weightsOnly }: ConvertOptions,
): Promise<Selected> {
  if (tensors !== undefined) return selectTensors(file.tensors, tensors)
  const all = file.tensors
  const model = format.name === file.format && !weightsOnly ? undefined : file.tmfile
  const weights = model && (await formatOfModel(model)?.load())?.weightsOf(model)
  if (!weights) return all
  const names = new Set(Array.from(weights, ({ name }) => name))
  return [...all].filter(({ name }) => names.has(name))
}

/**
 * Refuses to write changed tensors of a model as plain tensors: they no longer fit its graph, and if the output is the input, the
 * graph would be lost.
 */
function refuseToDropGraph(file: OpenFile): void {
  const nodes = nodesOf(file)
  if (nodes === 0) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `${labelOf(file)} is a model of ${nodes} ${nodes === 1 ? 'node' : 'nodes'}, which changed tensors no longer fit.${compressAdvice(file)} Write its weights without the graph by the option weightsOnly, or select tensors with the option tensors.`,
  )
}

/** A type for the weights is often asked for by who wants a smaller model. */
function compressAdvice({ onnx }: OpenFile): string {
  return onnx === undefined
    ? ''
    : ' To make the model smaller, compress it: toFloat16 and the quantizers of tilework/onnx.'
}

function nodesOf({ onnx, tmfile }: OpenFile): number {
  return onnx?.graph.nodes.length ?? tmfile?.graph.nodes.length ?? 0
}

function labelOf(file: OpenFile): string {
  return openedFile(file)?.source.label ?? 'The input'
}

/** Casts the weights of a model in place, activations excluded, so that it stays a model. */
async function convertModel(
  file: OpenFile,
  model: TmfileModel,
  output: Output,
  options: ConvertOptions,
): Promise<ConvertResult> {
  const dtype = options.dtype && resolveElementType(options.dtype)
  if (dtype !== 'float32' && dtype !== 'float16') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${labelOf(file)} is a model; its weights can be cast to float32 or float16, not ${dtype}. Write them without the graph by the option weightsOnly, or select tensors with the option tensors.`,
    )
  }
  const constants = new Set(
    model.graph.tensors.filter(({ role }) => role === 'constant').map(({ name }) => name),
  )
  const weights = [...file.tensors].filter(({ name, dtype: own }) => constants.has(name) && FLOATS.has(own))
  const losses = await countLosses(weights, options)
  const { castWeights } = await import('../models/tmfile/index.js')
  castWeights(model, dtype)
  const byteLength = await write(output, file, file.format, options)
  const tensors = summarizeTensors(file.tensors)
  return {
    format: file.format,
    byteLength,
    tensors,
    findings: file.findings,
    undo: [],
    droppedNodes: 0,
    losses,
  }
}

/** Converts a model to another model format. */
async function convertToModel(
  file: OpenFile,
  output: Output,
  options: ConvertOptions,
  format: FormatName,
): Promise<ConvertResult> {
  const { model, report } = await convertGraph(file, format, options)
  const byteLength = await write(output, model, format, options)
  const weights = (await formatOfModel(model)!.load()).weightsOf(model)
  const unchanged = { findings: file.findings, undo: [], droppedNodes: 0, losses: [] }
  return { format, byteLength, tensors: summarizeTensors(weights), ...unchanged, graph: report }
}

/** Converts the float type of a model and keeps its graph; see `toFloat16` and `toFloat32`. The open file does not change. */
async function convertOnnx(
  file: OpenFile,
  original: OnnxModel,
  output: Output,
  options: ConvertOptions,
  dtype: ModelFloat,
): Promise<ConvertResult> {
  const { toFloat16, toFloat32 } = await import('../models/onnx_compress/index.js')
  const model = original.copy()
  const signal = options.signal && { signal: options.signal }
  await (dtype === 'float32' ? toFloat32(model, { ...signal }) : toFloat16(model, { dtype, ...signal }))
  const byteLength = await write(output, model, 'onnx', options)
  const tensors = summarizeTensors(model.graph.initializers())
  return {
    format: 'onnx',
    byteLength,
    tensors,
    findings: file.findings,
    undo: [],
    droppedNodes: 0,
    losses: [],
  }
}

/** Float types that the whole graph of a model may have. */
type ModelFloat = 'float32' | 'float16' | 'bfloat16'

function isModelFloat(dtype: DtypeName | BlockDtype | undefined): dtype is ModelFloat {
  return dtype !== undefined && ['float32', 'float16', 'bfloat16'].includes(resolveElementType(dtype))
}

/** Dtypes of weights that a cast of a tmfile changes. */
const FLOATS: ReadonlySet<string> = new Set(['float32', 'float16'])

/** The tensors in the dtype of the options, or quantized. */
async function changedElements(
  selected: Selected,
  format: FormatEntry,
  options: ConvertOptions,
): Promise<Selected> {
  const { quantizeTo, tensors, signal } = options
  if (!quantizeTo) return options.dtype === undefined ? selected : changeElementTypes(selected, options)
  if (format.name === 'tmfile') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      'A tmfile stores scales in its constants; quantize them with tmfile.quantize or "tilework edit --quantize".',
    )
  }
  return quantizeTensors(Array.from(selected, withoutBlocks), quantizeTo, tensors !== undefined, signal)
}

/** Counts the losses of a plain cast, but not of `quantize`, whose parameters the caller has chosen. */
async function countLosses(tensors: Iterable<AnyTensor>, options: ConvertOptions): Promise<TensorLosses[]> {
  const { dtype, quantize, countLosses: isWanted, signal } = options
  if (!isWanted || dtype === undefined || quantize) return []
  const to = resolveElementType(dtype)
  if (isBlockDtype(to)) return []
  const losses: TensorLosses[] = []
  for (const tensor of tensors) {
    if (tensor.kind !== 'dense' || !tensor.hasData || keepsInteger(tensor, options)) continue
    if (!(await mayLoseMany(tensor, to))) continue
    const counted = await castLosses(tensor, to, signal ? { signal } : {})
    const { count, saturated, rounded = 0, allZero } = counted
    if (!allZero && rounded === 0 && saturated <= count * DESTRUCTIVE_SHARE) continue
    losses.push({ name: tensor.name, dtype: to, ...counted })
  }
  return losses
}

/**
 * Reorders a tensor to row-major where no layout was requested and the format cannot store its layout, or could store it only in
 * a metadata entry that no other program reads, for a file of another format.
 */
function inWritableLayout(tensor: AnyTensor, format: FormatEntry, from: string): AnyTensor {
  if (tensor.kind === 'block') return format.keepsBlocks ? tensor : dequantized(tensor)
  if (tensor.kind !== 'dense' || isPlain(tensor.storage)) return tensor
  const isKept = format.keepsLayout?.(tensor.storage) && !(format.addsLayoutEntries && format.name !== from)
  return isKept ? tensor : reorder(tensor, 'row_major')
}

/** @returns the number of bytes written */
async function write(
  output: Output,
  content: Saveable,
  format: FormatName,
  options: ConvertOptions,
): Promise<number> {
  let byteLength = 0
  const saveOptions = Object.fromEntries(
    [...writeOptionNames(), ...saveOptionNames(), 'signal', 'maxOutputBytes'].flatMap((name) => {
      const value = (options as Record<string, unknown>)[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )
  await save(output, content, {
    ...saveOptions,
    format,
    onProgress: (progress) => {
      byteLength = progress.bytesTotal
      options.onProgress?.(progress)
    },
  })
  return byteLength
}
