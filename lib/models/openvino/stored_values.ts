/** The bytes of a constant that is written: a range of the file that it was read from, or values in their stored form. */
import type { WriteSegment } from '../../formats/format.js'
import type { Constant } from '../../formats/openvino/constant.js'
import { bytesOf } from '../../formats/openvino/constant.js'
import { codesOf, pack } from '../../formats/openvino/packed.js'
import { FORMAT_NAME, type IrType } from '../../formats/openvino/schema.js'
import { encodeStrings } from '../../formats/openvino/strings.js'
import { checkHasData, checkStorageBytes } from '../../formats/write_checks.js'
import type { Tensor } from '../../tensor/tensor.js'

/** Bytes to be written. */
export interface StoredValues {
  readonly byteLength: number
  readonly segment: WriteSegment
}

/**
 * The values of a tensor as a constant stores them.
 *
 * @throws TileworkError ERR_VALUE for a value that a packed type does not have, ERR_NO_DATA, ERR_OVERFLOW for texts
 */
export async function storedValues(
  tensor: Tensor,
  type: IrType,
  { key, shape }: Constant,
): Promise<StoredValues> {
  const what = `The constant ${JSON.stringify(key)}`
  checkHasData(tensor, what, FORMAT_NAME)
  if (tensor.kind === 'string') return inMemory(encodeStrings(await tensor.rawStrings(), key))
  if (tensor.kind === 'sparse') throw new TypeError('A replacement was checked to be dense.')
  checkStorageBytes(tensor, shape, what, FORMAT_NAME)
  const { packed } = type
  if (!packed) return { byteLength: tensor.storage.byteLength, segment: { kind: 'tensor', tensor } }
  // Values are checked before anything is written.
  codesOf(packed, await tensor.bytes(), what)
  const compute = async (): Promise<Uint8Array> => pack(packed, codesOf(packed, await tensor.bytes(), what))
  const byteLength = Number(bytesOf(type, tensor.size))
  return { byteLength, segment: { kind: 'computed', byteLength, compute } }
}

function inMemory(bytes: Uint8Array): StoredValues {
  return { byteLength: bytes.byteLength, segment: { kind: 'bytes', bytes } }
}
