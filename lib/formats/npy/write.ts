/** Plans an npy file: the header that numpy would write, and the data unchanged. */
import { TileworkError } from '../../errors.js'
import type { TensorSequence, WritePlan } from '../format.js'
import { contentOf } from './content.js'
import { FORMAT_NAME } from './schema.js'

/** npy has no options. */
export type NpyWriteOptions = Record<never, never>

/**
 * Plans a file of one tensor. Its name is not stored; the format has no names.
 *
 * @throws TileworkError ERR_UNSUPPORTED unless there is one tensor of a numpy type; ERR_NO_DATA
 */
export async function plan(tensors: TensorSequence): Promise<WritePlan> {
  const tensor = tensors.at(0)
  if (tensor === undefined || tensors.length > 1) {
    const message = `${tensors.length} tensors were given; an npy file holds exactly one array. npz holds many.`
    throw new TileworkError('ERR_UNSUPPORTED', message, { format: FORMAT_NAME })
  }
  const { header, data, byteLength } = await contentOf(tensor, 0, FORMAT_NAME)
  return { byteLength, segments: [{ kind: 'bytes', bytes: header }, ...(data ? [data] : [])] }
}
