/** The ONNX format for the registry. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { planCopy } from './copy_external.js'
import { detect } from './detect.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { type OnnxWriteOptions, plan } from './write.js'

export { FILE_MESSAGES, type FileMessage } from './message_kind.js'
export { decodeTensor, type EncodeTensorOptions, encodeTensor } from './tensor_message.js'
export type { OnnxWriteOptions } from './write.js'

export const onnx: Format<OnnxWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.onnx', '.pb'],
  detect,
  read,
  check,
  plan,
  planCopy,
}
