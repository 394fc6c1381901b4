/** Chooses which message type of ONNX a file holds. */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { expectedText } from '../../nearest_names.js'
import { valueText } from '../../value_text.js'
import type { ReadOptions } from '../format.js'
import type { Report } from '../report.js'
import { FILE_MESSAGES, type FileMessage, messagesOf } from './protobuf/message_kind.js'

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
  throw new TileworkError(
    'ERR_ARGUMENT',
    `unknown message ${valueText(name)}${expectedText(name, FILE_MESSAGES)}`,
  )
}
