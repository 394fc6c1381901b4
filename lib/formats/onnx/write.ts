/**
 * Plans ONNX files of tensors: a model of initializers only, or one bare TensorProto.
 *
 * The plan refers to payloads and copies none. Fields are ordered by number and values are in `raw_data`, as the Python
 * packages write them.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import type { DenseTensor, SparseTensor, StringTensor, Tensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { SiblingPlan, WritePlan, WriteSegment, WriteTarget } from '../format.js'
import { uniqueNames } from '../write_checks.js'
import { ExternalData } from './external/data_files.js'
import { checkExternalOptions, type ExternalOptions } from './external/options.js'
import { WireWriter } from './protobuf/wire_writer.js'
import { FORMAT_NAME, fieldNumber, MAX_MESSAGE_BYTES, quote } from './schema.js'
import {
  MessageParts,
  nameOf,
  type PlannedMessage,
  planSparse,
  planTensor,
  unsupported,
} from './tensor/plan.js'

export interface OnnxWriteOptions {
  /** Message type of the file. Default: `TensorProto` for a path that ends in `.pb`, else `ModelProto`. */
  readonly message?: 'ModelProto' | 'TensorProto'
  /**
   * Options of external data: large tensors are stored in files beside the model. False: all values are stored in the
   * model. Default: values of a model stay internal or external, and new tensors are internal.
   */
  readonly external?: ExternalOptions | false
}

const PRODUCER = 'tilework'
const GRAPH_NAME = 'tensors'

/** The first IR version that has each element type. */
const IR_OF_DTYPE: Readonly<Record<Dtype, number>> = {
  float32: 1,
  float64: 1,
  float16: 1,
  int8: 1,
  int16: 1,
  int32: 1,
  int64: 1,
  uint8: 1,
  uint16: 1,
  uint32: 1,
  uint64: 1,
  bool: 1,
  complex64: 1,
  complex128: 1,
  string: 1,
  bfloat16: 4,
  float8_e4m3fn: 9,
  float8_e4m3fnuz: 9,
  float8_e5m2: 9,
  float8_e5m2fnuz: 9,
  uint4: 10,
  int4: 10,
  float4_e2m1fn: 11,
  float8_e8m0fnu: 12,
  uint2: 13,
  int2: 13,
}

/** The first IR version with metadata of tensors. */
const IR_OF_METADATA = 10

/** The operator set of the first release with each IR version. New models need none older than the first. */
const OPSET_OF_IR: readonly (readonly [ir: number, opset: number])[] = [
  [8, 17],
  [9, 19],
  [10, 21],
  [11, 23],
  [12, 24],
  [13, 25],
]

/**
 * Plans a file. A blocked tensor is stored under the shape of its digits. Unnamed tensors of a model get the name
 * `tensor_<index>`.
 *
 * @throws TileworkError ERR_ARGUMENT for invalid options and equal names, ERR_UNSUPPORTED for tensors that a message
 * cannot hold, ERR_NO_DATA, ERR_LIMIT beyond 2 GiB, and errors of reading strings and indices
 */
export async function plan(
  tensors: readonly Tensor[],
  options: OnnxWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  const message = chooseMessage(options, target)
  const { external = false } = options
  const data = external === false ? undefined : new ExternalData(checkExternalOptions(external))
  if (message === 'TensorProto' && data)
    throw unsupported('A bare TensorProto cannot have external data; save a ModelProto')
  const planned = await (message === 'TensorProto'
    ? planBare(tensors)
    : planModel(tensors, data, target.path))
  if (planned.byteLength > MAX_MESSAGE_BYTES) {
    const text = `The file would have ${planned.byteLength} bytes; a protobuf message has at most ${MAX_MESSAGE_BYTES}.`
    throw new TileworkError('ERR_LIMIT', text, { format: FORMAT_NAME })
  }
  return planned
}

/** The message type to write. @throws TileworkError ERR_ARGUMENT for an unknown one */
export function chooseMessage(
  options: OnnxWriteOptions,
  { path }: WriteTarget,
): NonNullable<OnnxWriteOptions['message']> {
  const isBare = path?.toLowerCase().endsWith('.pb') === true
  const { message = isBare ? 'TensorProto' : 'ModelProto' } = options
  if (message === 'ModelProto' || message === 'TensorProto') return message
  const text = `unknown message ${valueText(message)}; a file is written as "ModelProto" or "TensorProto".`
  throw new TileworkError('ERR_ARGUMENT', text, { format: FORMAT_NAME })
}

