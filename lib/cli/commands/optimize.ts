/** `tilework optimize FILE -o OUT`: makes the graph of an ONNX model simpler. */
import { type Command, Option } from 'commander'
import { save, TileworkError } from '../../index.js'
import { type OnnxModel, type OptimizeChange, type OptimizePass, optimize } from '../../onnx.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes, formatCount, formatNumber } from '../text/byte_count.js'
import { wholeNumber } from '../text/parse_number.js'
import { printable, printableName, printJson } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import { passList } from './edit_arguments.js'
import { addOutputOptions, fileOptions, type OutputChoice } from './output_options.js'
import {
  addVerifyOptions,
  OPTIMIZE_TOLERANCE,
  refusalLine,
  type Verification,
  Verifier,
  type VerifyChoice,
  verificationLines,
} from './verify.js'

interface OptimizeChoice extends ReadChoice, OutputChoice, VerifyChoice {
  readonly output: string
  readonly fuse?: boolean
  readonly only?: readonly OptimizePass[]
  readonly maxGrowth?: number
  readonly report?: boolean
  readonly json?: boolean
}

/** Number of nodes and of bytes in the file. */
interface Size {
  readonly nodes: number
  readonly byteLength: number
}

export interface OptimizeReport {
  readonly input: string
  /** Absent where nothing was written, because a comparison failed. */
  readonly output?: string
  readonly before: Size
  /** Without a length where nothing was written. */
  readonly after: Size
  /** Passes that changed something. */
  readonly changes: readonly OptimizeChange[]
  /** Nodes by operator, before and after, where the number changed. */
  readonly operators: Readonly<Record<string, readonly [number, number]>>
  readonly verification?: Verification
}

const HELP = `
Examples:
  tilework optimize model.onnx -o simple.onnx
  tilework optimize model.onnx --fuse --verify -o simple.onnx
  tilework optimize model.onnx --only remove-identity,fold-weights -o simple.onnx
  tilework optimize model.onnx --max-growth 1000000 --report -o simple.onnx

Without --fuse no bit of any output changes, also of NaN, infinities and -0. docs/onnx.md lists the
passes. --report names the nodes that each pass replaced.`

export function addOptimize(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('optimize')
    .summary('make the graph of an ONNX model simpler')
    .description('Writes an ONNX model with fewer nodes and the same outputs.')
    .argument('<file>', 'an ONNX model')
    .requiredOption('-o, --output <file>', 'output file')
    .option('--fuse', 'join operators, too, where results are rounded otherwise')
    .addOption(
      new Option('--only <passes>', 'run only these passes, separated by commas').argParser(passList),
    )
    .addOption(
      new Option('--max-growth <bytes>', 'bytes that constants may add to the file (default: 0)').argParser(
        wholeNumber('--max-growth'),
      ),
    )
    .option('--report', 'name the nodes that each pass replaced')
  addVerifyOptions(command, '0.00001')
  addOutputOptions(addReadOptions(command))
    .option('--json', 'print JSON')
    .addHelpText('after', HELP)
    .action(async (file: string, options: OptimizeChoice) =>
      finish(await optimizeFile(file, options, terminal)),
    )
}

/** Runs the command. */
async function optimizeFile(input: string, options: OptimizeChoice, terminal: Terminal): Promise<ExitCode> {
  const verifier = await Verifier.of(options, terminal.signal)
  const file = await openInput(input, options)
  try {
    const { onnx, format, byteLength } = file
    if (!onnx) {
      throw new TileworkError('ERR_UNSUPPORTED', `${input} is ${format}; optimize takes ONNX models.`)
    }
    const report = await optimized(onnx, { input, byteLength, options, verifier, signal: terminal.signal })
    if (options.json) printJson(report, terminal)
    else terminal.stdout.write(formatReport(report, options.report === true, terminal))
    if (report.output !== undefined) return EXIT.ok
    terminal.stderr.write(`tilework: ${refusalLine(options.output, report.verification!)}\n`)
    return EXIT.findings
  } finally {
    file.close()
    verifier?.close()
  }
}

