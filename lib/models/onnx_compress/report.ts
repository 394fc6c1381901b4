/** What a compression did to a model, node by node and tensor by tensor. */
import { DTYPES } from '../../dtype/dtypes.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { OnnxModel } from '../onnx/document/model.js'
import type { Node } from '../onnx/document/types.js'

type NamedNode = Pick<Node, 'name' | 'opType'>

/** What became of a node. */
export interface CompressedNode {
  readonly name: string
  readonly opType: string
  /** The operator or element type that it has now; undefined for a node that stays as it was. */
  readonly to?: string
  /** Why it stays as it was. */
  readonly reason?: string
}

/** What became of a weight. */
export interface CompressedTensor {
  readonly name: string
  readonly from: string
  /** Element type of the result, or the name of its format. */
  readonly to: string
  readonly bytesBefore: number
  readonly bytesAfter: number
  /** Number of values that were reduced to the largest magnitude of the type. */
  readonly clipped?: number
  /** Number of values that were raised to the smallest magnitude of the type. */
  readonly lifted?: number
  /** Why the original stays as well. */
  readonly kept?: string
}

export interface CompressReport {
  /** With `raiseOpset`: versions of the operator set before and after, where it was raised. */
  readonly opset?: { readonly from: number; readonly to: number }
  readonly nodes: readonly CompressedNode[]
  readonly tensors: readonly CompressedTensor[]
  /** Bytes of all initializers of the model. */
  readonly bytesBefore: number
  readonly bytesAfter: number
}

/** A report that grows while the model changes. */
export class ReportBuilder {
  readonly nodes: CompressedNode[] = []
  readonly tensors: CompressedTensor[] = []
  readonly #model: OnnxModel
  readonly #bytesBefore: number

  constructor(model: OnnxModel) {
    this.#model = model
    this.#bytesBefore = initializerBytes(model)
  }

  converted({ name, opType }: NamedNode, to: string): void {
    this.nodes.push({ name, opType, to })
  }

  stays({ name, opType }: NamedNode, reason: string): void {
    this.nodes.push({ name, opType, reason })
  }

  /** Says why the original of a tensor stays as well. */
  keeps(name: string, kept: string): void {
    const at = this.tensors.findIndex((each) => each.name === name)
    if (at >= 0) this.tensors[at] = { ...this.tensors[at]!, kept }
  }

  finish(): CompressReport {
    const { nodes, tensors } = this
    return { nodes, tensors, bytesBefore: this.#bytesBefore, bytesAfter: initializerBytes(this.#model) }
  }
}

function initializerBytes(model: OnnxModel): number {
  let sum = 0
  for (const graph of model.graphs()) for (const tensor of graph.initializers()) sum += valueBytes(tensor)
  return sum
}

/** Bytes of the values of a tensor; strings count as none. */
export function valueBytes(tensor: Tensor): number {
  if (tensor.kind === 'dense') return tensor.storage.byteLength
  if (tensor.kind === 'string') return 0
  return Math.ceil((tensor.entryCount * DTYPES[tensor.dtype].bits) / 8)
}
