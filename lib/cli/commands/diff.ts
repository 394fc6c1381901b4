/** `tilework diff A B`: the differences of two files, in tensors and in the graph. */
import { type Command, Option } from 'commander'
import {
  type Difference,
  type DifferentElement,
  diff,
  type ElementValue,
  type GraphEdit,
  type OpenFile,
  type TensorChange,
  type TensorDifference,
  type TensorSummary,
  TileworkError,
  type ValueDifferences,
} from '../../index.js'
import { expectedText } from '../../internal.js'
import { EXIT, type ExitCode } from '../exit_codes.js'
import { addReadOptions, openInput, type ReadChoice } from '../files/open_input.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { formatShape } from '../text/parse_shape.js'
import { printable, printableName, printableStart, printJson, writeTexts } from '../text/printable.js'
import { startProgress } from '../text/progress.js'
import { type Column, formatTable } from '../text/table.js'
import type { Colors, Terminal } from '../text/terminal.js'
import { parseLimit } from './inspect_selection.js'

export interface DiffChoice extends ReadChoice {
  readonly tolerance?: { readonly absolute: number; readonly relative: number }
  readonly ignore?: readonly (TensorChange | 'graph')[]
  readonly sort: 'error' | 'name' | 'file'
  readonly limit: number
  readonly json?: boolean
}

const IGNORABLE: readonly (TensorChange | 'graph')[] = [
  ...(['name', 'kind', 'dtype', 'shape', 'layout', 'quantization', 'metadata', 'data', 'values'] as const),
  'graph',
]

const EXAMPLES = `
Examples:
  tilework diff model.onnx smaller.onnx
  tilework diff weights.safetensors model.onnx --ignore graph,metadata
  tilework diff plain.btf blocked.btf --ignore layout
  tilework diff a.npy b.npy --tolerance 1e-6,1e-3

Tensors are paired by name, and renamed tensors by content. A is the reference: a value is within the tolerance ATOL,RTOL if
|b - a| <= ATOL + RTOL * |a|, the rule of numpy.isclose(b, a). NaN is equal to NaN. Relative errors ignore zeros of A.
SQNR is 10 log10(sum a² / sum (b - a)²) in dB.
Exit codes: 0 equal, 1 different, above 1 an error as for every command.`

export function addDiff(program: Command, terminal: Terminal, finish: (code: ExitCode) => void): void {
  const command = program
    .command('diff')
    .summary('compare two files: tensors, values, graph')
    .description(
      'Compares two files of any formats: tensors that were added, removed, renamed or changed, how far their values are apart, and edits of the graph.',
    )
    .argument('<a>', 'the reference')
    .argument('<b>', 'the file that is compared with it')
    .option('--tolerance <atol[,rtol]>', 'values within the tolerance count as equal', parseTolerance)
    .option('--ignore <what>', `differences to ignore: ${IGNORABLE.join(', ')}`, parseIgnored)
    .addOption(
      new Option('--sort <key>', 'order of the changed tensors; error: lowest SQNR first')
        .choices(['error', 'name', 'file'])
        .default('error'),
    )
    .option('--limit <n>', 'list at most n tensors and n edits', parseLimit, 50)
  addReadOptions(command)
    .option('--json', 'print JSON, without a limit')
    .addHelpText('after', EXAMPLES)
    .action(async (a: string, b: string, options: DiffChoice) =>
      finish(await runDiff(a, b, options, terminal)),
    )
}

async function runDiff(a: string, b: string, options: DiffChoice, terminal: Terminal): Promise<ExitCode> {
  const one = await openInput(a, options)
  const progress = startProgress('Comparing', terminal)
  let other: OpenFile | undefined
  try {
    other = await openInput(b, options)
    const found = await diff(one, other, {
      ...(options.tolerance && { tolerance: options.tolerance }),
      ...(options.ignore && { ignore: options.ignore }),
      signal: terminal.signal,
      onProgress: (state) => progress.update(state),
    })
    progress.stop()
    if (options.json) printJson(plainData({ files: { a, b }, ...found }), terminal)
    else writeTexts(textOf(a, b, found, options, terminal), terminal.stdout)
    return found.isSame ? EXIT.ok : EXIT.findings
  } finally {
    progress.stop()
    one.close()
    other?.close()
  }
}