interface Job {
  readonly input: string
  readonly byteLength: number
  readonly options: OptimizeChoice
  readonly verifier: Verifier | undefined
  readonly signal: AbortSignal
}

async function optimized(
  model: OnnxModel,
  { input, byteLength, options, verifier, signal }: Job,
): Promise<OptimizeReport> {
  const { output, only, fuse, maxGrowth } = options
  const before = operatorsOf(model)
  const changes = await optimize(model, {
    signal,
    ...(only && { only }),
    ...(fuse && { fuse }),
    ...(maxGrowth !== undefined && { maxGrowth }),
  })
  const after = operatorsOf(model)
  const verification = await verifier?.compare(input, model, { tolerance: OPTIMIZE_TOLERANCE })
  const isWritten = verification?.isWithin !== false
  let written = 0
  if (isWritten) {
    await save(output, model, {
      format: 'onnx',
      signal,
      ...fileOptions(options),
      onProgress: ({ bytesTotal }) => {
        written = bytesTotal
      },
    })
  }
  return {
    input,
    ...(isWritten && { output }),
    before: { nodes: total(before), byteLength },
    after: { nodes: total(after), byteLength: written },
    changes: changes.filter((each) => each.changes > 0),
    operators: changed(before, after),
    ...(verification && { verification }),
  }
}

type Counts = ReadonlyMap<string, number>

/** Nodes of the model, its subgraphs and functions by operator. */
function operatorsOf(model: OnnxModel): Counts {
  const counts = new Map<string, number>()
  const count = (opType: string): void => {
    counts.set(opType, (counts.get(opType) ?? 0) + 1)
  }
  for (const graph of model.graphs()) for (const { opType } of graph.nodes) count(opType)
  for (const { nodes } of model.functions) for (const { opType } of nodes) count(opType)
  return counts
}

function total(counts: Counts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0)
}

function changed(before: Counts, after: Counts): Record<string, readonly [number, number]> {
  const names = [...new Set([...before.keys(), ...after.keys()])].sort()
  const pairs = names.map((name) => [name, [before.get(name) ?? 0, after.get(name) ?? 0]] as const)
  return Object.fromEntries(pairs.filter(([, [one, other]]) => one !== other))
}

function formatReport(report: OptimizeReport, isLong: boolean, { colors }: Terminal): string {
  const { before, after, changes, operators, output, verification } = report
  const parts: string[] = []
  if (changes.length > 0) {
    const rows = changes.map(({ pass, changes: count, largestError }) => [
      printable(pass),
      formatNumber(count),
      largestError === undefined ? '' : largestError.toExponential(1),
    ])
    const titles = [{ title: 'pass' }, { title: 'changes', align: 'right' as const }]
    const hasErrors = changes.some(({ largestError }) => largestError !== undefined)
    const columnsOfPasses = hasErrors
      ? [...titles, { title: 'largest error', align: 'right' as const }]
      : titles
    parts.push(formatTable(columnsOfPasses, rows, colors), '\n')
    const counts = Object.entries(operators).map(([name, [one, other]]) => [
      printableName(name),
      formatNumber(one),
      formatNumber(other),
    ])
    parts.push(
      formatTable(
        [{ title: 'operator' }, { title: 'before', align: 'right' }, { title: 'after', align: 'right' }],
        counts,
        colors,
      ),
      '\n',
    )
  }
  if (isLong) for (const each of changes) parts.push(placesOf(each))
  if (verification) parts.push(verificationLines(verification))
  const nodes = `${formatNumber(before.nodes)} → ${formatCount(after.nodes, 'node')}`
  const bytes =
    output === undefined ? '' : `, ${formatBytes(before.byteLength)} → ${formatBytes(after.byteLength)}`
  parts.push(`${nodes}${bytes}${output === undefined ? '' : `: ${printable(output)}`}\n`)
  return parts.join('')
}

function placesOf({ pass, nodes = [] }: OptimizeChange): string {
  return nodes.length === 0 ? '' : `${printable(pass)}: ${nodes.map(printableName).join(', ')}\n`
}
