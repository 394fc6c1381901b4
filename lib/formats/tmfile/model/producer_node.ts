/** Nodes that have no inputs: what a tensor comes from when no computation makes it. */

import { operatorByName } from '../operators.js'
import { OPERATOR_VERSION } from '../schema.js'
import type { TmfileNode, TmfileTensor } from './model.js'

/** The operator of what is put into a model when it runs, and of what its file holds. */
export type ProducerName = 'InputOp' | 'Const'

/** A node that makes `tensor` and has its name. */
export function producerNode(operator: ProducerName, tensor: TmfileTensor): TmfileNode {
  return {
    name: tensor.name,
    operator,
    operatorNumber: operatorByName(operator)!.number,
    operatorVersion: OPERATOR_VERSION,
    params: {},
    opaqueParams: null,
    inputs: [],
    outputs: [tensor],
    attributes: [],
    dynamicShape: false,
  }
}
