/** Opens an ONNX model or bare value: lists its tensors and checks what they say of themselves. */
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
 * Lists the tensors of a file in its order: of a model the initializers of its graph, of a bare value its elements.
 * Strict walks everything else too. A model has its graph besides, of which nothing is read yet.
 *
 * @throws TileworkError with the code of the first rule that the level does not let pass
 */
export async function read(
  source: ByteSource,
  options: ReadOptions,
): Promise<ReadResult & { readonly model?: OnnxModel }> {
  const { level, limits, sibling } = options
  const report = new Report(FORMAT_NAME, level, 'throw')
  const budget = new Budget(limits, DEFAULT_LIMITS)
  // A walk ends early only where the report has thrown.
  const message = (await chooseMessage(source, options, report))!
  const listed = (await walkFile(source, message, { budget, report, sibling }))!
  if (level === 'strict') await validateFile(source, message, { budget, report, files: listed.files })
  const files = listed.files.byLocation
  const model =
    message === 'ModelProto' && new OnnxModel({ source, files, depthLimit: budget.limit('depth') })
  return { tensors: new FileTensors(listed), findings: report.findings(), ...(model && { model }) }
}

/**
 * The message that the file is: the one named, or what its content says.
 *
 * @returns undefined where it is none, which is reported
 * @throws TileworkError ERR_ARGUMENT for a name that is no message of a file
 */
export async function chooseMessage(
  source: ByteSource,
  { message: named, detectedMessages }: Pick<ReadOptions, 'message' | 'detectedMessages'>,
  report: Report,
): Promise<FileMessage | undefined> {
  if (named !== undefined) return checkName(named)
  const place = { path: '', offset: 0 }
  if (source.byteLength === 0) {
    report.broken('ERR_TRUNCATED', 'The file is empty; which message it is to be cannot be known.', place)
    return undefined
  }
  const fitting = detectedMessages?.map(checkName) ?? (await messagesOf(source))
  const [message, ...others] = fitting
  if (message === undefined) {
    const kinds = FILE_MESSAGES.join(', ')
    report.broken('ERR_HEADER', `The fields of the file are those of none of ${kinds}.`, place)
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
  throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is no message of a file; known are: ${known}.`)
}
