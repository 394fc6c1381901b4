/** Tensors of strings in memory. */
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { isWellFormed } from '../utf8.js'
import { valueText } from '../value_text.js'
import { BaseTensor } from './base_tensor.js'
import { decodeStrings } from './decode_strings.js'
import { checkShape, sizeExactOf } from './shape.js'
import type { StringTensor } from './tensor.js'

export interface StringTensorOptions {
  /** Default: one axis. */
  readonly shape?: readonly number[]
  readonly name?: string
}

/**
 * A tensor of strings in row-major order. Bytes that are not UTF-8 are kept: `rawStrings()` returns them and `strings()` throws
 * ERR_DTYPE.
 *
 * @throws TileworkError ERR_ARGUMENT for other values, and for a shape of another size
 */
export function stringTensor(
  values: readonly (string | Uint8Array)[],
  options: StringTensorOptions = {},
): StringTensor {
  checkOptions(options, 'stringTensor', ['shape', 'name'])
  return readInput('The strings', () => {
    if (!Array.isArray(values)) {
      throw new TileworkError('ERR_ARGUMENT', `values is ${valueText(values)}; stringTensor takes an array.`)
    }
    const bytes = Array.from(values, (value: unknown, at) => bytesOf(value, at))
    const shape = checkShape(options.shape ?? [bytes.length])
    if (sizeExactOf(shape) !== BigInt(bytes.length)) {
      const message = `${bytes.length} strings were given; the shape [${shape}] has ${sizeExactOf(shape)} elements.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    return new StringList(bytes, shape, checkName(options.name ?? ''))
  })
}

function bytesOf(value: unknown, at: number): Uint8Array {
  if (typeof value === 'string' && isWellFormed(value)) return new Uint8Array(Buffer.from(value, 'utf8'))
  if (value instanceof Uint8Array) return new Uint8Array(value)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `values[${at}] is ${valueText(value)}; it must be a string without lone surrogates, or a Uint8Array.`,
  )
}

class StringList extends BaseTensor implements StringTensor {
  readonly kind = 'string'
  readonly dtype = 'string'
  readonly hasData = true
  readonly metadata: ReadonlyMap<string, string> = new Map()
  readonly name: string
  readonly shape: readonly number[]
  readonly #bytes: readonly Uint8Array[]

  constructor(bytes: readonly Uint8Array[], shape: readonly number[], name: string) {
    super()
    this.#bytes = bytes
    this.shape = shape
    this.name = name
  }

  /** @throws TileworkError ERR_DTYPE for a string that is not UTF-8 */
  async strings(): Promise<readonly string[]> {
    return decodeStrings(this.#bytes, this.name)
  }

  async rawStrings(): Promise<readonly Uint8Array[]> {
    return this.#bytes.map((bytes) => bytes.slice())
  }
}
