/** Nodes made by the library itself. */
import { type OperatorName, operatorByName } from '../../../formats/tmfile/operators.js'
import { OPERATOR_VERSION } from '../../../formats/tmfile/schema.js'
import type { TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'

interface NodeEnds {
  readonly inputs: TmfileTensor[]
  readonly outputs: TmfileTensor[]
}

/** A node that is not in a graph yet. @param params - those that differ from their defaults */
export function operatorNode(
  operator: OperatorName,
  name: string | null,
  params: Readonly<Record<string, unknown>>,
  { inputs, outputs }: NodeEnds,
): TmfileNode {
  const { number, defaults } = operatorByName(operator)!
  return {
    name,
    operator,
    operatorNumber: number,
    operatorVersion: OPERATOR_VERSION,
    params: { ...defaults, ...params },
    opaqueParams: null,
    inputs,
    outputs,
    attributes: [],
    dynamicShape: false,
    // `params` has the type of `operator`: both come from the schema.
  } as unknown as TmfileNode
}

/** Operators of nodes without inputs: graph inputs and stored constants. */
export type ProducerName = 'InputOp' | 'Const'

/** A node without inputs that produces `tensor` and has its name. */
export function producerNode(operator: ProducerName, tensor: TmfileTensor): TmfileNode {
  return operatorNode(operator, tensor.name, {}, { inputs: [], outputs: [tensor] })
}
