/**
 * The metadata of a file as a map from keys to values, in file order. Values of a file stay the bytes that they are until
 * someone asks for them: a vocabulary has 250,000 texts, and what nobody changes is written back byte for byte.
 */
import { inspect } from 'node:util'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import {
  arrayLength,
  decodeValue,
  encodeText,
  encodeValue,
  type GgufValue,
  type GgufValueInput,
  numberOfType,
  typedValue,
  u32Bytes,
  type ValueForm,
} from './metadata_values.js'
import { FORMAT_NAME, type GgufValueType, MAX_KEY_BYTES } from './schema.js'

/** A key as a file has it. */
interface StoredEntry {
  readonly form: ValueForm
  readonly type: GgufValueType
  /** The key without its length, which may not be UTF-8. */
  readonly key: Uint8Array
  /** The value without its type. */
  readonly bytes: Uint8Array
}

type Entry = StoredEntry | { readonly value: GgufValue }

export class GgufMetadata implements Iterable<[string, GgufValue]> {
  readonly #entries = new Map<string, Entry>()
  #changes = 0

  /** Number of keys. */
  get size(): number {
    return this.#entries.size
  }

  /** Number of changes since the file was read. */
  get changes(): number {
    return this.#changes
  }

  has(key: string): boolean {
    return this.#entries.has(key)
  }

  /** The value of a key, decoded anew by each call; undefined where there is none. */
  get(key: string): GgufValue | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    return 'value' in entry ? entry.value : decodeValue(entry.bytes, entry.type, entry.form)
  }

  /** The type of a value without decoding it: `array` for all arrays. */
  typeOf(key: string): GgufValueType | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    return 'value' in entry ? entry.value.type : entry.type
  }

  /** @internal The number of elements of an array without decoding it; undefined for other values. */
  arrayLengthOf(key: string): number | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    if ('value' in entry) return entry.value.type === 'array' ? entry.value.value.length : undefined
    return entry.type === 'array' ? arrayLength(entry.bytes, entry.form) : undefined
  }

  /**
   * Sets a value in place of the one that the key has, or adds the key at the end. A plain number keeps the type of the key.
   *
   * @param input - with its type as `{ type, value }`, or plain: text, booleans, whole numbers (uint32, int32, int64), other
   * numbers (float32), bigints (uint64, int64), typed arrays, lists of texts
   * @throws TileworkError ERR_ARGUMENT for a value that no type holds; ERR_UNSUPPORTED for text that is not UTF-8
   */
  set(key: string, input: GgufValueInput): this {
    checkKey(key)
    const value = typedValue(input, key, this.typeOf(key))
    // What cannot be written is refused here, where the caller is.
    encodeValue(value, key)
    this.#entries.set(key, { value })
    this.#changes++
    return this
  }

  /** @returns false where there is no such key */
  delete(key: string): boolean {
    const isKnown = this.#entries.delete(key)
    if (isKnown) this.#changes++
    return isKnown
  }

  keys(): IterableIterator<string> {
    return this.#entries.keys()
  }

  *[Symbol.iterator](): Iterator<[string, GgufValue]> {
    for (const key of this.keys()) yield [key, this.get(key)!]
  }

  toJSON(): Record<string, unknown> {
    return Object.fromEntries(Array.from(this, ([key, value]) => [key, value]))
  }

  [inspect.custom](): string {
    return `GgufMetadata(${this.size}) { ${[...this.keys()].slice(0, 20).join(', ')} }`
  }

  /** @internal Adds a key of a file; false where it is there already. */
  addStored(key: string, entry: StoredEntry): boolean {
    if (this.#entries.has(key)) return false
    this.#entries.set(key, entry)
    return true
  }

  /** @internal Places of the stored values, for checks. */
  *stored(): Iterable<[string, StoredEntry]> {
    for (const [key, entry] of this.#entries) if (!('value' in entry)) yield [key, entry]
  }

  /** @internal The bytes of all keys as versions 2 and 3 store them. */
  *encoded(): Iterable<Uint8Array> {
    for (const [key, entry] of this.#entries) {
      if ('value' in entry) {
        yield encodeText(key, 'A key')
        yield encodeValue(entry.value, key)
      } else if (entry.form.isLittleEndian && !entry.form.isOld) {
        yield lengthOf(entry.key)
        yield entry.key
        yield u32Bytes(numberOfType(entry.type))
        yield entry.bytes
      } else {
        yield lengthOf(entry.key)
        yield entry.key
        yield encodeValue(decodeValue(entry.bytes, entry.type, entry.form), key)
      }
    }
  }

  /** A copy with a key, if it is there, before all others. */
  withFirst(key: string): GgufMetadata {
    const entry = this.#entries.get(key)
    const copy = new GgufMetadata()
    if (entry) copy.#entries.set(key, entry)
    for (const [other, value] of this.#entries) copy.#entries.set(other, value)
    return copy
  }

  /** A copy that shares the stored values. */
  copy(): GgufMetadata {
    const copy = new GgufMetadata()
    for (const [key, entry] of this.#entries) copy.#entries.set(key, entry)
    return copy
  }
}

function lengthOf({ byteLength }: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(byteLength))
  return bytes
}

/** @throws TileworkError ERR_ARGUMENT for what cannot be a key */
function checkKey(key: unknown): void {
  if (typeof key === 'string' && key !== '' && Buffer.byteLength(key) <= MAX_KEY_BYTES) return
  const message = `A key is ${valueText(key)}; it must be a text of 1 to ${MAX_KEY_BYTES} bytes.`
  throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
}