async function planBare(tensors: readonly Tensor[]): Promise<PlannedMessage> {
  const [tensor] = tensors
  if (tensor === undefined || tensors.length > 1) {
    throw unsupported(
      `A TensorProto holds exactly one tensor; ${tensors.length} were given. Save a ModelProto instead`,
    )
  }
  if (tensor.kind === 'sparse')
    throw unsupported(
      `${nameOf(tensor)} is sparse; a TensorProto holds dense tensors and strings. Save a ModelProto instead`,
    )
  return planTensor(tensor, tensor.name)
}

async function planModel(
  tensors: readonly Tensor[],
  data: ExternalData | undefined,
  path: string | undefined,
): Promise<WritePlan> {
  const names = namesOf(tensors)
  const segments: WriteSegment[] = []
  const head = new WireWriter().text(fieldNumber('GraphProto', 'name'), GRAPH_NAME)
  const dense = [...tensors.entries()].filter(([, { kind }]) => kind !== 'sparse') as NumberedDense[]
  const sparse = [...tensors.entries()].filter(([, { kind }]) => kind === 'sparse')
  const graph = new MessageParts(head.finish())
  const siblings = await addDense(graph, { dense, names, data, path })
  for (const [index, tensor] of sparse) {
    const planned = await planSparse(tensor as SparseTensor, names[index]!)
    graph.add(fieldNumber('GraphProto', 'sparse_initializer'), planned)
  }
  const ir = Math.max(...tensors.map(irOf), OPSET_OF_IR[0]![0])
  const opset = OPSET_OF_IR.find(([version]) => version === ir)![1]
  const model = new MessageParts(
    new WireWriter()
      .varint(fieldNumber('ModelProto', 'ir_version'), ir)
      .text(fieldNumber('ModelProto', 'producer_name'), PRODUCER)
      .finish(),
  )
  model.add(fieldNumber('ModelProto', 'graph'), graph.finish())
  const opsetId = new WireWriter().varint(fieldNumber('OperatorSetIdProto', 'version'), opset)
  const tail = new WireWriter().message(fieldNumber('ModelProto', 'opset_import'), opsetId).finish()
  segments.push({ kind: 'bytes', bytes: tail })
  return { ...model.finish(segments), siblings }
}

/** A tensor and its index among all tensors of the file. */
type NumberedDense = readonly [index: number, tensor: DenseTensor | StringTensor]

interface DenseParts {
  readonly dense: readonly NumberedDense[]
  readonly names: readonly string[]
  readonly data: ExternalData | undefined
  readonly path: string | undefined
}

/** Adds initializers. External offsets are assigned before any message is planned: file names depend on the file count. */
async function addDense(
  graph: MessageParts,
  { dense, names, data, path }: DenseParts,
): Promise<readonly SiblingPlan[]> {
  const ranges = new Map(
    dense.flatMap(([index, tensor]) => {
      const isExternal = tensor.kind === 'dense' && tensor.hasData && data?.takes(tensor) === true
      return isExternal ? [[index, data.add(tensor)] as const] : []
    }),
  )
  const siblings = (await data?.finish(path)) ?? []
  for (const [index, tensor] of dense) {
    const range = ranges.get(index)
    const external = range && data!.fieldsOf(range)
    const planned = await planTensor(tensor, names[index]!, true, external)
    graph.add(fieldNumber('GraphProto', 'initializer'), planned)
  }
  return siblings
}

function irOf({ dtype, metadata }: Tensor): number {
  return Math.max(IR_OF_DTYPE[dtype], metadata.size > 0 ? IR_OF_METADATA : 0)
}

/** Unique names: a model identifies values by name. */
function namesOf(tensors: readonly Tensor[]): readonly string[] {
  const taken = new Map<string, number>()
  for (const [index, { name }] of tensors.entries()) {
    if (name === '') continue
    const other = taken.get(name)
    if (other !== undefined) {
      const message = `Tensors ${other} and ${index} have the same name ${quote(name)}; names in a model must differ.`
      throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
    }
    taken.set(name, index)
  }
  return uniqueNames(tensors, 'tensor_')
}
