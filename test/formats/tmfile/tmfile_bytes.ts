/** Builds small models for tests, and reads the records of files. */
import { MemorySource } from '../../../lib/bytes/memory.js'
import type { Level } from '../../../lib/errors.js'
import type { Limits, ReadOptions } from '../../../lib/formats/format.js'
import { Report } from '../../../lib/formats/report.js'
import type { FileRecords } from '../../../lib/formats/tmfile/decode/records.js'
import { walkFile } from '../../../lib/formats/tmfile/decode/walk.js'
import { operatorByName, operatorByNumber } from '../../../lib/formats/tmfile/operators.js'
import { tensor as denseTensor, serialize, TileworkError } from '../../../lib/index.js'
import {
  type OperatorName,
  type OperatorParams,
  type TmfileBuffer,
  TmfileModel,
  type TmfileNode,
  type TmfileTensor,
} from '../../../lib/tmfile.js'

export function readOptions(level: Level = 'lenient', limits: Limits = {}): ReadOptions {
  return { level, limits, sibling: () => Promise.reject(new TileworkError('ERR_UNSUPPORTED', 'No folder.')) }
}

export async function recordsOf(bytes: Uint8Array): Promise<FileRecords> {
  return (await walkFile(new MemorySource(bytes), {}, new Report('tmfile', 'lenient', 'throw')))!
}

export function variable(name: string, shape: number[] | null = [1, 3, 4, 4]): TmfileTensor {
  return { name, dtype: 'float32', shape, role: 'variable', layout: 0, quantization: null, buffer: null }
}

/** A float32 constant with its buffer. */
export function constant(name: string, shape: number[], values: readonly number[]): TmfileTensor {
  const numbers = denseTensor([...values], { dtype: 'float32', shape })
  const buffer: TmfileBuffer = { byteLength: 4 * values.length, data: { tensor: numbers as never } }
  return { ...variable(name, shape), role: 'constant', buffer }
}

export function node<Name extends OperatorName>(
  name: string,
  operator: Name,
  inputs: TmfileTensor[],
  outputs: TmfileTensor[],
  params: Partial<OperatorParams[Name]> = {},
): TmfileNode {
  return nodeOfNumber(name, operatorByName(operator)!.number, inputs, outputs, params)
}

/** By number, because two operators have the name Resize. */
export function nodeOfNumber(
  name: string,
  number: number,
  inputs: TmfileTensor[],
  outputs: TmfileTensor[],
  params: object = {},
): TmfileNode {
  const schema = operatorByNumber(number)!
  return {
    name,
    operator: schema.name,
    operatorNumber: schema.number,
    operatorVersion: 1,
    params: { ...schema.defaults, ...params },
    opaqueParams: null,
    inputs,
    outputs,
    attributes: [],
    dynamicShape: false,
  } as unknown as TmfileNode
}

/** A convolution of a [1, 3, 4, 4] input with weights and bias. */
export function smallModel(): TmfileModel {
  const data: TmfileTensor = { ...variable('data'), role: 'input' }
  const weight = constant('conv/w', [2, 3, 1, 1], [1, 2, 3, 4, 5, 6])
  const bias = constant('conv/b', [2], [7, 8])
  const result = variable('conv', [1, 2, 4, 4])
  const input = node('data', 'InputOp', [], [data])
  const weightNode = node('conv/w', 'Const', [], [weight])
  const biasNode = node('conv/b', 'Const', [], [bias])
  const size = { kernel_h: 1, kernel_w: 1, stride_h: 1, stride_w: 1, dilation_h: 1, dilation_w: 1 }
  const channels = { input_channel: 3, output_channel: 2, group: 1 }
  const convolution = node('conv', 'Convolution', [data, weight, bias], [result], { ...size, ...channels })
  return new TmfileModel({
    nodes: [input, weightNode, biasNode, convolution],
    tensors: [data, weight, bias, result],
    buffers: [weight.buffer!, bias.buffer!],
    inputs: [input],
    outputs: [convolution],
  })
}

export const smallFile = (): Promise<Uint8Array> => serialize(smallModel())
