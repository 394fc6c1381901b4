/** Files of text as the bytes of the message that they stand for: every reader and rule then is that of protobuf. */
import { MemorySource } from '../../../bytes/memory.js'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { HEAD_BYTES } from '../../file_head.js'
import { FORMAT_NAME, type MessageName } from '../schema.js'
import { parseJsonFormat } from './json_format.js'
import { parseOnnxText } from './onnx_text.js'
import { parseTextFormat } from './text_format.js'
import { kindOfPath, kindOfStart, type TextKind } from './text_kind.js'

/** Limit of a file of text: strings of Node have at most 2^29 characters. */
const MAX_TEXT_FILE_BYTES = 2 ** 28

/** The bytes of a message that were read from text; a copy of the file would not be these. */
export class DecodedSource extends MemorySource {}

/**
 * The message of a file of text; undefined for a file that is none.
 *
 * @param type - message of the file; ONNX text has models only
 * @throws TileworkError ERR_HEADER with line and column, ERR_LIMIT, ERR_OVERFLOW, ERR_NO_DATA; errors of the source
 */
export async function decodeText(
  source: ByteSource,
  type: MessageName,
  depthLimit: number,
): Promise<DecodedSource | undefined> {
  const kind = await textKindOf(source)
  if (kind === undefined) return undefined
  if (source.byteLength > MAX_TEXT_FILE_BYTES) {
    const message = `The text has ${source.byteLength} bytes; the limit is ${MAX_TEXT_FILE_BYTES}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
  }
  const text = textOf(await source.read(0, source.byteLength))
  return new DecodedSource(parsed(kind, text, type, depthLimit), source.label)
}

function parsed(kind: TextKind, text: string, type: MessageName, depthLimit: number): Uint8Array {
  if (kind === 'json') return parseJsonFormat(text, type, depthLimit)
  if (kind === 'textproto') return parseTextFormat(text, type, depthLimit)
  if (type === 'ModelProto') return parseOnnxText(text, depthLimit)
  throw new TileworkError('ERR_ARGUMENT', `ONNX text has models only, no ${type}.`, { format: FORMAT_NAME })
}

/** By the content, and else by the extension of the path, so that the reader says what is wrong. */
async function textKindOf(source: ByteSource): Promise<TextKind | undefined> {
  const head = await source.read(0, Math.min(HEAD_BYTES, source.byteLength))
  return kindOfStart(head) ?? kindOfPath(source.label)
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new TileworkError('ERR_HEADER', 'The text is not valid UTF-8.', { format: FORMAT_NAME, cause })
  }
}
