/** `tilework inspect FILE…`: summarizes files, reading no more of them than necessary. */
import { type Command, Option } from 'commander'
import {
  type AnyTensor,
  DTYPES,
  type Dtype,
  digest,
  type Finding,
  type OpenFile,
  type TensorList,
  type TensorSummary,
  TileworkError,
} from '../../index.js'
import { nearestNames } from '../../internal.js'
import { type OnnxSummary, printModel, summarizeOnnx } from '../../onnx.js'
import { dumpTmfile, summarizeTmfile, type TmfileDump, type TmfileSummary } from '../../tmfile.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { eachFile } from '../files/each_file.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes, formatCount, formatNumber } from '../text/byte_count.js'
import { wrapList } from '../text/display_width.js'
import { findingLine } from '../text/finding_line.js'
import { metadataLine, modelLines, onnxLines } from '../text/model_lines.js'
import { formatShape } from '../text/parse_shape.js'
import { printable, printableName } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { type Column, tableLines } from '../text/table.js'
import type { Colors, Terminal } from '../text/terminal.js'
import { tmfileText } from '../text/tmfile_text.js'
import { type ElementStatistics, elementStatistics, histogramBars } from './element_statistics.js'
import {
  type ListedTensors,
  parseLimit,
  type SelectionOptions,
  SORT_KEYS,
  selectListed,
} from './inspect_selection.js'
import { type FileSummary, summaryLines } from './inspect_summary.js'
import { type Corner, cornerLines, cornerOf } from './inspect_values.js'

export interface InspectOptions extends ReadChoice, SelectionOptions {
  readonly digest?: boolean
  readonly stats?: boolean
  readonly values?: boolean
  /** Largest tensor, in elements, that is printed with its values; true for the default. */
  readonly text?: number | true
  readonly json?: boolean
}

/** One tensor in JSON. */
export interface TensorReport extends TensorSummary {
  /** Index in the file, as in `--tensor '#INDEX'`. */
  readonly index: number
  readonly sha256?: string
  readonly stats?: ElementStatistics | null
  /** The first values along the last two axes, at index 0 of the others. */
  readonly values?: Corner | null
}

/** Reports that each iteration computes again, or that are cached because they required reading data. */
type TensorReports = Iterable<TensorReport> & { readonly length: number }

interface InspectReport {
  readonly file: string
  readonly format: string
  /** Length of the file. */
  readonly byteLength: number
  /** Summary of all tensors of the file. */
  readonly summary: FileSummary
  /** Metadata of a safetensors file (of its first shard) or of an ONNX model. */
  readonly metadata?: Readonly<Record<string, string>>
  /** Summary of all tensors that match `--filter`, listed or not. */
  readonly matching?: FileSummary
  /** The nearest names, where `--filter` matches none. */
  readonly nearest?: readonly string[]
  /** Summary of the graph of a tmfile. */
  readonly model?: TmfileSummary
  /** The whole graph of a tmfile, in JSON only. */
  readonly graph?: TmfileDump
  /** Summary of the graph of an ONNX model. */
  readonly onnx?: OnnxSummary
  readonly tensors: TensorReports
  readonly findings: readonly Finding[]
  /** An ONNX model in ONNX text, or the nodes of a tmfile, with `--text`. */
  readonly text?: string
}

const EXAMPLES = `
Examples:
  tilework inspect model.btf
  tilework inspect model.onnx --sort bytes --limit 20
  tilework inspect 'models/**/*.btf'
  tilework inspect model.safetensors --filter 'layers.*.attn.*' --values
  tilework inspect model.btf --digest --json

--filter takes a part of a name, or a pattern with * and ? for the whole name.

The digest is the SHA-256 of a tensor's packed little-endian storage bytes; of a sparse
tensor, of the bytes of its indices (64-bit, row-major) and then of its values.
Shapes are printed in the form that --shape takes. The bins of a histogram have equal widths, a
power of two, and span the smallest to the largest number.`

