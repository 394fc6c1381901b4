/** An ONNX file has no magic number: it is one when its fields on the first level fit one of the messages. */
import type { ByteSource } from '../../bytes/source.js'
import { messagesOf } from './protobuf/message_kind.js'

export async function detect(source: ByteSource): Promise<boolean> {
  return (await messagesOf(source)).length > 0
}
