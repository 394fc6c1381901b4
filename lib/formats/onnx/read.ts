/** Opens an ONNX model or bare value: lists its tensors and checks their headers. */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { Budget } from '../budget.js'
import type { ReadOptions, ReadResult } from '../format.js'
import { Report } from '../report.js'
import { OnnxModel } from './model/model.js'
import { FILE_MESSAGES, type FileMessage, messagesOf } from './protobuf/message_kind.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from './schema.js'
import { FileTensors } from './tensor/tensor_list.js'
import { validateFile } from './validate.js'
import { walkFile } from './walk.js'

/**
 * Lists the tensors of a file in file order: the initializers of a model's main graph, or the elements of a bare value.
 * Level `strict` validates all other messages too. The objects of a model are read on access.
 *
 * @throws TileworkError with the code of the first broken rule that the level does not tolerate
 */
export async function read(
  source: ByteSource,
  options: ReadOptions,
): Promise<ReadResult & { readonly model?: OnnxModel }> {
  const { level, limits, sibling } = options
  const report = new Report(FORMAT_NAME, level, 'throw')
  const budget = new Budget(limits, DEFAULT_LIMITS)
  // Undefined results mean a reported fault, and this report throws.
  const message = (await chooseMessage(source, options, report))!
  const listed = (await walkFile(source, message, { budget, report, sibling }))!
  if (level === 'strict') await validateFile(source, message, { budget, report, files: listed.files })
  const files = listed.files.byLocation
  const model =
    message === 'ModelProto' && new OnnxModel({ source, files, depthLimit: budget.limit('depth') })
  return { tensors: new FileTensors(listed), findings: report.findings(), ...(model && { model }) }
}

/**
 * The message type of the file: the one named in the options, or else the one detected from the content.
 *
 * @returns undefined for an unknown type, which is reported
 * @throws TileworkError ERR_ARGUMENT for an unknown name
 */
export async function chooseMessage(
  source: ByteSource,
  { message: named, detectedMessages }: Pick<ReadOptions, 'message' | 'detectedMessages'>,
  report: Report,
): Promise<FileMessage | undefined> {
  if (named !== undefined) return checkName(named)
  const place = { path: '', offset: 0 }
  if (source.byteLength === 0) {
    report.broken('ERR_TRUNCATED', 'The file is empty; its message type is unknown.', place)
    return undefined
  }
  const fitting = detectedMessages?.map(checkName) ?? (await messagesOf(source))
  const [message, ...others] = fitting
  if (message === undefined) {
    const kinds = FILE_MESSAGES.join(', ')
    report.broken(
      'ERR_HEADER',
      `The fields of the file match no message type; expected one of: ${kinds}.`,
      place,
    )
    return undefined
  }
  if (others.length > 0) {
    const text = `The file could be ${[message, ...others].join(' or ')}; it is read as ${message}.`
    report.note('AMBIGUOUS_MESSAGE', text, place)
  }
  return message
}

function checkName(name: string): FileMessage {
  const message = FILE_MESSAGES.find((each) => each === name)
  if (message !== undefined) return message
  const known = FILE_MESSAGES.join(', ')
  throw new TileworkError('ERR_ARGUMENT', `unknown message ${valueText(name)}; expected one of: ${known}.`)
}
