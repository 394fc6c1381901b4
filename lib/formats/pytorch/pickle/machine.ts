/**
 * The stack machine of Python's pickles, for data alone. It makes the values of `values.ts` and nothing else: names are looked up
 * in the allow-list, and "calls" are the rows of `calls.ts`. No step is recursive, and everything that the machine keeps is
 * charged to a budget. Source: Python's `pickletools`.
 */
import { FileFault } from '../../file_fault.js'
import { quote } from '../../quote.js'
import type { HeapBudget } from '../heap_budget.js'
import { allowedGlobal, fullName } from './globals.js'
import { PickleGlobal, PickleOpaque, type PickleValue, type StorageValue } from './values.js'

/** What a pickle may do beyond making values. */
export interface PickleContext {
  readonly heap: HeapBudget
  /** Whether the classes of TorchScript are allowed. */
  readonly isScript: boolean
  /** Reports a name outside the allow-list, or throws for it. */
  refuseName(name: string, offset: number): void
  /** The storage that a persistent id names. */
  storageOf(id: readonly PickleValue[], offset: number): StorageValue
}

export interface PickleBytes {
  readonly bytes: Uint8Array
  /** Where the pickle starts in `bytes`. */
  readonly start: number
  /** File offset of the first of `bytes`, for errors. */
  readonly fileOffset: number
}

/** The pickle needs more bytes than there are. A stream is then read further; elsewhere it is cut. */
export class PickleCut extends FileFault {}

export class PickleMachine {
  readonly context: PickleContext
  /** Offset in the bytes of what is read next. */
  position: number
  readonly #bytes: Buffer
  readonly #view: DataView
  readonly #fileOffset: number
  /** Offset of the current opcode. */
  #at = 0
  readonly #stack: PickleValue[] = []
  /** Heights of the stack at the open marks. */
  readonly #marks: number[] = []
  /** Entries by index; those that a file numbers with gaps are in `#farMemo`. */
  readonly #memo: PickleValue[] = []
  readonly #farMemo = new Map<number, PickleValue>()

  constructor({ bytes, start, fileOffset }: PickleBytes, context: PickleContext) {
    this.context = context
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#fileOffset = fileOffset
    this.position = start
  }

  /** File offset of the current opcode. */
  get offset(): number {
    return this.#fileOffset + this.#at
  }

  fault(code: FileFault['code'], what: string): FileFault {
    return new FileFault(code, `The pickle at ${this.offset}: ${what}.`, this.offset)
  }

  nextOpcode(): number {
    this.#at = this.position
    return this.u8()
  }

