/** `tilework inspect FILE…`: the content of files, reading no more of them than necessary. */
import type { Command } from 'commander'
import {
  digest,
  type Finding,
  type OpenFile,
  summarizeTensor,
  type Tensor,
  type TensorSummary,
  TileworkError,
} from '../../index.js'
import { type OnnxSummary, summarizeOnnx } from '../../onnx.js'
import { dumpTmfile, summarizeTmfile, type TmfileDump, type TmfileSummary } from '../../tmfile.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { eachFile } from '../files/each_file.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { findingLine } from '../text/finding_line.js'
import { modelLines, onnxLines } from '../text/model_lines.js'
import { formatShape } from '../text/parse_shape.js'
import { printable } from '../text/printable.js'
import { type Progress, startProgress } from '../text/progress.js'
import { type Column, formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import { type ElementStatistics, elementStatistics, histogramBars } from './element_statistics.js'

export interface InspectOptions extends ReadChoice {
  readonly digest?: boolean
  readonly stats?: boolean
  readonly json?: boolean
}

/** One tensor in JSON. */
export interface TensorReport extends TensorSummary {
  readonly sha256?: string
  readonly stats?: ElementStatistics | null
}

interface InspectReport {
  readonly file: string
  readonly format: string
  /** Length of the file. */
  readonly byteLength: number
  /** Summary of the graph of a tmfile. */
  readonly model?: TmfileSummary
  /** The whole graph of a tmfile, in JSON only. */
  readonly graph?: TmfileDump
  /** Summary of the graph of an ONNX model. */
  readonly onnx?: OnnxSummary
  readonly tensors: readonly TensorReport[]
  readonly findings: readonly Finding[]
}

const EXAMPLES = `
Examples:
  tilework inspect model.btf
  tilework inspect model.btf --digest --json

The digest is the SHA-256 of a tensor's packed little-endian storage bytes; of a sparse
tensor, of the bytes of its indices (64-bit, row-major) and then of its values.
Shapes are printed in the form that --shape takes. The bins of a histogram have equal widths, a
power of two, and span the smallest to the largest number.`

export function addInspect(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('inspect')
    .summary('list the tensors of files')
    .description('Lists the tensors of files: names, element types, shapes, layouts and sizes.')
    .argument('<files...>', 'files of any known format')
    .option('--digest', 'add the SHA-256 of each tensor')
    .option('--stats', 'add minimum, maximum, mean, zeros, NaNs and a histogram of each dense tensor')
  addReadOptions(command)
    .option('--json', 'print JSON: one object for one file, an array for several')
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
  const file = await openInput(path, options)
  try {
    const tensors = await reportTensors(file, options, terminal)
    const { format, byteLength } = file
    const report = { file: path, format, byteLength, tensors, findings: file.findings, ...modelReport(file) }
    return options.json && file.tmfile ? { ...report, graph: dumpTmfile(file.tmfile) } : report
  } finally {
    file.close()
  }
}

/** The tensors stay readable where the graph is not; the error becomes a finding. */
function modelReport({ tmfile: model, onnx, findings }: OpenFile): Partial<InspectReport> {
  if (model) return { model: summarizeTmfile(model) }
  if (!onnx) return {}
  try {
    return { onnx: summarizeOnnx(onnx) }
  } catch (error) {
    if (!(error instanceof TileworkError)) throw error
    const { code, message, path = '', offset = 0 } = error
    return { findings: [...findings, { severity: 'error', code, path, offset, message }] }
  }
}

async function reportTensors(
  file: OpenFile,
  options: InspectOptions,
  terminal: Terminal,
): Promise<TensorReport[]> {
  const reports = [...file.tensors].map(summarizeTensor)
  if (!options.digest && !options.stats) return reports
  const reads = (options.digest ? 1 : 0) + (options.stats ? 1 : 0)
  const bytesTotal = reads * reports.reduce((sum, report) => sum + (report.byteLength ?? 0), 0)
  const progress = startProgress('Reading', terminal)
  const reader = new TensorReader(options, terminal.signal, progress, bytesTotal)
  try {
    const completed: TensorReport[] = []
    let index = 0
    for (const tensor of file.tensors) completed.push(await reader.complete(tensor, reports[index++]!))
    return completed
  } finally {
    progress.stop()
  }
}

/** Adds the digest and the statistics to a report, which need the bytes of the tensor. */
class TensorReader {
  #bytesDone = 0

  constructor(
    private readonly options: InspectOptions,
    private readonly signal: AbortSignal,
    private readonly progress: Progress,
    private readonly bytesTotal: number,
  ) {}

  async complete(tensor: Tensor, report: TensorReport): Promise<TensorReport> {
    if (!tensor.hasData || tensor.kind === 'string') return report
    const onBytes = (count: number): void => {
      this.#bytesDone += count
      this.progress.update({ bytesDone: this.#bytesDone, bytesTotal: this.bytesTotal })
    }
    return {
      ...report,
      ...(this.options.digest && { sha256: await digest(tensor, { signal: this.signal, onBytes }) }),
      ...(this.options.stats && { stats: await elementStatistics(tensor, this.signal, onBytes) }),
    }
  }
}

function formatReport(report: InspectReport, options: InspectOptions, terminal: Terminal): string {
  const { colors } = terminal
  const { file, format, byteLength, model, onnx, tensors, findings } = report
  const size = `${formatCount(tensors.length, 'tensor')}, ${formatBytes(byteLength)}`
  const lines = [`${colors.bold(printable(file))}: ${format}, ${size}\n`]
  if (model) lines.push(...modelLines(model).map((line) => `${line}\n`))
  if (onnx) lines.push(...onnxLines(onnx).map((line) => `${line}\n`))
  if (tensors.length > 0) lines.push(formatTensors(tensors, options, terminal))
  for (const finding of findings) lines.push(`${findingLine(finding, colors)}\n`)
  return lines.join('')
}

const COLUMNS: readonly Column[] = [
  { title: '#', align: 'right' },
  { title: 'name' },
  { title: 'kind' },
  { title: 'dtype' },
  { title: 'shape' },
  { title: 'layout' },
  { title: 'bytes', align: 'right' },
  { title: 'data' },
]
const STATISTICS_COLUMNS: readonly Column[] = [
  ...['min', 'max', 'mean', 'zeros', 'NaN'].map((title) => ({ title, align: 'right' as const })),
  { title: 'histogram' },
]

function formatTensors(
  tensors: readonly TensorReport[],
  options: InspectOptions,
  terminal: Terminal,
): string {
  const columns = [
    ...COLUMNS,
    ...(options.stats ? STATISTICS_COLUMNS : []),
    ...(options.digest ? [{ title: 'sha256' }] : []),
  ]
  const rows = tensors.map((report, index) => [
    String(index),
    printable(report.name),
    report.kind,
    report.dtype,
    formatShape(report.shape),
    report.layout ?? '-',
    report.byteLength === null ? '-' : formatBytes(report.byteLength),
    dataCell(report),
    ...(options.stats ? statisticsCells(report.stats) : []),
    ...(options.digest ? [report.sha256 ?? '-'] : []),
  ])
  return formatTable(columns, rows, terminal.colors)
}

function dataCell({ hasData, entryCount }: TensorReport): string {
  if (!hasData) return 'no'
  return entryCount === undefined ? 'yes' : formatCount(entryCount, 'entry', 'entries')
}

function statisticsCells(statistics: ElementStatistics | null | undefined): string[] {
  if (!statistics) return STATISTICS_COLUMNS.map(() => '-')
  const { min, max, mean, zeros, nans, histogram } = statistics
  const numbers = [min, max, mean, zeros, nans].map((value) => {
    if (value === null) return '-'
    return typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(6) : String(value)
  })
  return [...numbers, histogram ? histogramBars(histogram) : '-']
}
