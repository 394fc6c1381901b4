/** ONNX for the registry. It has no magic number: the top-level fields of a file have to fit one of its messages. */
import type { FileHead } from '../../formats/file_head.js'
import type { Detection, ModelFormatEntry } from '../../formats/format.js'
import { FORMAT_NAME } from '../../formats/onnx/schema.js'
import { kindOfPath, kindOfStart, TEXT_EXTENSIONS } from '../../formats/onnx/text/text_kind.js'
import type { OnnxWriteOptions } from '../../formats/onnx/write.js'
import type { OnnxModel } from './document/model.js'

export const onnxEntry = {
  name: FORMAT_NAME,
  extensions: ['.onnx', '.pb', ...TEXT_EXTENSIONS],
  writeOptions: { message: true, external: true, encoding: true },
  modelProperty: 'onnx',
  namesFiles: true,
  detect,
  isEncoded: (path) => kindOfPath(path) !== undefined,
  load: async () => (await import('./index.js')).onnx,
} as const satisfies ModelFormatEntry<OnnxModel, OnnxWriteOptions>

async function detect({ source, bytes }: FileHead): Promise<Detection> {
  if (kindOfStart(bytes) !== undefined) return { messages: ['ModelProto'] }
  // The reader of fields is loaded only for files that no earlier format has recognised.
  const { messagesOf } = await import('../../formats/onnx/protobuf/message_kind.js')
  const messages = await messagesOf(source)
  return messages.length > 0 && { messages }
}
