/**
 * The nodes of the graph outputs. The engine reuses the memory of an output that another node reads, so such an output becomes a
 * copy behind all other nodes.
 */
import type { TmfileNode } from '../../../models/tmfile/index.js'
import { type GraphBuilder, isConstantOperand, type Operand } from './graph_builder.js'
import type { ReportBuilder } from './report.js'
import { copy } from './shaping.js'

export interface NamedOutput {
  readonly name: string
  readonly operand: Operand
}

export function chooseOutputs(
  b: GraphBuilder,
  outputs: readonly NamedOutput[],
  report: ReportBuilder,
): TmfileNode[] {
  const tensors = outputs.map(({ operand }) => (isConstantOperand(operand) ? b.integers(operand) : operand))
  b.prune(tensors.flatMap((tensor) => b.producerOf(tensor) ?? []))
  const copied = tensors.map((tensor) => {
    const isOwn = tensor.role === 'variable' && b.producerOf(tensor)?.outputs.length === 1
    // A copy reads the tensor too, so of several outputs with one tensor none is the tensor itself.
    const isOnce = tensors.indexOf(tensor) === tensors.lastIndexOf(tensor)
    return !isOwn || !isOnce || b.consumersOf(tensor).length > 0
  })
  return outputs.map(({ name }, at) => {
    const tensor = tensors[at]!
    if (!copied[at]) {
      b.begin(name)
      if (tensor.name !== name) b.rename(tensor, name, b.producerOf(tensor)!.name!)
      return b.producerOf(tensor)!
    }
    report.copied.push(name)
    if (tensor.name === name && tensor.role === 'variable')
      b.rename(tensor, `${name}__inner`, b.producerOf(tensor)!.name!)
    b.begin(name)
    const made = copy(b, tensor)
    if (tensor.name !== name) b.rename(made, name, '')
    return b.producerOf(made)!
  })
}
