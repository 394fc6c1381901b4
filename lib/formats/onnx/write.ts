/**
 * Plans ONNX files of tensors: a model of initializers only, or one bare TensorProto.
 *
 * The plan refers to payloads and copies none. Fields are ordered by number and values are in `raw_data`, as the Python
 * packages write them.
 */
import type { Dtype } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import type { DenseTensor, Tensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { SiblingPlan, TensorSequence, WritePlan, WriteSegment, WriteTarget } from '../format.js'
import { ExternalData } from './external/data_files.js'
import { checkExternalOptions, type ExternalOptions } from './external/options.js'
import { WireWriter } from './protobuf/wire_writer.js'
import { FORMAT_NAME, fieldNumber, MAX_MESSAGE_BYTES, quote } from './schema.js'
import {
  nameOf,
  type PlannedMessage,
  planRawTensor,
  planSparse,
  planTensor,
  unsupported,
} from './tensor/plan.js'
import type { OnnxEncoding } from './text/text_kind.js'

export interface OnnxWriteOptions {
  /** Message type of the file. Default: `TensorProto` for a path that ends in `.pb`, else `ModelProto`. */
  readonly message?: 'ModelProto' | 'TensorProto'
  /**
   * Options of external data: large tensors are stored in files beside the model. False: all values are stored in the
   * model. Default: values of a model stay internal or external, and new tensors are internal.
   */
  readonly external?: ExternalOptions | false
  /**
   * How the message is stored. Default: by the extension of the path, `onnxtxt` for `.onnxtxt` and `.onnxtext`, `textproto` for
   * `.textproto`, `.txtpb` and `.pbtxt`, `json` for `.onnxjson`; else `protobuf`.
   */
  readonly encoding?: OnnxEncoding
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
  float6_e2m3fn: 14,
  float6_e3m2fn: 14,
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
  [14, 28],
]

/**
 * Plans a file. The storage of a blocked tensor is written as a row-major array. Unnamed tensors of a model get the name
 * `tensor_<index>`.
 *
 * @throws TileworkError ERR_ARGUMENT for invalid options and equal names, ERR_UNSUPPORTED for tensors that a message
 * cannot hold, ERR_NO_DATA, ERR_LIMIT beyond 2 GiB, and errors of reading strings and indices
 */
export async function plan(
  tensors: TensorSequence,
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

async function planBare(tensors: TensorSequence): Promise<PlannedMessage> {
  const tensor = tensors.at(0)
  if (tensor === undefined || tensors.length > 1) {
    throw unsupported(
      `A TensorProto holds exactly one tensor; ${tensors.length} were given. Save a ModelProto instead, under a name that ends in .onnx`,
    )
  }
  if (tensor.kind === 'sparse')
    throw unsupported(
      `${nameOf(tensor)} is sparse; a TensorProto holds dense tensors and strings. Save a ModelProto instead`,
    )
  return planTensor(tensor, tensor.name)
}

async function planModel(
  tensors: TensorSequence,
  data: ExternalData | undefined,
  path: string | undefined,
): Promise<WritePlan> {
  const initializers = await Initializers.of(tensors, data, path)
  const name = new WireWriter().text(fieldNumber('GraphProto', 'name'), GRAPH_NAME).finish()
  let graphBytes = name.byteLength
  for (const { byteLength } of initializers.messages()) graphBytes += byteLength
  const { ir } = initializers
  const opset = OPSET_OF_IR.find(([version]) => version === ir)![1]
  const head = new WireWriter()
    .varint(fieldNumber('ModelProto', 'ir_version'), ir)
    .text(fieldNumber('ModelProto', 'producer_name'), PRODUCER)
    .lengthOf(fieldNumber('ModelProto', 'graph'), graphBytes)
    .finish()
  const opsetId = new WireWriter().varint(fieldNumber('OperatorSetIdProto', 'version'), opset)
  const tail = new WireWriter().message(fieldNumber('ModelProto', 'opset_import'), opsetId).finish()
  const segments = {
    *[Symbol.iterator](): Generator<WriteSegment> {
      yield { kind: 'bytes', bytes: head }
      yield { kind: 'bytes', bytes: name }
      for (const message of initializers.messages()) yield* message.segments
      yield { kind: 'bytes', bytes: tail }
    },
  }
  const byteLength = head.byteLength + graphBytes + tail.byteLength
  return { byteLength, segments, siblings: initializers.siblings }
}

/**
 * The initializers of a graph. Messages are planned when they are asked for, those that need reading once before: plans of a million
 * small tensors would take many times their bytes.
 */
class Initializers {
  /** IR version that the tensors need. */
  ir = OPSET_OF_IR[0]![0]
  siblings: readonly SiblingPlan[] = []
  readonly #tensors: TensorSequence
  /** Names of tensors that have none, by index. */
  readonly #names: ReadonlyMap<number, string>
  /** Strings, whose values are in the message. */
  readonly #read = new Map<number, PlannedMessage>()
  readonly #sparse: PlannedMessage[] = []
  /** Fields that locate external values. */
  readonly #external = new Map<number, readonly WriteSegment[]>()

  private constructor(tensors: TensorSequence) {
    this.#tensors = tensors
    this.#names = madeNames(tensors)
  }

  static async of(
    tensors: TensorSequence,
    data: ExternalData | undefined,
    path: string | undefined,
  ): Promise<Initializers> {
    const initializers = new Initializers(tensors)
    await initializers.#plan(data, path)
    return initializers
  }

  /** The messages with tag and length, in the order of the file. */
  *messages(): Generator<PlannedMessage> {
    let index = 0
    for (const tensor of this.#tensors) {
      const at = index++
      if (tensor.kind === 'sparse') continue
      const message =
        this.#read.get(at) ??
        planRawTensor(tensor as DenseTensor, this.#nameOf(tensor, at), this.#external.get(at))
      yield asField(fieldNumber('GraphProto', 'initializer'), message)
    }
    for (const message of this.#sparse)
      yield asField(fieldNumber('GraphProto', 'sparse_initializer'), message)
  }

  #nameOf({ name }: Tensor, index: number): string {
    return name === '' ? this.#names.get(index)! : name
  }

  /** External offsets are assigned before any message is planned: file names depend on the file count. */
  async #plan(data: ExternalData | undefined, path: string | undefined): Promise<void> {
    const ranges = new Map<number, ReturnType<ExternalData['add']>>()
    let index = 0
    for (const tensor of this.#tensors) {
      this.ir = Math.max(this.ir, irOf(tensor))
      if (tensor.kind === 'dense' && tensor.hasData && data?.takes(tensor))
        ranges.set(index, data.add(tensor, this.#nameOf(tensor, index)))
      index++
    }
    this.siblings = (await data?.finish(path)) ?? []
    for (const [at, range] of ranges) this.#external.set(at, data!.fieldsOf(range))
    index = 0
    for (const tensor of this.#tensors) {
      const name = this.#nameOf(tensor, index)
      if (tensor.kind === 'string') this.#read.set(index, await planTensor(tensor, name))
      if (tensor.kind === 'sparse') this.#sparse.push(await planSparse(tensor, name))
      index++
    }
  }
}

/** A message as a field of another one. The tag joins the head of the message, because segments cost more than bytes. */
function asField(number: number, { byteLength, segments }: PlannedMessage): PlannedMessage {
  const tag = new WireWriter().lengthOf(number, byteLength)
  const [head, ...values] = segments
  const isHead = head?.kind === 'bytes'
  const bytes = (isHead ? new WireWriter().raw(tag.finish()).raw(head.bytes) : tag).finish()
  return {
    byteLength: tag.byteLength + byteLength,
    segments: [{ kind: 'bytes', bytes }, ...(isHead || head === undefined ? [] : [head]), ...values],
  }
}

function irOf({ dtype, metadata }: Tensor): number {
  return Math.max(IR_OF_DTYPE[dtype], metadata.size > 0 ? IR_OF_METADATA : 0)
}

/** Names for tensors that have none, by index: a model identifies values by name. */
function madeNames(tensors: Iterable<Tensor>): ReadonlyMap<number, string> {
  const taken = new Set<string>()
  const unnamed: number[] = []
  let index = 0
  for (const { name } of tensors) {
    if (name === '') unnamed.push(index)
    else if (taken.has(name)) throw sameName(tensors, name, index)
    else taken.add(name)
    index++
  }
  const made = new Map<number, string>()
  for (const at of unnamed) {
    let name = `tensor_${at}`
    while (taken.has(name)) name += '_'
    taken.add(name)
    made.set(at, name)
  }
  return made
}

function sameName(tensors: Iterable<Tensor>, name: string, index: number): TileworkError {
  const other = Array.from(tensors, (tensor) => tensor.name).indexOf(name)
  const message = `Tensors ${other} and ${index} have the same name ${quote(name)}; names in a model must differ.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}
