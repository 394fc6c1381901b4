/** Reads elements of a float tensor as float32 numbers, whatever its type and layout, into memory that is used again. */
import { readInto } from '../../bytes/fill_memory.js'
import { throwIfAborted } from '../../cancel.js'
import { cast } from '../../tensor/cast.js'
import { asStored } from '../../tensor/dense.js'
import { reorder } from '../../tensor/reorder.js'
import type { DenseTensor } from '../../tensor/tensor.js'

/** Elements that a pass over a whole tensor reads at a time. */
export const WINDOW_ELEMENTS = 512 * 1024

/** Memory of windows that no reader holds. */
const FREE: Float32Array<ArrayBuffer>[] = []
/** Windows that are kept for the next reader. */
const FREE_WINDOWS = 4

/** Calls `use` with memory for `count` numbers, which it must not keep. */
export async function withWindow<Result>(
  count: number,
  use: (numbers: Float32Array<ArrayBuffer>) => Result | Promise<Result>,
): Promise<Result> {
  const found = FREE.findIndex(({ length }) => length >= count)
  const memory = found < 0 ? new Float32Array(Math.max(count, 1024)) : FREE.splice(found, 1)[0]!
  try {
    return await use(memory.subarray(0, count))
  } finally {
    if (FREE.length < FREE_WINDOWS && memory.length <= 4 * WINDOW_ELEMENTS) FREE.push(memory)
  }
}

/** Row-major float32 numbers of a tensor, by the index of the element. */
export class FloatReader {
  readonly size: number
  readonly #numbers: ReturnType<typeof asStored>

  constructor(tensor: DenseTensor) {
    const plain = tensor.storage.layout === 'row_major' ? tensor : reorder(tensor, 'row_major')
    this.size = tensor.size
    this.#numbers = asStored(cast(plain, 'float32'))
  }

  /** Fills `target` with the elements from index `start`. */
  async fill(start: number, target: Float32Array): Promise<void> {
    const { source, start: offset } = this.#numbers
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength)
    await readInto(source, offset + 4 * start, bytes)
  }

  /** Calls `visit` with consecutive windows of all elements. */
  async each(
    signal: AbortSignal | undefined,
    visit: (numbers: Float32Array<ArrayBuffer>, start: number) => void,
  ): Promise<void> {
    for (let start = 0; start < this.size; start += WINDOW_ELEMENTS) {
      throwIfAborted(signal)
      const count = Math.min(WINDOW_ELEMENTS, this.size - start)
      await withWindow(count, async (numbers) => {
        await this.fill(start, numbers)
        visit(numbers, start)
      })
    }
  }
}
