/** Plans one array as numpy would save it: the header, followed by the unchanged data. */

import { DTYPES } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { checkTensor } from '../../tensor/check_tensor.js'
import { storedShape } from '../../tensor/stored_shape.js'
import type { StringTensor, Tensor } from '../../tensor/tensor.js'
import type { WriteSegment } from '../format.js'
import { checkHasData, checkStorageBytes } from '../write_checks.js'
import { descrOf, keptDescr, parseDescr } from './descr.js'
import { encodeStrings } from './fixed_strings.js'
import { isFortranOrder } from './fortran_order.js'
import { beyondLimit, type HeaderFields, printHeader } from './header.js'
import { MAX_RANK } from './schema.js'

/** One array to be written. */
export interface NpyContent {
  readonly header: Uint8Array
  /** Absent for an empty array. */
  readonly data: WriteSegment | undefined
  readonly byteLength: number
}

/**
 * Row-major data are written as C order and column-major data as Fortran order, without a reorder. The storage of a blocked
 * tensor is written as a row-major array.
 *
 * @param format - name of the written format, for errors
 * @throws TileworkError ERR_UNSUPPORTED for a dtype that numpy lacks, ERR_NO_DATA, ERR_ARGUMENT
 */
export async function contentOf(tensor: Tensor, index: number, format: string): Promise<NpyContent> {
  const what = checkWritable(tensor, index, format)
  return tensor.kind === 'string' ? stringContent(tensor, what, format) : denseContent(tensor, what, format)
}

/** As `contentOf`, for numeric tensors: synchronous, because their headers do not depend on the data. */
export function numbersContentOf(
  tensor: Exclude<Tensor, StringTensor>,
  index: number,
  format: string,
): NpyContent {
  return denseContent(tensor, checkWritable(tensor, index, format), format)
}

/** @returns the name of the tensor for error messages */
function checkWritable(tensor: Tensor, index: number, format: string): string {
  checkTensor(tensor, `An ${format} file`)
  const what = `Tensor ${index} ("${tensor.name}")`
  checkHasData(tensor, what, format)
  return what
}

async function stringContent(tensor: StringTensor, what: string, format: string): Promise<NpyContent> {
  const { descr, bytes } = await encodeStrings(tensor, keptDescr(tensor))
  const header = headerOf({ descr, isFortran: false, shape: tensor.shape }, what, format)
  return join(header, bytes.byteLength === 0 ? undefined : { kind: 'bytes', bytes }, bytes.byteLength)
}

function denseContent(tensor: Exclude<Tensor, StringTensor>, what: string, format: string): NpyContent {
  if (tensor.kind === 'sparse') {
    throw new TileworkError('ERR_UNSUPPORTED', `${what} is sparse; npy takes dense tensors. Use toDense().`, {
      format,
    })
  }
  const descr = descrOf(tensor)
  if (descr === undefined) {
    const { bits } = DTYPES[tensor.dtype]
    const reason = bits < 8 ? `numpy has no type of ${bits} bits` : 'numpy has no such type'
    throw new TileworkError('ERR_UNSUPPORTED', `${what} is ${tensor.dtype}; ${reason}.`, { format })
  }
  const { byteLength } = tensor.storage
  const isColumnMajor = isFortranOrder(tensor.storage)
  const shape = isColumnMajor ? tensor.shape : storedShape(tensor)
  checkStorageBytes(tensor, shape, what, format)
  const header = headerOf({ descr, isFortran: isColumnMajor && !isBothOrders(shape), shape }, what, format)
  return join(header, byteLength === 0 ? undefined : { kind: 'tensor', tensor }, byteLength)
}

/** True where C and Fortran order give the same bytes; numpy then writes C order. */
function isBothOrders(shape: readonly number[]): boolean {
  return shape.includes(0) || shape.filter((extent) => extent !== 1).length < 2
}

function headerOf(fields: HeaderFields, what: string, format: string): Uint8Array {
  const { descr, shape } = fields
  const refuse = (reason: string): never => {
    throw new TileworkError('ERR_UNSUPPORTED', `${what} ${reason}`, { format })
  }
  if (shape.length > MAX_RANK) refuse(`has ${shape.length} axes; numpy takes up to ${MAX_RANK}.`)
  const tooMany = beyondLimit(shape, parseDescr(descr).itemBytes)
  if (tooMany !== undefined)
    refuse(`has non-zero dimensions whose product needs ${tooMany} bytes; numpy takes up to 2^63 - 1.`)
  return printHeader(fields)
}

function join(header: Uint8Array, data: WriteSegment | undefined, dataBytes: number): NpyContent {
  return { header, data, byteLength: header.byteLength + dataBytes }
}
