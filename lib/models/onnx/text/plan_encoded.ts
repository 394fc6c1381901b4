/** Plans the file of a model in the encoding of its target: the bytes of protobuf, ONNX text, or a text form of protobuf. */
import { MemorySource } from '../../../bytes/memory.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { TileworkError } from '../../../errors.js'
import type { WritePlan, WriteSegment, WriteTarget } from '../../../formats/format.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import {
  DTYPE_OF_CODE,
  FORMAT_NAME,
  isMessageKind,
  LOCATION_EXTERNAL,
  MESSAGES,
  type MessageName,
} from '../../../formats/onnx/schema.js'
import { segmentBytes } from '../../../formats/onnx/tensor/plan.js'
import { printJsonFormat, printTextFormat } from '../../../formats/onnx/text/print_message.js'
import {
  ENCODINGS,
  kindOfPath,
  type OnnxEncoding,
  type TextKind,
} from '../../../formats/onnx/text/text_kind.js'
import { chooseMessage, type OnnxWriteOptions } from '../../../formats/onnx/write.js'
import { expectedText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { OnnxModel } from '../document/model.js'
import { printModel } from './print.js'
import { isPrinted } from './tensor_text.js'

/** The option, or else the meaning of the path's extension. @throws TileworkError ERR_ARGUMENT for an unknown one */
function chooseEncoding({ encoding }: OnnxWriteOptions, { path }: WriteTarget): OnnxEncoding {
  if (encoding === undefined) return kindOfPath(path) ?? 'protobuf'
  if (ENCODINGS.includes(encoding)) return encoding
  const message = `unknown encoding ${valueText(encoding)}${expectedText(encoding, ENCODINGS)}`
  throw new TileworkError('ERR_ARGUMENT', message)
}

/**
 * The file that `plan` makes, in the encoding of the target.
 *
 * @throws TileworkError as `plan` and `planText`; ERR_ARGUMENT for an unknown encoding, before anything is planned
 */
export async function planEncoded(
  plan: () => Promise<WritePlan>,
  options: OnnxWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  const kind = chooseEncoding(options, target)
  const planned = await plan()
  return kind === 'protobuf' ? planned : planText(planned, kind, chooseMessage(options, target))
}

/**
 * A file of text in the place of one of bytes. Files of external data stay as they are.
 *
 * @throws TileworkError ERR_UNSUPPORTED for what ONNX text cannot say; ERR_LIMIT beyond 2^28 characters; errors of reading tensors
 */
async function planText(planned: WritePlan, kind: TextKind, type: MessageName): Promise<WritePlan> {
  const bytes = await collected(planned)
  const text = await textOf(bytes, kind, type)
  const encoded = Buffer.from(text, 'utf8')
  return { ...planned, byteLength: encoded.byteLength, segments: [{ kind: 'bytes', bytes: encoded }] }
}

async function textOf(bytes: Uint8Array, kind: TextKind, type: MessageName): Promise<string> {
  if (kind === 'json') return printJsonFormat(bytes, type)
  if (kind === 'textproto') return printTextFormat(bytes, type)
  if (type !== 'ModelProto') throw unsupported(`ONNX text has models only, no ${type}`)
  const model = new OnnxModel({ source: new MemorySource(bytes, 'a model'), files: new Map() })
  refuseWithoutText(model.message)
  return `${await printModel(model)}\n`
}

/** Fields that ONNX text has no form for, and without which a model computes something else. */
const WITHOUT_TEXT: Readonly<Partial<Record<MessageName, readonly string[]>>> = {
  ModelProto: ['training_info'],
  GraphProto: ['sparse_initializer'],
  AttributeProto: ['sparse_tensor', 'sparse_tensors'],
  FunctionProto: ['attribute_proto'],
  TypeProto: ['opaque_type'],
}

function refuseWithoutText(message: Message): void {
  const { type } = message
  const field = WITHOUT_TEXT[type]?.find((name) => message.has(name))
  if (field !== undefined) throw unsupported(`ONNX text has no form for ${type}.${field}`)
  if (type === 'TensorProto') refuseTensor(message)
  for (const info of MESSAGES[type]) {
    if (!info || !isMessageKind(info.kind) || !message.has(info.name)) continue
    for (const inside of message.messages(info.name, false)) refuseWithoutText(inside)
  }
}

function refuseTensor(message: Message): void {
  if (message.int('data_location') === LOCATION_EXTERNAL) return
  const dtype = DTYPE_OF_CODE.get(Number(message.int('data_type') ?? 0))
  if (dtype !== undefined && isPrinted(dtype)) return
  throw unsupported(
    `ONNX text has no form for values of type ${dtype ?? 'unknown'}, which the tensor ${valueText(message.text('name'))} has`,
  )
}

function unsupported(message: string): TileworkError {
  const advice = 'Save the model as .textproto or .onnxjson, which hold all fields.'
  return new TileworkError('ERR_UNSUPPORTED', `${message}. ${advice}`, { format: FORMAT_NAME })
}

/** The bytes of a planned file. */
async function collected({ byteLength, segments }: WritePlan): Promise<Uint8Array> {
  const bytes = allocateBytes(byteLength)
  let at = 0
  for (const segment of segments) {
    const end = at + segmentBytes(segment)
    if (segment.kind === 'tensor') await segment.tensor.copyTo(bytes.subarray(at, end))
    else bytes.set(await bytesOf(segment), at)
    at = end
  }
  return bytes
}

async function bytesOf(segment: Exclude<WriteSegment, { kind: 'tensor' }>): Promise<Uint8Array> {
  if (segment.kind === 'bytes') return segment.bytes
  return segment.kind === 'range'
    ? segment.source.read(segment.start, segment.end)
    : segment.compute(undefined)
}
