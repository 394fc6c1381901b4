/** Encodes and decodes a single TensorProto in memory, for messages from requests or other libraries. */
import { MemorySource } from '../../../bytes/memory.js'
import { bytesOfView } from '../../../bytes/view_bytes.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { checkFlag, checkOptions, isInstance, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import { checkTensor as checkIsTensor } from '../../../tensor/check_tensor.js'
import { isPlain } from '../../../tensor/plain_storage.js'
import { reorder } from '../../../tensor/reorder.js'
import type { DenseTensor, StringTensor, Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { FileFault } from '../../file_fault.js'
import type { WriteSegment } from '../../format.js'
import { Report } from '../../report.js'
import { messageOfObject, type TensorProtoObject } from '../protobuf/message_object.js'
import { WireCursor } from '../protobuf/wire.js'
import { FORMAT_NAME } from '../schema.js'
import { walkTensor } from './header.js'
import { planTensor } from './plan.js'
import { checkTensor } from './rules.js'
import { makeTensor } from './tensor_list.js'

/**
 * Decodes a TensorProto. The tensor shares the memory of `message` where the values are stored as packed bytes.
 *
 * @param message - the bytes of a TensorProto, or a decoded message object of another library, which is copied. External
 * data is not read: such a tensor has no data
 * @throws TileworkError ERR_ARGUMENT for another argument; ERR_HEADER, ERR_TRUNCATED, ERR_DTYPE, ERR_OVERFLOW and ERR_RANK
 * for an invalid message
 */
export function decodeTensorProto(message: Uint8Array | TensorProtoObject): DenseTensor | StringTensor {
  const bytes = bytesOf(message)
  const report = new Report(FORMAT_NAME, 'lenient', 'throw')
  try {
    const cursor = WireCursor.over(bytes)
    const header = finished(walkTensor(cursor, bytes.byteLength))
    const checked = checkTensor(header, { report, path: () => '', offset: 0 })
    if (!checked) throw new TileworkError('ERR_DTYPE', report.findings()[0]!.message, { format: FORMAT_NAME })
    const { placement } = checked
    const kind = placement.kind === 'external' ? 'none' : placement.kind
    const start = placement.kind === 'range' ? placement.start : 0
    return makeTensor(header, { kind, start, end: bytes.byteLength }, new MemorySource(bytes, 'message'))
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    throw new TileworkError(error.code, error.message, { format: FORMAT_NAME, offset: error.offset })
  }
}

function bytesOf(message: unknown): Uint8Array {
  if (isInstance(message, Uint8Array)) return bytesOfView(message, 'the message')
  const isObject = typeof message === 'object' && message !== null && !ArrayBuffer.isView(message)
  const isMessage = readInput(
    'The message',
    () => isObject && ('data_type' in message || 'dataType' in message),
  )
  if (isMessage) return readInput('The message', () => messageOfObject(message as TensorProtoObject))
  throw new TileworkError(
    'ERR_ARGUMENT',
    `decodeTensorProto takes the bytes or the object of a TensorProto; ${valueText(message)} was given.`,
  )
}

/** The result of a walk over memory, which ends in one step. */
function finished<T>(steps: Generator<number, T, void>): T {
  return steps.next().value as T
}

export interface EncodeTensorProtoOptions {
  /** Stores values as bytes in `raw_data` (default true), or as numbers in the typed field. Strings use `string_data`. */
  readonly raw?: boolean
}

/**
 * Encodes a tensor as a TensorProto, fields ordered by number. A blocked tensor is written in row-major order.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_UNSUPPORTED for a sparse tensor, ERR_NO_DATA, ERR_VIEW_TOO_LARGE, ERR_LIMIT,
 * and errors of reading the tensor
 */
export async function encodeTensorProto(
  tensor: Tensor,
  options: EncodeTensorProtoOptions = {},
): Promise<Uint8Array> {
  checkIsTensor(tensor, 'encodeTensorProto')
  checkOptions(options, 'encodeTensorProto', ['raw'])
  const raw = checkFlag(
    readInput('The options of encodeTensorProto', () => options.raw ?? true),
    'raw',
  )
  if (tensor.kind === 'sparse') {
    throw new TileworkError('ERR_UNSUPPORTED', 'A TensorProto cannot hold a sparse tensor.', {
      format: FORMAT_NAME,
    })
  }
  const plain = tensor.kind === 'dense' && !isPlain(tensor.storage) ? reorder(tensor, 'row_major') : tensor
  const { byteLength, segments } = await planTensor(plain, tensor.name, raw)
  const message = allocateBytes(byteLength)
  let at = 0
  for (const segment of segments) at += await putSegment(segment, message, at)
  return message
}

/** Writes a segment at `at`. @returns its length in bytes */
async function putSegment(segment: WriteSegment, message: Uint8Array, at: number): Promise<number> {
  if (segment.kind === 'tensor') {
    const { byteLength } = segment.tensor.storage
    await segment.tensor.copyTo(message.subarray(at, at + byteLength))
    return byteLength
  }
  if (segment.kind !== 'bytes') throw new RangeError(`a tensor has no segment of kind ${segment.kind}`)
  message.set(segment.bytes, at)
  return segment.bytes.byteLength
}
