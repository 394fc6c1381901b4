/** Bytes that parts of a model take in a file, so that folds do not make it larger. */

import { varintBytes } from '../../../formats/onnx/protobuf/wire_writer.js'
import type { DenseTensor } from '../../../tensor/tensor.js'
import type { Node } from '../document/types.js'

/** Bytes of a node, as a field of its graph. */
export async function nodeBytes({ message }: Node): Promise<number> {
  const { byteLength } = await message.plan()
  return byteLength + 1 + varintBytes(byteLength).length
}

/** Bytes of a tensor as an initializer; a little more than it takes. */
export function initializerBytes({ shape, storage }: DenseTensor, name: string): number {
  const lengths = String(storage.byteLength).length
  return storage.byteLength + name.length + 6 * shape.length + 8 + 2 * lengths
}
