/** Plans the file of a model: what was changed anew, everything else from the file it was read from. */
import { TileworkError } from '../../errors.js'
import type { OnnxModel } from '../../model/model.js'
import type { SiblingPlan, WritePlan, WriteTarget } from '../format.js'
import { planSiblings, whole } from './copy_external.js'
import { FORMAT_NAME, MAX_MESSAGE_BYTES } from './schema.js'
import { chooseMessage, type OnnxWriteOptions, plan } from './write.js'

/**
 * External data go along, unless they lie in the target's folder already. Where a TensorProto is to be written, it is the
 * one initializer of the graph.
 *
 * @throws TileworkError ERR_LIMIT for an edit that makes the file longer than protobuf allows; ERR_ARGUMENT where the
 * folder has other files under the names of its data; and what reading new tensors throws
 */
export async function planModel(
  model: OnnxModel,
  options: OnnxWriteOptions = {},
  target: WriteTarget = {},
): Promise<WritePlan> {
  if (chooseMessage(options, target) === 'TensorProto')
    return plan([...model.graph.initializers()], options, target)
  const { message, file } = model
  const { path } = target
  const planned = await message.plan()
  if (planned.byteLength > MAX_MESSAGE_BYTES && file.source.byteLength <= MAX_MESSAGE_BYTES) {
    const text = `The model would have ${planned.byteLength} bytes; protobuf ends at ${MAX_MESSAGE_BYTES}.`
    throw new TileworkError('ERR_LIMIT', text, { format: FORMAT_NAME })
  }
  const files = new Map(
    [...file.files].map(([location, source]) => [location.replace(/^(?:\.\/)+/, ''), source]),
  )
  const siblings =
    path === undefined
      ? [...files].map(([name, source]): SiblingPlan => ({ name, ...whole(source) }))
      : await planSiblings(files, path)
  return { ...planned, siblings }
}
