/**
 * Runs of tensors about whose headers there is nothing to say: the addon finds them in an open file, many at a time. A model
 * has thousands of them, and opening it first in a process would else be a loop that ends before it is compiled. All other
 * tensors, and all of sources that are no files, are read by `walkTensor`, which alone knows what is wrong with one.
 */
import { nativeFileOf } from '../../../bytes/native_file.js'
import type { ByteSource } from '../../../bytes/source.js'
import { systemError } from '../../../bytes/system_error.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { native } from '../../../native/addon.js'
import type { NativeInputFile, NativePlainTensorRules, NativePlainTensors } from '../../../native/types.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { DTYPE_OF_CODE } from '../schema.js'
import { TENSOR } from './header.js'

/** Each may be a read of a disk, and nobody else has a turn meanwhile. */
const MAX_RUN_TENSORS = 512

/** After a tensor that was not plain so many more are read one by one at most before the next look. */
const MAX_PAUSE = 1024

export class PlainTensorRuns {
  readonly #file: NativeInputFile | undefined
  readonly #label: string
  readonly #rules: NativePlainTensorRules
  /** How many tensors are passed by before the next look, and how many were after the last one in vain. */
  #pause = 0
  #lastPause = 0

  /** @param list - number of the field that a tensor is */
  constructor(source: ByteSource, list: number) {
    this.#file = nativeFileOf(source)
    this.#label = source.label ?? ''
    this.#rules = { ...RULES, list }
  }

  /**
   * The tensors from a field on that are plain.
   *
   * @param start - of the field of a tensor
   * @param end - of the message that it is in
   * @param most - how many are taken at most
   * @returns undefined where the first is not plain, or was not looked at
   * @throws TileworkError as reading the file
   */
  take(start: number, end: number, most: number): NativePlainTensors | undefined {
    const file = this.#file
    const limit = Math.floor(Math.min(most, MAX_RUN_TENSORS))
    if (!file || limit < 1 || this.#pause-- > 0) return undefined
    const run = systemError.wrap(this.#label, () =>
      native().plainTensors(file, this.#rules, start, end, limit),
    )
    const isNone = run.places.length === 0
    this.#lastPause = isNone ? Math.min(2 * this.#lastPause + 1, MAX_PAUSE) : 0
    this.#pause = this.#lastPause
    return isNone ? undefined : run
  }
}

const RULES = {
  dims: TENSOR.dims,
  dataType: TENSOR.dataType,
  name: TENSOR.name,
  rawData: TENSOR.rawData,
  docString: TENSOR.docString,
  dataLocation: TENSOR.dataLocation,
  elementBits: elementBits(),
  maxAxes: MAX_AXES,
}

/** By code; strings have no bits of their own. */
function elementBits(): Uint8Array {
  const bits = new Uint8Array(Math.max(...DTYPE_OF_CODE.keys()) + 1)
  for (const [code, dtype] of DTYPE_OF_CODE) bits[code] = dtype === 'string' ? 0 : DTYPES[dtype].bits
  return bits
}