export function addInspect(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('inspect')
    .summary('summarize files and list their tensors')
    .description('Summarizes files and lists their tensors: names, dtypes, shapes, layouts and sizes.')
    .argument('<files...>', 'files of any known format, patterns in quotes, or - for stdin')
    .option('--filter <pattern>', 'list the tensors whose names match')
    .addOption(new Option('--sort <key>', 'order of the list; bytes: largest first').choices(SORT_KEYS))
    .option('--limit <n>', 'list at most n tensors', parseLimit)
    .option('--values', 'add the first values of each tensor: 4 rows of 6')
    .option(
      '--text [n]',
      'print the graph instead: a tmfile, or an ONNX model as ONNX text with values of tensors up to n elements (default: 16)',
      parseTextElements,
    )
    .option('--digest', 'add the SHA-256 of each tensor')
    .option('--stats', 'add minimum, maximum, mean, zeros, NaNs and a histogram of each dense tensor')
  addReadOptions(command)
    .option('--json', 'print JSON: one object for one file, an array for several or a pattern')
    .addHelpText('after', EXAMPLES)
    .action(async (files: string[], options: InspectOptions) =>
      finish(await inspect(files, options, terminal)),
    )
}

/** Runs the command. */
export function inspect(
  files: readonly string[],
  options: InspectOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const work = {
    files,
    json: options.json === true,
    report: (file: string) => reportFile(file, options, terminal),
    format: (report: InspectReport) => formatReport(report, options, terminal),
    exitCode: () => EXIT.ok,
  }
  return eachFile(work, terminal)
}

async function reportFile(path: string, options: InspectOptions, terminal: Terminal): Promise<InspectReport> {
  const file = await openInput(path, options, terminal)
  try {
    const { all, matching, listed } = selectListed(file.tensors, options)
    const { format, byteLength } = file
    const report = {
      ...{ file: path, format, byteLength, summary: all },
      ...(options.filter !== undefined && { matching }),
      ...(matching.tensors === 0 && nearestTo(options.filter, file.tensors)),
      tensors: await reportTensors(file.tensors, listed, options, terminal),
      findings: file.findings,
      ...modelReport(file),
      ...(options.text !== undefined && { text: await textOf(file, path, options.text) }),
    }
    return options.json && file.tmfile ? { ...report, graph: dumpTmfile(file.tmfile) } : report
  } finally {
    file.close()
  }
}

/** Most elements of a tensor that fit into a line. */
const DEFAULT_TEXT_ELEMENTS = 16

function parseTextElements(text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  throw new TileworkError('ERR_ARGUMENT', `--text takes a number of elements; it is "${text}".`)
}

async function textOf(
  { onnx, tmfile: model, format }: OpenFile,
  path: string,
  elements: number | true,
): Promise<string> {
  if (onnx) return printModel(onnx, { maxElements: elements === true ? DEFAULT_TEXT_ELEMENTS : elements })
  if (model) return [...tmfileText(dumpTmfile(model))].join('\n')
  throw new TileworkError('ERR_UNSUPPORTED', `${path} is ${format}; --text prints ONNX models and tmfiles.`)
}

function metadataReport(metadata: ReadonlyMap<string, string> | undefined): Partial<InspectReport> {
  return metadata === undefined || metadata.size === 0 ? {} : { metadata: Object.fromEntries(metadata) }
}

function nearestTo(filter: string | undefined, tensors: TensorList): { nearest?: string[] } {
  if (filter === undefined || tensors.length === 0) return {}
  const names = nearestNames(filter, namesOf(tensors))
  return names.length === 0 ? {} : { nearest: names }
}

function* namesOf(tensors: TensorList): Generator<string> {
  for (const { name } of tensors) yield name
}

/** Summary of the model. Where the graph cannot be read, the error becomes a finding, since the tensors are still readable. */
function modelReport({ tmfile: model, onnx, format, tensors, findings }: OpenFile): Partial<InspectReport> {
  if (model) return { model: summarizeTmfile(model) }
  // The tensors of a safetensors file carry its metadata.
  if (!onnx) return format === 'safetensors' ? metadataReport(tensors.at(0)?.metadata) : {}
  try {
    return { onnx: summarizeOnnx(onnx), ...metadataReport(onnx.metadata) }
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    const { code, message, path = '', offset = 0 } = error
    return { findings: [...findings, { severity: 'error', code, path, offset, message }] }
  }
}

