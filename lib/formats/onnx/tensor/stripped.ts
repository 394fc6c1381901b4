/** A tensor whose values were removed on purpose: it is written with its type and shape alone. */
import { AbsentTensor } from '../../../tensor/absent.js'
import type { DenseTensor } from '../../../tensor/tensor.js'

export class StrippedTensor extends AbsentTensor {
  constructor({ name, dtype, shape, doc, metadata }: DenseTensor) {
    super({
      name,
      dtype,
      shape,
      metadata,
      reason: 'its values were removed',
      ...(doc !== undefined && { doc }),
    })
  }
}
