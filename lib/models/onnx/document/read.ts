/** Opens an ONNX model or bare value: lists its tensors and checks their headers. */
import type { ByteSource } from '../../../bytes/source.js'
import { Budget } from '../../../formats/budget.js'
import type { ReadOptions, ReadResult } from '../../../formats/format.js'
import { chooseMessage } from '../../../formats/onnx/choose_message.js'
import { DEFAULT_LIMITS, FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { FileTensors } from '../../../formats/onnx/tensor/tensor_list.js'
import { validateFile } from '../../../formats/onnx/validate.js'
import { walkFile } from '../../../formats/onnx/walk.js'
import { Report } from '../../../formats/report.js'
import { OnnxModel } from './model.js'

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