async function reportTensors(
  tensors: TensorList,
  listed: ListedTensors,
  options: InspectOptions,
  terminal: Terminal,
): Promise<TensorReports> {
  if (!options.digest && !options.stats && !options.values) return listed
  const reads = (options.digest ? 1 : 0) + (options.stats ? 1 : 0)
  let byteLength = 0
  for (const report of listed) byteLength += report.byteLength ?? 0
  const progress = startProgress('Reading', terminal)
  const reader = new TensorReader(options, terminal.signal, progress, reads * byteLength)
  try {
    const completed: TensorReport[] = []
    for (const report of listed) completed.push(await reader.complete(tensors.at(report.index)!, report))
    return completed
  } finally {
    progress.stop()
  }
}

/** Adds the parts of a report that need the tensor's data: digest, statistics, values. */
class TensorReader {
  #bytesDone = 0

  constructor(
    private readonly options: InspectOptions,
    private readonly signal: AbortSignal,
    private readonly progress: Progress,
    private readonly bytesTotal: number,
  ) {}

  async complete(tensor: AnyTensor, report: TensorReport): Promise<TensorReport> {
    const values = this.options.values && { values: await cornerOf(tensor) }
    if (!tensor.hasData || tensor.kind === 'string') return { ...report, ...values }
    const onBytes = (count: number): void => {
      this.#bytesDone += count
      this.progress.update({ bytesDone: this.#bytesDone, bytesTotal: this.bytesTotal })
    }
    return {
      ...report,
      ...(this.options.digest && { sha256: await digest(tensor, { signal: this.signal, onBytes }) }),
      ...(this.options.stats && { stats: await elementStatistics(tensor, this.signal, onBytes) }),
      ...values,
    }
  }
}

function* formatReport(
  report: InspectReport,
  options: InspectOptions,
  terminal: Terminal,
): Generator<string> {
  const { colors } = terminal
  if (report.text !== undefined) {
    for (const line of report.text.split('\n')) yield `${printable(line)}\n`
    return
  }
  const { file, format, byteLength, summary, metadata, model, onnx, tensors, findings } = report
  const size = `${formatCount(summary.tensors, 'tensor')}, ${formatBytes(byteLength)}`
  const holdsWeights = onnx !== undefined || format === 'safetensors'
  // The tensors of a tmfile are all values of its graph, activations included.
  const noun = model ? 'weights and activations' : holdsWeights ? 'parameters' : 'elements'
  const facts = [
    ...summaryLines(summary, noun),
    ...(model ? modelLines(model) : []),
    ...(onnx ? onnxLines(onnx) : []),
    ...(metadata ? [metadataLine(metadata)] : []),
    ...listedLines(report, options),
  ]
  const lines = [`${colors.bold(printable(file))}: ${format}, ${size}`]
  for (const fact of facts)
    for (const line of wrapList(fact, widthOf(terminal))) lines.push(labelled(line, colors))
  for (const line of lines) yield `${line}\n`
  if (tensors.length > 0) yield* formatTensors(tensors, options, terminal)
  if (options.values) yield formatValues(tensors, colors)
  for (const finding of findings) yield `${findingLine(finding, colors)}\n`
}

/** Lines are wrapped and names shortened only on a terminal: other programs need them unchanged. */
function widthOf({ stdoutIsTerminal, width }: Terminal): number {
  return stdoutIsTerminal ? width : Number.POSITIVE_INFINITY
}

/** Dims the label of a line, so that its content stands out. */
function labelled(line: string, colors: Colors): string {
  const label = /^[a-z ]+: /.exec(line)?.[0]
  return label === undefined ? line : colors.dim(label) + line.slice(label.length)
}

/** Lines that say which tensors the table omits. */
function listedLines(
  { summary, matching, nearest, tensors }: InspectReport,
  { filter, limit }: InspectOptions,
): string[] {
  const lines: string[] = []
  if (matching) {
    const count = `${matching.tensors} of ${formatCount(summary.tensors, 'tensor')}`
    const size = `${formatNumber(matching.parameters)} elements in ${formatBytes(matching.byteLength)}`
    const name = printable(filter ?? '')
    lines.push(`matching "${name}": ${count}${matching.tensors === 0 ? '' : `, ${size}`}`)
  }
  if (nearest) lines.push(`nearest names: ${nearest.map(printableName).join(', ')}`)
  const candidates = (matching ?? summary).tensors
  if (limit !== undefined && tensors.length < candidates) {
    lines.push(`listed: the first ${tensors.length} of ${candidates}`)
  }
  return lines
}

const COLUMNS: readonly Column[] = [
  { title: '#', align: 'right', paint: (text, colors) => colors.dim(text) },
  { title: 'name', canShrink: true },
  {
    title: 'kind',
    usual: 'dense',
    paint: (text, colors) => (text === 'dense' ? text : colors.magenta(text)),
  },
  { title: 'dtype', paint: paintDtype },
  { title: 'shape', canShrink: true },
  {
    title: 'layout',
    usual: 'row_major',
    canShrink: true,
    paint: (text, colors) => (text === 'row_major' ? colors.dim(text) : colors.magenta(text)),
  },
  { title: 'bytes', align: 'right' },
  {
    title: 'data',
    usual: 'yes',
    paint: (text, colors) => (text === 'no' ? colors.red(text) : colors.dim(text)),
  },
]
/** Columns of numbers by their title. */
const STATISTICS = {
  min: ({ min }: ElementStatistics) => min,
  max: ({ max }: ElementStatistics) => max,
  mean: ({ mean }: ElementStatistics) => mean,
  zeros: ({ zeros }: ElementStatistics) => zeros,
  NaN: ({ nans }: ElementStatistics) => nans,
  inf: ({ infinities }: ElementStatistics) => infinities,
}
type StatisticsTitle = keyof typeof STATISTICS

/** Infinities are rare, and their column is left out where there are none. */
function statisticsTitles(tensors: TensorReports, { stats }: InspectOptions): readonly StatisticsTitle[] {
  if (!stats) return []
  const titles = Object.keys(STATISTICS) as StatisticsTitle[]
  for (const report of tensors) if (report.stats?.infinities) return titles
  return titles.filter((title) => title !== 'inf')
}

/** Numbers with a fraction, whole numbers, and the rest. Blocks of quantized numbers stand for fractions. */
function paintDtype(text: string, colors: Colors): string {
  const kind = Object.hasOwn(DTYPES, text) ? DTYPES[text as Dtype].kind : 'float'
  if (kind === 'float' || kind === 'complex') return colors.cyan(text)
  return kind === 'int' || kind === 'uint' ? colors.green(text) : colors.yellow(text)
}

function formatTensors(
  tensors: TensorReports,
  options: InspectOptions,
  terminal: Terminal,
): Iterable<string> {
  const statistics = statisticsTitles(tensors, options)
  const columns: readonly Column[] = [
    ...COLUMNS,
    ...statistics.map((title) => ({ title, align: 'right' as const })),
    ...(options.stats ? [{ title: 'histogram' }] : []),
    ...(options.digest ? [{ title: 'sha256' }] : []),
  ]
  const rowOf = (report: TensorReport): string[] => [
    String(report.index),
    printableName(report.name),
    report.kind,
    report.dtype,
    formatShape(report.shape),
    report.layout ?? '-',
    report.byteLength === null ? '-' : formatBytes(report.byteLength),
    dataCell(report),
    ...statistics.map((title) => statisticsCell(title, report.stats)),
    ...(options.stats ? [report.stats?.histogram ? histogramBars(report.stats.histogram) : '-'] : []),
    ...(options.digest ? [report.sha256 ?? '-'] : []),
  ]
  // Rows are computed twice, for widths and for lines: keeping them would take more memory than most files.
  const rows = {
    *[Symbol.iterator]() {
      for (const report of tensors) yield rowOf(report)
    },
  }
  return tableLines(columns, rows, terminal.colors, widthOf(terminal))
}

function formatValues(tensors: TensorReports, colors: Colors): string {
  const blocks = Array.from(tensors, ({ index, name, shape, values = null }) => {
    const title = `#${index} ${colors.bold(printableName(name))} ${colors.dim(`[${formatShape(shape)}]`)}`
    return `${[title, ...cornerLines(values, shape)].join('\n')}\n`
  })
  return blocks.length === 0 ? '' : `\n${blocks.join('')}`
}

function dataCell({ hasData, entryCount }: TensorReport): string {
  if (!hasData) return 'no'
  return entryCount === undefined ? 'yes' : formatCount(entryCount, 'entry', 'entries')
}

function statisticsCell(title: StatisticsTitle, statistics: ElementStatistics | null | undefined): string {
  const value = statistics ? STATISTICS[title](statistics) : null
  if (value === null) return '-'
  return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(6) : String(value)
}
