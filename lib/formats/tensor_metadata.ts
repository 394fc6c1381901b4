/**
 * Metadata that say something of one tensor. A format whose files have metadata as a whole leaves them out, because two tensors
 * would disagree.
 */

/** Starts the keys of such metadata. */
const TENSOR_KEY = /^(pytorch|tflite|openvino)\./

export function isTensorKey(key: string): boolean {
  return TENSOR_KEY.test(key)
}

/** The name of an earlier tensor of the same file with the same elements: the two are tied, and may be stored once. */
export const ALIAS_KEY = 'pytorch.alias_of'
