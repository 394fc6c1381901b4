/** What `inspect` prints of a model besides its tensors. */
import type { TmfileSummary } from '../formats/tmfile/summary.js'
import { formatBytes, formatCount } from './byte_count.js'
import { printable } from './printable.js'

export function modelLines(model: TmfileSummary): string[] {
  const { constants, quantization, devices } = model
  const lines = [
    `from ${model.sourceFormat}, ${model.graphLayout}; ${formatCount(model.nodes, 'node')}, ${formatCount(model.buffers, 'buffer')}`,
    `operators: ${countsText(model.operators)}`,
  ]
  const fused = countsText(model.fusedActivations)
  if (fused !== '') lines.push(`fused into convolutions: ${fused}`)
  lines.push(`inputs: ${endsText(model.inputs)}`, `outputs: ${endsText(model.outputs)}`)
  const absent = constants.withoutData === 0 ? '' : `, ${constants.withoutData} without data`
  lines.push(`${formatCount(constants.count, 'constant')} of ${formatBytes(constants.byteLength)}${absent}`)
  const { perTensor, perChannel } = quantization
  if (perTensor + perChannel > 0) {
    lines.push(`quantized: ${formatCount(perTensor, 'tensor')} as a whole, ${perChannel} per channel`)
  }
  for (const { name, nodes } of devices ?? []) {
    lines.push(`device ${printable(name ?? '-')}: ${formatCount(nodes, 'node')}`)
  }
  return lines
}

function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${printable(name)} ${count}`)
    .join(', ')
}

function endsText(ends: TmfileSummary['inputs']): string {
  return ends
    .map(
      ({ name, dtype, shape }) =>
        `${printable(name ?? '-')} ${dtype} [${shape?.join(', ') ?? 'not known yet'}]`,
    )
    .join('; ')
}
