/**
 * Reads runs of tensors with plain headers in the addon, many per call.
 *
 * This is the second reader of tensor headers, for speed alone: the first open of a process would run `walkTensor` before
 * V8 has compiled it. Measured for the first open: 3,000 tensors 36 ms with this reader and 101 ms without, 100,000 tensors
 * 0.12 s and 0.57 s. A plain tensor has a known type, a name and exactly its bytes in `raw_data`. All others, and all of
 * sources that are not files, go to `walkTensor`, which alone reports what is wrong.
 */
import { nativeFileOf } from '../../../bytes/native_file.js'
import type { ByteSource } from '../../../bytes/source.js'
import { systemError } from '../../../bytes/system_error.js'
import { DTYPES } from '../../../dtype/dtypes.js'
import { greatest } from '../../../long_lists.js'
import { native } from '../../../native/addon.js'
import type { NativeInputFile, NativePlainTensorRules, NativePlainTensors } from '../../../native/types.js'
import { MAX_AXES } from '../../../tensor/shape.js'
import { DTYPE_OF_CODE } from '../schema.js'
import { TENSOR } from './header.js'

/** Limit per call: each tensor may be a disk read, and the call blocks the event loop. */
const MAX_RUN_TENSORS = 512

/** After failed attempts, at most this many tensors are read by `walkTensor` before the next attempt. */
const MAX_PAUSE = 1024

export class PlainTensorRuns {
  readonly #file: NativeInputFile | undefined
  readonly #label: string
  readonly #rules: NativePlainTensorRules
  /** Tensors to skip before the next attempt, and the number skipped after the last failed one. */
  #pause = 0
  #lastPause = 0

  /** @param list - number of the field whose messages are the tensors */
  constructor(source: ByteSource, list: number) {
    this.#file = nativeFileOf(source)
    this.#label = source.label ?? ''
    this.#rules = { ...RULES, list }
  }

  /**
   * The run of plain tensors from the field at `start` on.
   *
   * @param end - end of the message that contains the field
   * @param maxTensors - limit of the run
   * @returns undefined where the first tensor is not plain or no attempt is due
   * @throws TileworkError errors of reading the file
   */
  take(start: number, end: number, maxTensors: number): NativePlainTensors | undefined {
    const file = this.#file
    const limit = Math.floor(Math.min(maxTensors, MAX_RUN_TENSORS))
    if (!file || limit < 1 || this.#pause-- > 0) return undefined
    const run = systemError.wrap(this.#label, () =>
      native().plainTensors(file, this.#rules, start, end, limit),
    )
    const isNone = run.offsets.length === 0
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

/** Bits per element by `data_type`; 0 for strings, which are never plain. */
function elementBits(): Uint8Array {
  const bits = new Uint8Array(greatest(DTYPE_OF_CODE.keys()) + 1)
  for (const [code, dtype] of DTYPE_OF_CODE) bits[code] = dtype === 'string' ? 0 : DTYPES[dtype].bits
  return bits
}
