/** Strings in memory as a tensor. */
import { checkName, checkOptions, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { BaseTensor } from './base_tensor.js'
import { checkShape, sizeExactOf } from './shape.js'
import type { StringTensor } from './tensor.js'

export interface StringTensorOptions {
  /** Default: one axis. */
  readonly shape?: readonly number[]
  readonly name?: string
}

/**
 * A tensor of strings, in row-major order. Bytes may be no UTF-8: `strings()` refuses them then, `rawStrings()` gives them.
 *
 * @throws TileworkError ERR_ARGUMENT for other values, and for a shape that they do not fill
 */
export function stringTensor(
  values: readonly (string | Uint8Array)[],
  options: StringTensorOptions = {},
): StringTensor {
  checkOptions(options, 'stringTensor', ['shape', 'name'])
  return readInput('The strings', () => {
    if (!Array.isArray(values)) {
      throw new TileworkError('ERR_ARGUMENT', `stringTensor takes an array; ${valueText(values)} was given.`)
    }
    const bytes = Array.from(values, (value: unknown, at) => bytesOf(value, at))
    const shape = checkShape(options.shape ?? [bytes.length])
    if (sizeExactOf(shape) !== BigInt(bytes.length)) {
      const message = `The shape [${shape}] has ${sizeExactOf(shape)} elements and ${bytes.length} strings were given.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    return new StringList(bytes, shape, checkName(options.name ?? ''))
  })
}

function bytesOf(value: unknown, at: number): Uint8Array {
  if (typeof value === 'string') return new Uint8Array(Buffer.from(value, 'utf8'))
  if (value instanceof Uint8Array) return new Uint8Array(value)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `Value ${at} is ${valueText(value)}; strings or their bytes are taken.`,
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

  /** @throws TileworkError ERR_DTYPE for a string that is no UTF-8 */
  async strings(): Promise<readonly string[]> {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    return this.#bytes.map((bytes, at) => {
      try {
        return decoder.decode(bytes)
      } catch (cause) {
        const message = `String ${at} of tensor ${valueText(this.name)} is not valid UTF-8; rawStrings() gives its bytes.`
        throw new TileworkError('ERR_DTYPE', message, { cause })
      }
    })
  }

  async rawStrings(): Promise<readonly Uint8Array[]> {
    return this.#bytes.map((bytes) => bytes.slice())
  }
}