/** `1e-6` or `1e-6,1e-3`. @throws TileworkError ERR_ARGUMENT */
function parseTolerance(text: string): { absolute: number; relative: number } {
  const parts = text.split(',')
  const numbers = parts.map((part) => (part.trim() === '' ? Number.NaN : Number(part)))
  if (parts.length <= 2 && numbers.every((number) => Number.isFinite(number) && number >= 0)) {
    return { absolute: numbers[0]!, relative: numbers[1] ?? 0 }
  }
  throw new TileworkError(
    'ERR_ARGUMENT',
    `--tolerance is "${text}"; it must be ATOL or ATOL,RTOL, numbers from 0 on.`,
  )
}

function parseIgnored(
  text: string,
  before: readonly (TensorChange | 'graph')[] = [],
): (TensorChange | 'graph')[] {
  const names = text.split(',').map((name) => name.trim() as TensorChange | 'graph')
  const unknown = names.find((name) => !IGNORABLE.includes(name))
  if (unknown === undefined) return [...before, ...names]
  throw new TileworkError('ERR_ARGUMENT', `--ignore has "${unknown}"${expectedText(unknown, IGNORABLE)}`)
}

/** Numbers that JSON cannot represent become strings. */
function plainData(value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (Array.isArray(value)) return value.map(plainData)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plainData(each)]))
}

function* textOf(
  a: string,
  b: string,
  found: Difference,
  options: DiffChoice,
  { colors, stdoutIsTerminal, width }: Terminal,
): Generator<string> {
  const maxWidth = stdoutIsTerminal ? width : undefined
  const verdict = found.isSame ? colors.green(`the same${reservation(found)}`) : colors.yellow('different')
  yield `${colors.bold(printable(a))} ${colors.dim('and')} ${colors.bold(printable(b))}: ${verdict}\n`
  yield `${summaryText(found)}\n`
  const sorted = sortChanged(found.changed, options.sort)
  const listed = sorted.slice(0, options.limit)
  if (listed.length > 0) yield `\n${formatTable(COLUMNS, listed.map(rowOf), colors, maxWidth)}`
  yield moreText(sorted.length - listed.length, 'changed tensor')
  yield* wholeTensors('removed', found.removed, options.limit, colors)
  yield* wholeTensors('added', found.added, options.limit, colors)
  yield* editLines(found.graph ?? [], options.limit, colors)
}

/** The differences that were ignored, where the files count as equal. */
function reservation({ same, sameBits, changed, graph }: Difference): string {
  const ignored = new Set<string>(changed.flatMap(({ changes }) => changes))
  if (graph && graph.length > 0) ignored.add('graph')
  const reasons = [
    ...(sameBits < same ? ['within the tolerance'] : []),
    ...(ignored.size > 0 ? [`apart from ${[...ignored].join(', ')}`] : []),
  ]
  return reasons.length === 0 ? '' : ` ${reasons.join(', ')}`
}

function summaryText({ same, sameBits, changed, added, removed, graph }: Difference): string {
  const renamed = changed.filter(({ changes }) => changes.includes('name')).length
  const counts = [
    sameBits === same
      ? `${formatCount(same, 'tensor')} the same`
      : `${same} the same, ${sameBits} of them bit for bit`,
    `${changed.length} changed${renamed > 0 ? ` (${renamed} renamed)` : ''}`,
    `${removed.length} removed`,
    `${added.length} added`,
    ...(graph ? [`${formatCount(graph.length, 'edit')} of the graph`] : []),
  ]
  return counts.join(', ')
}

function moreText(count: number, noun: string): string {
  return count > 0 ? `… and ${formatCount(count, `more ${noun}`)} (--limit)\n` : ''
}

const COLUMNS: readonly Column[] = [
  { title: 'tensor', canShrink: true },
  { title: 'changed', paint: (text, colors) => colors.yellow(text) },
  { title: 'max error', align: 'right' },
  { title: 'max relative', align: 'right' },
  { title: 'SQNR dB', align: 'right' },
  { title: 'cosine', align: 'right' },
  { title: 'different', align: 'right' },
  { title: 'beyond', align: 'right' },
  { title: 'first', canShrink: true },
]

function rowOf(difference: TensorDifference): string[] {
  const { a, b } = difference
  const name = a.name === b.name ? a.name : `${a.name} -> ${b.name}`
  return [printableName(name), changesText(difference), ...valueCells(difference.real ?? difference.values)]
}