  u8(): number {
    return this.#bytes[this.#take(1)]!
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true)
  }

  i32(): number {
    return this.#view.getInt32(this.#take(4), true)
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true)
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), false)
  }

  skip(count: number): void {
    this.#take(count)
  }

  /** A copy: the pickle is not kept. */
  data(length: number): Uint8Array {
    const at = this.#take(length)
    this.spend(OBJECT_BYTES + length)
    return new Uint8Array(this.#bytes.subarray(at, at + length))
  }

  /** UTF-8. @throws FileFault ERR_HEADER for bytes that are not */
  text(length: number): string {
    const at = this.#take(length)
    this.spend(TEXT_BYTES + 2 * length)
    const text = this.#bytes.toString('utf8', at, at + length)
    // The replacement of a wrong byte, unless the text has that character itself.
    if (!text.includes('\ufffd')) return text
    try {
      return utf8.decode(this.#bytes.subarray(at, at + length))
    } catch {
      throw this.fault('ERR_HEADER', 'a text is not valid UTF-8')
    }
  }

  /** Two's complement, little-endian. */
  integer(length: number): number | bigint {
    const at = this.#take(length)
    this.spend(OBJECT_BYTES + length)
    let value = 0n
    for (let byte = length - 1; byte >= 0; byte--) value = (value << 8n) | BigInt(this.#bytes[at + byte]!)
    const signed = BigInt.asIntN(8 * length, value)
    const number = Number(signed)
    return Number.isSafeInteger(number) ? number : signed
  }

  /** The bytes up to a line feed. */
  line(): string {
    const end = this.#bytes.indexOf(LINE_FEED, this.position)
    if (end < 0) throw this.#cut()
    const text = this.text(end - this.position)
    this.position = end + 1
    return text
  }

  push(value: PickleValue): void {
    this.spend(SLOT_BYTES)
    this.#stack.push(value)
  }

  /** The value on top of the stack, above the last mark. */
  pop(): PickleValue {
    if (this.#stack.length <= (this.#marks.at(-1) ?? 0)) throw this.fault('ERR_HEADER', 'the stack is empty')
    return this.#stack.pop()!
  }

  /** As `pop`, and leaves it there. */
  peek(): PickleValue {
    const value = this.pop()
    this.#stack.push(value)
    return value
  }

  mark(): void {
    this.spend(SLOT_BYTES)
    this.#marks.push(this.#stack.length)
  }

  /** The values above the last mark, which is removed. */
  popMark(): PickleValue[] {
    const height = this.#marks.pop()
    if (height === undefined) throw this.fault('ERR_HEADER', 'there is no mark on the stack')
    return this.#stack.splice(height)
  }

  remember(index: number = this.#memo.length + this.#farMemo.size): void {
    const value = this.peek()
    this.spend(MEMO_BYTES)
    if (index < this.#memo.length) this.#memo[index] = value
    else if (index === this.#memo.length) this.#memo.push(value)
    else this.#farMemo.set(index, value)
  }

  recall(index: number): void {
    const value = index < this.#memo.length ? this.#memo[index] : this.#farMemo.get(index)
    if (value === undefined) throw this.fault('ERR_HEADER', `nothing is stored under ${index}`)
    this.push(value)
  }

  /** Pushes what a name means: a row of the allow-list, or an opaque value where the caller reads on. */
  pushGlobal(module: PickleValue, name: PickleValue): void {
    if (typeof module !== 'string' || typeof name !== 'string') {
      throw this.fault('ERR_HEADER', 'the name of a global is not a text')
    }
    this.push(this.#global(fullName(module, name)))
  }

  /** Charges memory to the budget. @throws FileFault ERR_LIMIT */
  spend(bytes: number): void {
    this.context.heap.spend(bytes, this.offset)
  }

  #global(name: string): PickleGlobal | PickleOpaque {
    const known = allowedGlobal(name, this.context.isScript)
    if (known) return known
    this.context.refuseName(name, this.offset)
    return new PickleOpaque(name)
  }

  /** Advances by `count` bytes. @returns where they start */
  #take(count: number): number {
    const at = this.position
    if (count > this.#bytes.length - at) throw this.#cut()
    this.position = at + count
    return at
  }

  #cut(): PickleCut {
    const end = this.#fileOffset + this.#bytes.length
    return new PickleCut(
      'ERR_TRUNCATED',
      `The pickle at ${this.offset} continues after its end at ${end}.`,
      this.offset,
    )
  }
}

const LINE_FEED = 0x0a
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Bytes of the JavaScript heap that a value takes, rounded up: of an object, a text without characters, a list entry. */
export const OBJECT_BYTES = 48
const TEXT_BYTES = 32
const MEMO_BYTES = 16
/** A reference on the stack, and the number that it may refer to. */
const SLOT_BYTES = 16

/** What a message calls a value. */
export function describeValue(value: PickleValue): string {
  if (value instanceof PickleGlobal || value instanceof PickleOpaque) return value.name
  if (typeof value === 'string') return quote(value)
  if (value === null || typeof value !== 'object') return String(value)
  return `a ${value.constructor.name.replace(/^Pickle|Value$/g, '').toLowerCase()}`
}
