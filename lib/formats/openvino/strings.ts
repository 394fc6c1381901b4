/**
 * String constants of an IR: the count as int32, as many offsets and the end of the last text, then the texts. Offsets count from
 * the end of the offsets.
 */
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { BaseTensor } from '../../tensor/base_tensor.js'
import { decodeStrings } from '../../tensor/decode_strings.js'
import type { StringTensor } from '../../tensor/tensor.js'
import { quote } from '../quote.js'
import { FORMAT_NAME } from './schema.js'

const I32_BYTES = 4

export interface StringRange {
  readonly source: ByteSource
  readonly start: number
  readonly end: number
}

/** @throws TileworkError ERR_OFFSET_RANGE where the count is not that of the shape, or offsets go down or outside */
export async function readStrings(
  { source, start, end }: StringRange,
  count: number,
  name: string,
): Promise<Uint8Array[]> {
  const refuse = (what: string): TileworkError =>
    new TileworkError('ERR_OFFSET_RANGE', `The texts of ${quote(name)} ${what}.`, {
      format: FORMAT_NAME,
      offset: start,
    })
  if (count === 0) return []
  // The size of the constant was checked to hold the offsets.
  const bytes = new Uint8Array(await source.read(start, end))
  const view = new DataView(bytes.buffer)
  if (view.getInt32(0, true) !== count) throw refuse(`are ${view.getInt32(0, true)}; the shape has ${count}`)
  const textsAt = I32_BYTES * (count + 2)
  const offset = (index: number): number => view.getInt32(I32_BYTES * (index + 1), true)
  return Array.from({ length: count }, (_, index) => {
    const [from, to] = [offset(index), offset(index + 1)]
    if (from < 0 || to < from || (index === 0 && from !== 0) || to > bytes.length - textsAt) {
      throw refuse(
        `have the offsets ${from} and ${to}, which go down or lead out of ${bytes.length - textsAt} bytes`,
      )
    }
    return bytes.subarray(textsAt + from, textsAt + to)
  })
}

/** @throws TileworkError ERR_OVERFLOW for more bytes than an int32 counts */
export function encodeStrings(texts: readonly Uint8Array[], name: string): Uint8Array {
  const head = new DataView(new ArrayBuffer(I32_BYTES * (texts.length + 2)))
  head.setInt32(0, texts.length, true)
  let end = 0
  for (const [index, { byteLength }] of texts.entries()) {
    end += byteLength
    head.setInt32(I32_BYTES * (index + 2), end, true)
  }
  if (end > 2 ** 31 - 1) {
    throw new TileworkError(
      'ERR_OVERFLOW',
      `The texts of ${quote(name)} have ${end} bytes; an IR takes up to 2^31 - 1.`,
      { format: FORMAT_NAME },
    )
  }
  return Buffer.concat([new Uint8Array(head.buffer), ...texts])
}

export class OpenvinoStrings extends BaseTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly hasData = true
  readonly name: string
  readonly shape: readonly number[]
  readonly metadata: ReadonlyMap<string, string>
  readonly #range: StringRange

  constructor(range: StringRange, about: Pick<StringTensor, 'shape' | 'name' | 'metadata'>) {
    super()
    this.name = about.name
    this.shape = about.shape
    this.metadata = about.metadata
    this.#range = range
  }

  async rawStrings(): Promise<readonly Uint8Array[]> {
    return readStrings(this.#range, this.size, this.name)
  }

  async strings(): Promise<readonly string[]> {
    return decodeStrings(await this.rawStrings(), this.name, FORMAT_NAME)
  }
}
