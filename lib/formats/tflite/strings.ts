/** String tensors of TFLite: a count, the offsets of the texts and their end, then the texts, all from the start of the buffer. */
import type { ByteSource } from '../../bytes/source.js'
import { BaseTensor, NO_METADATA } from '../../tensor/base_tensor.js'
import { decodeStrings } from '../../tensor/decode_strings.js'
import type { StringTensor } from '../../tensor/tensor.js'
import { FileFault } from '../file_fault.js'
import { FORMAT_NAME } from './schema.js'

const U32_BYTES = 4

export interface StringRange {
  readonly source: ByteSource
  readonly start: number
  readonly end: number
}

/**
 * Checks the offsets of all texts.
 *
 * @param count - elements of the shape
 * @throws FileFault where they are not ascending, lie in their own list or outside the buffer
 */
export async function checkStrings(range: StringRange, count: number): Promise<void> {
  await readOffsets(range, count)
}

async function readOffsets({ source, start, end }: StringRange, count: number): Promise<Int32Array> {
  const refuse = (what: string): FileFault =>
    new FileFault('ERR_OFFSET_RANGE', `The strings at ${start} ${what}.`, start)
  const headBytes = U32_BYTES * (count + 2)
  if (headBytes > end - start) throw refuse(`have ${end - start} bytes, too few for ${count} offsets`)
  const head = new Int32Array(new Uint8Array(await source.read(start, start + headBytes)).buffer)
  if (head[0] !== count) throw refuse(`are ${head[0]}; the shape has ${count}`)
  const offsets = head.subarray(1)
  for (const [index, offset] of offsets.entries()) {
    const least = index === 0 ? headBytes : offsets[index - 1]!
    if (offset < least || offset > end - start)
      throw refuse(`have the offset ${offset}, which is outside or goes down`)
  }
  return offsets
}

export class TfliteStrings extends BaseTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly hasData = true
  readonly metadata = NO_METADATA
  readonly name: string
  readonly shape: readonly number[]
  readonly #range: StringRange

  constructor(range: StringRange, shape: readonly number[], name: string) {
    super()
    this.name = name
    this.shape = shape
    this.#range = range
  }

  async rawStrings(): Promise<readonly Uint8Array[]> {
    const { source, start, end } = this.#range
    const offsets = await readOffsets(this.#range, this.size)
    const bytes = new Uint8Array(await source.read(start, end))
    return Array.from({ length: this.size }, (_, index) => bytes.subarray(offsets[index], offsets[index + 1]))
  }

  async strings(): Promise<readonly string[]> {
    return decodeStrings(await this.rawStrings(), this.name, FORMAT_NAME)
  }
}
