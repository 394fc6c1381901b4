/** Plans the file of a model: edited fields are written anew, all other bytes are copied from the file that was read. */
import { TileworkError } from '../../../errors.js'
import type { SiblingPlan, WritePlan, WriteTarget } from '../../../formats/format.js'
import { planSiblings, refuseOwnData, whole } from '../../../formats/onnx/external/copy.js'
import { nameOfLocation } from '../../../formats/onnx/external/files.js'
import type { Replacements } from '../../../formats/onnx/protobuf/message.js'
import { FORMAT_NAME, MAX_MESSAGE_BYTES } from '../../../formats/onnx/schema.js'
import type { PlannedMessage } from '../../../formats/onnx/tensor/plan.js'
import { chooseMessage, type OnnxWriteOptions, plan } from '../../../formats/onnx/write.js'
import type { OnnxModel } from './model.js'
import { moveValues } from './move_values.js'

/**
 * Without the option `external`, external data files are copied unless the target's folder already has them; where it has other files of
 * these names, values move to a file of another name, as with `external: {}`. A TensorProto is written from the only initializer of the
 * graph.
 *
 * @throws TileworkError ERR_LIMIT for an edit beyond the size limit of protobuf; ERR_ARGUMENT for a target that is a data file; errors of reading new tensors and of moving values
 */
export async function planModel(
  model: OnnxModel,
  options: OnnxWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  if (target.path !== undefined) await refuseOwnData(model.file.files, target.path)
  if (chooseMessage(options, target) === 'TensorProto')
    return plan([...model.graph.initializers()], options, target)
  const siblingsBeside = options.external === undefined ? await filesBeside(model, target) : undefined
  if (siblingsBeside) return { ...(await planMessage(model)), siblings: siblingsBeside }
  const { external = {} } = options
  const { replacements, siblings } = await moveValues(model, external, target.path)
  return { ...(await planMessage(model, replacements)), siblings }
}

async function planMessage({ message, file }: OnnxModel, other?: Replacements): Promise<PlannedMessage> {
  const planned = await message.plan(other)
  if (planned.byteLength <= MAX_MESSAGE_BYTES || file.source.byteLength > MAX_MESSAGE_BYTES) return planned
  const text = `The model would have ${planned.byteLength} bytes; a protobuf message has at most ${MAX_MESSAGE_BYTES}. Store values as external data.`
  throw new TileworkError('ERR_LIMIT', text, { format: FORMAT_NAME })
}

/** Undefined where the folder has another file under the name of one of them. */
async function filesBeside(
  { file }: OnnxModel,
  { path }: WriteTarget,
): Promise<readonly SiblingPlan[] | undefined> {
  const files = new Map([...file.files].map(([location, source]) => [nameOfLocation(location), source]))
  if (path !== undefined) return planSiblings(files, path)
  return [...files].map(([name, source]): SiblingPlan => ({ name, ...whole(source) }))
}
