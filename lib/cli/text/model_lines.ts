/** The graph of a model as text, for `inspect`. */

import type { OnnxEnd, OnnxSummary, OnnxValues } from '../../onnx.js'
import type { TmfileSummary } from '../../tmfile.js'
import { formatBytes, formatCount } from './byte_count.js'
import { printable, printableName, printableStart } from './printable.js'

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

export function onnxLines(model: OnnxSummary): string[] {
  const producer = [model.producer, model.producerVersion].filter((part) => part !== '').join(' ')
  const from = producer === '' ? '' : `from ${printable(producer)}, `
  const functions = model.functions === 0 ? '' : `, ${formatCount(model.functions, 'function')}`
  return [
    `${from}IR version ${model.irVersion}; ${formatCount(model.nodes, 'node')}${functions}`,
    `opsets: ${countsText(model.opsetImports)}`,
    `operators: ${countsText(model.operators)}`,
    `inputs: ${model.inputs.map(onnxEndText).join('; ')}`,
    `outputs: ${model.outputs.map(onnxEndText).join('; ')}`,
    `values: ${model.values.map(valuesText).join('; ')}`,
  ].filter((line) => !line.endsWith(': '))
}

/** Most metadata entries and characters per value; JSON has all. Some training tools store a whole configuration in one value. */
const SHOWN_ENTRIES = 8
const SHOWN_CHARACTERS = 80

export function metadataLine(metadata: Readonly<Record<string, string>>): string {
  const entries = Object.entries(metadata)
  const shown = entries
    .slice(0, SHOWN_ENTRIES)
    .map(([key, value]) => `${printableName(key)}=${printableStart(value, SHOWN_CHARACTERS)}`)
  const more = entries.length - shown.length
  return `metadata: ${shown.join(', ')}${more > 0 ? `, and ${more} more (--json)` : ''}`
}

function onnxEndText({ name, type }: OnnxEnd): string {
  return `${printable(name)} ${printable(type)}`
}

function valuesText({ storage, location, tensors, byteLength }: OnnxValues): string {
  const where = location === undefined ? storage : `file ${printable(location)}`
  const size = byteLength === 0 ? '' : ` of ${formatBytes(byteLength)}`
  return `${formatCount(tensors, 'tensor')}${size} in ${where}`
}

function countsText(counts: Readonly<Record<string, number | string>>): string {
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
