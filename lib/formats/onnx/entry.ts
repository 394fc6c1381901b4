/** ONNX for the registry. It has no magic number: the top-level fields of a file have to fit one of its messages. */
import type { FileHead } from '../file_head.js'
import type { Detection, ModelFormatEntry } from '../format.js'
import type { OnnxModel } from './model/model.js'
import { FORMAT_NAME } from './schema.js'
import type { OnnxWriteOptions } from './write.js'

export const onnxEntry = {
  name: FORMAT_NAME,
  extensions: ['.onnx', '.pb'],
  writeOptions: { message: true, external: true },
  modelProperty: 'onnx',
  namesFiles: true,
  detect,
  load: async () => (await import('./index.js')).onnx,
} as const satisfies ModelFormatEntry<OnnxModel, OnnxWriteOptions>

async function detect({ source }: FileHead): Promise<Detection> {
  // The reader of fields is loaded only for files that no earlier format has recognised.
  const { messagesOf } = await import('./protobuf/message_kind.js')
  const messages = await messagesOf(source)
  return messages.length > 0 && { messages }
}
