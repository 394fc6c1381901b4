/** The report of `compress` on a target: sizes and number of unchanged nodes; for a dry run every weight and unchanged node. */
import type { CompressReport, OptimizeChange } from '../../onnx.js'
import { formatBytes, formatCount } from '../text/byte_count.js'
import { printable } from '../text/printable.js'
import { formatTable } from '../text/table.js'
import type { Terminal } from '../text/terminal.js'
import { TARGETS, type TargetName } from './compress_targets.js'
import { type Verification, verificationLines } from './verify.js'

export interface TargetReport extends CompressReport {
  readonly input: string
  readonly to: TargetName
  /** Changes by `--tidy`. */
  readonly tidied?: readonly OptimizeChange[]
  /** Absent for a dry run, and where nothing was written. */
  readonly output?: string
  readonly verification?: Verification
}

/** A summary; for a dry run also tables of weights and of unchanged nodes. */
export function formatReport(report: TargetReport, terminal: Terminal): string {
  const { input, to, output, bytesBefore, bytesAfter, verification } = report
  const hasTables = output === undefined && verification?.isWithin !== false
  const end = output === undefined ? to : `${to}, ${printable(output)}`
  const share = bytesBefore === 0 ? '' : ` (${Math.round((100 * bytesAfter) / bytesBefore)} %)`
  const line = `${printable(input)} as ${end}: weights ${formatBytes(bytesBefore)} → ${formatBytes(bytesAfter)}${share}\n`
  return (
    opsetLine(report) +
    line +
    tidyLine(report) +
    unchangedLine(report) +
    stayLines(report) +
    (verification ? verificationLines(verification) : '') +
    (hasTables ? weightTable(report, terminal) + nodeTable(report, terminal) : '')
  )
}

function opsetLine({ opset }: TargetReport): string {
  return opset ? `opset ${opset.from} converted to ${opset.to} first\n` : ''
}

function tidyLine({ tidied = [] }: TargetReport): string {
  const done = tidied.filter(({ changes }) => changes > 0).map(({ pass, changes }) => `${pass} ${changes}`)
  return done.length > 0 ? `tidied: ${done.join(', ')}\n` : ''
}

/** The reason why nothing changed, and advice. */
function unchangedLine({ to, tidied, nodes, tensors }: TargetReport): string {
  if (tensors.length > 0 || nodes.some((node) => node.to !== undefined)) return ''
  const reason =
    nodes.length > 0 ? 'each node that it could change stays' : `the model has no ${TARGETS[to].wants}`
  const flags = [...new Set(nodes.flatMap(({ reason }) => OPTION_OF_REASON.exec(reason ?? '')?.[1] ?? []))]
  if (flags.length > 0) {
    const named = flags.map((flag) => `--${flag}`).join(' and ')
    return `nothing changed: ${reason}; ${named} ${flags.length > 1 ? 'quantize' : 'quantizes'} ${flags.map((flag) => WANTED_BY[flag]).join(' and ')}\n`
  }
  const isTidied = tidied || to === 'fp16' || to === 'fp32'
  const advice = isTidied ? '' : '; --tidy finds weights in Constant nodes, and behind Transpose and the like'
  return `nothing changed: ${reason}${advice}\n`
}

/** Of a node that an option would quantize. */
const OPTION_OF_REASON = /^only the option (\w+) quantizes it$/
const WANTED_BY: Readonly<Record<string, string>> = {
  gemm: 'the weights of Gemm',
  conv: 'those of 1 × 1 Conv',
}

function stayLines({ nodes, tensors, output }: TargetReport): string {
  const stay = nodes.filter(({ reason }) => reason !== undefined).length
  const why = output === undefined ? '' : '; --dry-run says why'
  const clipped = tensors.reduce((sum, each) => sum + (each.clipped ?? 0), 0)
  const lifted = tensors.reduce((sum, each) => sum + (each.lifted ?? 0), 0)
  return [
    stay > 0 && `${formatCount(stay, 'node')} ${stay === 1 ? 'stays' : 'stay'} as before${why}\n`,
    clipped > 0 && `${formatCount(clipped, 'value')} reduced to the largest of the type\n`,
    lifted > 0 && `${formatCount(lifted, 'value')} raised to the smallest of the type\n`,
  ]
    .filter((text) => text !== false)
    .join('')
}

function weightTable({ tensors }: CompressReport, { colors, width }: Terminal): string {
  if (tensors.length === 0) return ''
  const rows = tensors.map((each) => [
    printable(each.name),
    each.from,
    each.to,
    formatBytes(each.bytesBefore),
    formatBytes(each.bytesAfter),
    each.kept === undefined ? '' : `also stays: ${printable(each.kept)}`,
  ])
  const columns = [
    { title: 'weight', canShrink: true },
    { title: 'from' },
    { title: 'to' },
    { title: 'before', align: 'right' },
    { title: 'after', align: 'right' },
    { title: 'note', usual: '' },
  ] as const
  return `\n${formatTable(columns, rows, colors, width)}`
}

function nodeTable({ nodes }: CompressReport, { colors, width }: Terminal): string {
  const rows = nodes
    .filter(({ reason }) => reason !== undefined)
    .map(({ name, opType, reason }) => [printable(name), opType, reason!])
  if (rows.length === 0) return ''
  const columns = [
    { title: 'node that stays', canShrink: true },
    { title: 'operator' },
    { title: 'why' },
  ] as const
  return `\n${formatTable(columns, rows, colors, width)}`
}