function changesText({ a, b, changes }: TensorDifference): string {
  const texts = changes.map((change) => {
    if (change === 'dtype') return `${a.dtype} -> ${b.dtype}`
    if (change === 'shape') return `[${formatShape(a.shape)}] -> [${formatShape(b.shape)}]`
    if (change === 'layout') return `${a.layout} -> ${b.layout}`
    if (change === 'kind') return `${a.kind} -> ${b.kind}`
    if (change === 'data') return a.hasData ? 'data removed' : 'data added'
    return change
  })
  return texts.join(', ')
}

function valueCells(values: ValueDifferences | null): string[] {
  if (!values) return COLUMNS.slice(2).map(() => '-')
  const { maxError, maxRelativeError, sqnr, cosine, different, beyond, count, firstBeyond, first } = values
  return [
    numberText(maxError),
    numberText(maxRelativeError),
    numberText(sqnr),
    numberText(cosine),
    different === 0 ? '0' : `${different} of ${count}`,
    String(beyond),
    elementText(firstBeyond ?? first),
  ]
}

function numberText(value: number | null): string {
  if (value === null) return '-'
  if (Number.isInteger(value) || !Number.isFinite(value)) return String(value).replace('Infinity', '∞')
  return String(Number(value.toPrecision(6)))
}

function elementText(element: DifferentElement | null): string {
  if (!element) return '-'
  return `[${element.index.join(', ')}] ${valueText(element.a)} -> ${valueText(element.b)}`
}

function valueText(value: ElementValue): string {
  if (typeof value === 'string') return JSON.stringify(printable(value).slice(0, 24))
  if (typeof value === 'number') return numberText(value)
  return typeof value === 'object' ? `${value[0]}${value[1] < 0 ? '' : '+'}${value[1]}i` : String(value)
}

/** Sorts tensors beyond the tolerance first, by ascending SQNR. */
function sortChanged(changed: readonly TensorDifference[], sort: DiffChoice['sort']): TensorDifference[] {
  if (sort === 'file') return [...changed]
  if (sort === 'name') return [...changed].sort((one, other) => (one.a.name < other.a.name ? -1 : 1))
  const errorOf = ({ real, values, changes }: TensorDifference): number => {
    const compared = real ?? values
    if (!compared) return changes.includes('values') ? Number.MAX_VALUE : -1
    const lowQuality = compared.sqnr === null ? 0 : -compared.sqnr
    return compared.beyond > 0 ? lowQuality : Number.NEGATIVE_INFINITY
  }
  return [...changed].sort((one, other) => {
    const [a, b] = [errorOf(one), errorOf(other)]
    return a === b ? 0 : b - a
  })
}

function* wholeTensors(
  title: string,
  tensors: readonly TensorSummary[],
  limit: number,
  colors: Colors,
): Generator<string> {
  if (tensors.length === 0) return
  yield '\n'
  for (const { name, dtype, shape, byteLength } of tensors.slice(0, limit)) {
    const size = byteLength === null ? '' : `, ${formatBytes(byteLength)}`
    yield `${paintKind(title, colors)} ${printableName(name)}: ${dtype} [${formatShape(shape)}]${size}\n`
  }
  yield moreText(tensors.length - limit, `${title} tensor`)
}

function* editLines(edits: readonly GraphEdit[], limit: number, colors: Colors): Generator<string> {
  if (edits.length === 0) return
  yield '\n'
  for (const { kind, what, graph, place, before, after } of edits.slice(0, limit)) {
    const where = graph === '' || what === 'graph' ? '' : ` ${colors.dim(`in ${printable(graph)}`)}`
    const change = kind === 'changed' ? `${short(before)} -> ${short(after)}` : short(before ?? after)
    yield `${paintKind(kind, colors)} ${what} ${printableName(place)}${where}${change === '' ? '' : `: ${change}`}\n`
  }
  yield moreText(edits.length - limit, 'edit')
}

function paintKind(kind: string, colors: Colors): string {
  const paint = kind === 'added' ? colors.green : kind === 'removed' ? colors.red : colors.yellow
  return paint(kind)
}

/** Longest text of a line; JSON has the full text. */
const SHOWN_CHARACTERS = 120

function short(text: string | null): string {
  return printableStart(text ?? '', SHOWN_CHARACTERS)
}
