/** Makes the tensor of a checked header. */
import type { ByteSource } from '../../bytes/source.js'
import { SwappedSource } from '../../bytes/swapped_source.js'
import { StoredTensor } from '../../tensor/dense.js'
import type { Tensor } from '../../tensor/tensor.js'
import { FixedStringTensor } from './fixed_strings.js'
import type { NpyHeader } from './header.js'
import { DESCR_KEY } from './schema.js'

/** @param start - source offset of the array's magic number */
export function tensorOf(header: NpyHeader, source: ByteSource, start: number, name: string): Tensor {
  const { type, shape, dataBytes } = header
  const dataStart = start + header.headerBytes
  // With fewer than two axes both orders are the same.
  const isFortran = header.isFortran && shape.length > 1
  if (type.kind !== 'number') {
    return new FixedStringTensor({ source, start: dataStart, type, shape, isFortran, name })
  }
  const range =
    type.swapBytes === 0
      ? { source, start: dataStart }
      : {
          source: new SwappedSource({
            source,
            start: dataStart,
            byteLength: dataBytes,
            swapBytes: type.swapBytes,
          }),
          start: 0,
        }
  return new StoredTensor({
    ...range,
    dtype: type.dtype,
    shape,
    name,
    layout: isFortran ? 'column_major' : 'row_major',
    ...(type.descr !== undefined && { metadata: new Map([[DESCR_KEY, type.descr]]) }),
  })
}
