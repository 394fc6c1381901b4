/** Makes tensors from messages of a model, as the model is now. */
import { TileworkError } from '../../../errors.js'
import { AbsentTensor } from '../../../tensor/absent.js'
import type { DenseTensor, Tensor } from '../../../tensor/tensor.js'
import { withName } from '../../../tensor/with_name.js'
import { FileFault } from '../../file_fault.js'
import { Report } from '../../report.js'
import type { Message, MessageField } from '../protobuf/message.js'
import { type Steps, walkSourceSync } from '../protobuf/wire.js'
import { FORMAT_NAME, quote } from '../schema.js'
import { type TensorHeader, walkTensor } from './header.js'
import { type CheckedTensor, checkTensor } from './rules.js'
import { type CheckedPart, checkSparse, makeSparse, walkSparse } from './sparse.js'
import { entryOf, makeTensor } from './tensor_list.js'

/**
 * The tensor of a field.
 *
 * @throws TileworkError for a message that breaks a rule of the format or has an unknown element type
 */
export function tensorOfField(field: MessageField): Tensor {
  if (field.kind === 'tensor') return withName(field.tensor, field.name)
  return tensorOfMessage(field)
}

/**
 * The same object each time while the message is unchanged: passes ask for the dtype of each initializer again and again.
 *
 * @throws TileworkError as `tensorOfField`
 */
export function tensorOfMessage(message: Message): Tensor {
  if (message.isChanged) return readTensor(message)
  message.view ??= readTensor(message)
  return message.view as Tensor
}

function readTensor(message: Message): Tensor {
  const { file, start, end } = message.origin!
  const report = new Report(FORMAT_NAME, 'lenient', 'throw')
  const where = { report, path: () => message.type, offset: start }
  file.cursor.position = start
  if (message.type === 'SparseTensorProto') {
    const checked = checkSparse(walk(message, walkSparse(file.cursor, end)), where)
    if (!checked) throw refusal(report)
    const values = storedPart(message, checked.values)
    return makeSparse(checked, values, checked.indices && storedPart(message, checked.indices), false)
  }
  const header = walk(message, walkTensor(file.cursor, end))
  // What the walk read is the name in the file.
  if (message.isChanged) header.name = message.text('name')
  const checked = checkTensor(header, where)
  if (!checked) throw refusal(report)
  return placed(message, header, checked, { start, end })
}

function storedPart(message: Message, { header, checked, start, end }: CheckedPart): DenseTensor {
  return placed(message, header, checked, { start, end }) as DenseTensor
}

function placed(
  { origin }: Message,
  header: TensorHeader,
  checked: CheckedTensor,
  { start, end }: { readonly start: number; readonly end: number },
): Exclude<Tensor, { kind: 'sparse' }> {
  const { placement, byteLength, dtype, shape } = checked
  const { source, files } = origin!.file
  if (placement.kind !== 'external') return makeTensor(header, entryOf(checked, start, end), source)
  const other = files.get(placement.location)
  if (other && placement.start + byteLength <= other.byteLength) {
    return makeTensor(header, { kind: 'range', start: placement.start, end: 0 }, other)
  }
  const location = quote(placement.location)
  const reason = other
    ? `${location} has ${other.byteLength} bytes; the tensor needs ${byteLength} bytes at offset ${placement.start}`
    : `${location} could not be opened`
  return new AbsentTensor({ dtype, shape, name: header.name, reason })
}

function walk<T>(message: Message, steps: Steps<T>): T {
  try {
    return walkSourceSync(steps, message.origin!.file.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    throw new TileworkError(error.code, error.message, { format: FORMAT_NAME, offset: error.offset })
  }
}

function refusal(report: Report): TileworkError {
  const { code, message, offset } = report.findings()[0]!
  return new TileworkError(code === 'ERR_DTYPE' ? code : 'ERR_UNSUPPORTED', message, {
    format: FORMAT_NAME,
    offset,
  })
}
