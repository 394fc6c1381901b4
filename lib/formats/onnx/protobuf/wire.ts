/**
 * Reads the protobuf wire format: a message is a list of fields, a field is a tag (number and wire type) and a value.
 *
 * The cursor reads tags and numbers from a window of the source and skips length-delimited values, so payloads cost
 * nothing. A walk over messages is a generator that yields when the window must move; `walkSource` and `walkSourceSync`
 * drive the same walk asynchronously and synchronously. Errors are `FileFault`s, which the driver's caller reports.
 *
 * Source: "Encoding" in the documentation of Protocol Buffers. The limits of ten bytes per varint and 32 bits per tag are
 * those of its runtimes.
 */
import { isUtf8 } from 'node:buffer'
import { asyncOnlyError } from '../../../bytes/check_range.js'
import { drive, driveSync } from '../../../bytes/drive.js'
import { readInto } from '../../../bytes/fill_memory.js'
import type { ByteSource } from '../../../bytes/source.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { isYieldDue } from '../../../event_loop.js'
import { FileFault } from '../../file_fault.js'

export const VARINT = 0
export const FIXED64 = 1
export const LENGTH = 2
export const GROUP_START = 3
export const GROUP_END = 4
export const FIXED32 = 5

/** Maximum length of a tag with a number, or with a length. */
export const FIELD_BYTES = 20
/** Maximum length of a varint. */
export const VARINT_BYTES = 10
/** Fields with a number below this have a tag of one byte. */
const ONE_BYTE_NUMBERS = 16

/**
 * Window sizes. After a jump over a payload the window is as small as a typical tensor header; it doubles while reading
 * continues in sequence.
 */
const FIRST_WINDOW_BYTES = 512
const LAST_WINDOW_BYTES = 256 * 1024

/**
 * Largest value behind a window that counts as reading in sequence: one page, which the system reads at once anyway. Without
 * it each window of a graph would end in a name and start the sizes anew.
 */
const NEAR_BYTES = 4096

const TWO_POW_32 = 2 ** 32
/** High halves of integers up to 2^53 - 1 are below this. */
const SAFE_HIGH_LIMIT = 2 ** 21

interface SpareWindow {
  readonly buffer: Uint8Array<ArrayBuffer>
  readonly window: Uint8Array
  readonly start: number
  readonly bytes: number
}

/** A walk; yields the number of bytes that it needs in the window from the cursor's position on. */
export type Steps<T> = Generator<number, T, void>

/** Runs a walk over any source. */
export function walkSource<T>(steps: Steps<T>, cursor: WireCursor): Promise<T> {
  // Synchronous reads of a local file are faster, and there may be one per tensor.
  const isSyncDue = (): boolean => cursor.isSync && !isYieldDue()
  return drive(steps, (count) => (isSyncDue() ? cursor.loadSync(count) : cursor.load(count)))
}

/** As `walkSource`, synchronously. @throws TileworkError ERR_ASYNC_ONLY for a source without synchronous reads */
export function walkSourceSync<T>(steps: Steps<T>, cursor: WireCursor): T {
  return driveSync(steps, (count) => cursor.loadSync(count))
}

export class WireCursor {
  readonly #source: ByteSource | undefined
  /** Memory of the cursor, overwritten by each load. */
  #buffer: Uint8Array<ArrayBuffer> = new Uint8Array(0)
  #window: Uint8Array = this.#buffer
  /** The window as a Buffer, which decodes short texts faster than TextDecoder. */
  #text: Buffer | undefined
  #windowStart = 0
  #windowBytes = FIRST_WINDOW_BYTES
  /** The window before this one: nodes and their types are often read in turn, from two parts of a file. */
  #other: SpareWindow | undefined
  /** Bytes read from the source so far. */
  bytesRead = 0
  /** Byte offset of the next field, after the value of the current one. */
  position = 0

  /** The current field: number, wire type, offsets of its tag and its value. */
  number = 0
  wireType = 0
  start = 0
  valueStart = 0
  /** Halves of the last varint, unsigned. */
  low = 0
  high = 0

  /** @param source - absent for bytes in memory; see `over` */
  constructor(source?: ByteSource) {
    this.#source = source
  }

  /**
   * A cursor over bytes in memory, which must not change. It never loads.
   *
   * @param start - offset that the cursor reports for the first byte
   */
  static over(bytes: Uint8Array, start = 0): WireCursor {
    const cursor = new WireCursor()
    cursor.#window = bytes
    cursor.#windowStart = start
    cursor.position = start
    return cursor
  }

  /** True where the source supports `loadSync`. */
  get isSync(): boolean {
    return this.#source?.readIntoSync !== undefined
  }

  /** True when `count` bytes from the position on, or all bytes before `end`, are in the window. */
  holds(count: number, end: number): boolean {
    const at = this.position - this.#windowStart
    const wanted = Math.min(count, end - this.position)
    return at >= 0 && at + wanted <= this.#window.byteLength
  }

  /** True when bytes `[start, end)` are in the window. */
  holdsRange(start: number, end: number): boolean {
    return start >= this.#windowStart && end <= this.#windowStart + this.#window.byteLength
  }

  /** True when the next field can be read without a load. */
  holdsField(end: number): boolean {
    return this.holds(FIELD_BYTES, end)
  }

  /**
   * As `field`, where the window holds the field.
   *
   * @returns false at the end, before a field that needs a load, and before a group; the position is unchanged then
   */
  heldField(end: number): boolean {
    if (this.#shortField(end)) return true
    const { position } = this
    if (position >= end || !this.holdsField(end)) return false
    this.field(end)
    if (this.wireType !== GROUP_START && this.wireType !== GROUP_END) return true
    this.position = position
    return false
  }

  async load(count: number): Promise<void> {
    const source = this.#sourceAtEnd(count)
    if (this.#swapWindow(count)) return
    const window = this.#moveWindow(count, source.byteLength)
    await readInto(source, this.#windowStart, window)
  }

  /** @throws TileworkError ERR_ASYNC_ONLY, and errors of the source */
  loadSync(count: number): void {
    const source = this.#sourceAtEnd(count)
    if (this.#swapWindow(count)) return
    const window = this.#moveWindow(count, source.byteLength)
    const start = this.#windowStart
    if (source.readIntoSync) source.readIntoSync(start, window)
    else if (source.readSync) window.set(source.readSync(start, start + window.byteLength))
    else throw asyncOnlyError(source.label)
  }

  /**
   * Reads the tag and number of the field at the position; of a length-delimited value only the length. Moves the position
   * past the value.
   *
   * @param end - end of the message
   * @throws FileFault
   */
  field(end: number): void {
    this.start = this.position
    this.#varint(end)
    if (this.high !== 0 || this.low < 8) throw this.#tagFault()
    this.number = this.low >>> 3
    this.wireType = this.low & 7
    this.valueStart = this.position
    switch (this.wireType) {
      case VARINT:
        this.#varint(end)
        return
      case FIXED64:
        this.#skip(8, end)
        return
      case LENGTH:
        this.#varint(end)
        this.valueStart = this.position
        this.#skip(this.#whole(), end)
        return
      case FIXED32:
        this.#skip(4, end)
        return
      case GROUP_START:
      case GROUP_END:
        return
      default:
        throw new FileFault(
          'ERR_HEADER',
          `Field ${this.number} has the wire type ${this.wireType}; it must be 0 to 5.`,
          this.start,
        )
    }
  }

  /** Reads a length-delimited field with one byte of tag and one of length, as most are. @returns false for any other */
  #shortField(end: number): boolean {
    const start = this.position
    const valueStart = start + 2
    const at = start - this.#windowStart
    if (valueStart > end || at < 0 || at + 1 >= this.#window.byteLength) return false
    const tag = this.#window[at]!
    const length = this.#window[at + 1]!
    const isShort = (tag & 0x87) === LENGTH && tag >= 8 && length < 0x80 && length <= end - valueStart
    if (!isShort) return false
    this.start = start
    this.number = tag >>> 3
    this.wireType = LENGTH
    this.valueStart = valueStart
    this.position = valueStart + length
    return true
  }

  /**
   * Offset after the current field and all that follow it with the same number and wire type, as far as the window has them: for
   * walks that have nothing to do with them. Repeated numbers are often not packed, and a call for each takes most of the time.
   *
   * The position must be after the current field. A field that `field` refuses, and one with a tag of several bytes, ends the run.
   */
  endOfRun(end: number): number {
    const base = this.#windowStart
    const window = this.#window
    const at = this.position - base
    const held = Math.min(end - base, window.byteLength)
    if (this.number >= ONE_BYTE_NUMBERS || at < 0 || at >= held) return this.position
    const run: Run = { window, at, held, tag: (this.number << 3) | this.wireType }
    switch (this.wireType) {
      case VARINT:
        return base + endOfVarints(run)
      case FIXED64:
        return base + endOfFixed(run, 8)
      case LENGTH:
        return base + endOfShortValues(run, end - base)
      case FIXED32:
        return base + endOfFixed(run, 4)
      default:
        return this.position
    }
  }

  /** Reads the next varint of a packed run into `low` and `high`. @throws FileFault */
  varint(end: number): void {
    this.#varint(end)
  }

  /** The last varint as a signed 64-bit integer; a bigint beyond 2^53 - 1. */
  int64(): number | bigint {
    if (this.high < SAFE_HIGH_LIMIT) return this.#whole()
    const value = BigInt.asIntN(64, (BigInt(this.high) << 32n) | BigInt(this.low))
    const isSafe = value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER
    return isSafe ? Number(value) : value
  }

  /** The last varint as protobuf reads an int32: its low 32 bits. */
  int32(): number {
    return this.low | 0
  }

  /** Bytes `[start, end)`, which the window must hold, as a view that the next load overwrites. */
  held(start: number, end: number): Uint8Array {
    return this.#window.subarray(start - this.#windowStart, end - this.#windowStart)
  }

  /** The bytes in memory, which a load replaces: for short texts, of which a view takes longer to make than to read. */
  get window(): Uint8Array {
    return this.#window
  }

  /** Offset of the window in the file. */
  get windowStart(): number {
    return this.#windowStart
  }

  /** True where the bytes, which the window must hold, are UTF-8. */
  isUtf8(start: number, end: number): boolean {
    const base = -this.#windowStart
    let at = start
    // Names are short and ASCII; a view and a call of the system's check for each would take ten times as long.
    while (at < end && this.#window[base + at]! < 0x80) at++
    return at === end || isUtf8(this.held(at, end))
  }

  /** As `held`, decoded; invalid UTF-8 becomes U+FFFD. */
  heldText(start: number, end: number): string {
    const window = this.#window
    this.#text ??= Buffer.from(window.buffer, window.byteOffset, window.byteLength)
    return this.#text.toString('utf8', start - this.#windowStart, end - this.#windowStart)
  }

  #sourceAtEnd(count: number): ByteSource {
    if (this.#source) return this.#source
    throw new FileFault('ERR_TRUNCATED', `The message ends; ${count} more bytes are needed.`, this.position)
  }

  /** Changes to the other window unless the position continues this one. @returns true where it holds the bytes */
  #swapWindow(count: number): boolean {
    if (this.#isNear()) return false
    const empty = new Uint8Array(0)
    const other = this.#other ?? { buffer: empty, window: empty, start: 0, bytes: FIRST_WINDOW_BYTES }
    this.#other = {
      buffer: this.#buffer,
      window: this.#window,
      start: this.#windowStart,
      bytes: this.#windowBytes,
    }
    this.#buffer = other.buffer
    this.#window = other.window
    this.#windowStart = other.start
    this.#windowBytes = other.bytes
    this.#text = undefined
    return this.holdsRange(this.position, this.position + count)
  }

  #moveWindow(count: number, byteLength: number): Uint8Array {
    const isNear = this.#isNear()
    this.#windowBytes = isNear ? Math.min(2 * this.#windowBytes, LAST_WINDOW_BYTES) : FIRST_WINDOW_BYTES
    const wanted = Math.max(count, this.#windowBytes)
    // Nodes are also read backwards, from the outputs of a graph on, and in turn with the node before.
    const isBackwards = isNear && this.position < this.#windowStart
    const margin = isBackwards ? wanted - FIRST_WINDOW_BYTES : isNear ? Math.min(NEAR_BYTES, wanted >> 2) : 0
    const start = Math.max(0, this.position - margin)
    const length = Math.min(Math.max(wanted, this.position + count - start), byteLength - start)
    // Allocates no more than it reads: there may be a cursor per tensor, and most read once.
    if (length > this.#buffer.byteLength) this.#buffer = allocateBytes(length)
    this.#window = this.#buffer.subarray(0, length)
    this.#text = undefined
    this.#windowStart = start
    this.bytesRead += length
    return this.#window
  }

  /** True where the position continues the window, forwards or backwards, or skips a short value behind it. */
  #isNear(): boolean {
    const end = this.#windowStart + this.#window.byteLength
    return this.position >= this.#windowStart - this.#window.byteLength && this.position <= end + NEAR_BYTES
  }

  #varint(end: number): void {
    let low = 0
    let high = 0
    const last = Math.min(end, this.position + VARINT_BYTES)
    const base = -this.#windowStart
    let at = this.position
    for (let shift = 0; at < last; shift += 7) {
      const byte = this.#window[base + at]!
      at += 1
      const bits = byte & 0x7f
      if (shift < 28) low |= bits << shift
      else if (shift === 28) {
        low |= bits << 28
        high |= bits >>> 4
      } else high |= bits << (shift - 32)
      if (byte < 0x80) {
        this.low = low >>> 0
        this.high = high >>> 0
        this.position = at
        return
      }
    }
    throw this.#varintFault(end)
  }

  /**
   * The last varint as one number, exact below 2^53. The product is avoided for small values: V8 would box it as a heap
   * number of 16 bytes, and so every offset computed from it.
   */
  #whole(): number {
    return this.high === 0 ? this.low : this.high * TWO_POW_32 + this.low
  }

  #skip(count: number, end: number): void {
    if (count > end - this.position) throw this.#skipFault(count, end)
    this.position += count
  }

  /** The commonest damage is a file that was not copied to its end. */
  #skipFault(count: number, end: number): FileFault {
    const found = end - this.position
    const message =
      end === this.#source?.byteLength
        ? `The file ends ${count - found} bytes too early, inside field ${this.number} of ${count} bytes: was it copied whole?`
        : `Field ${this.number} has ${count} bytes; its message ends after ${found}.`
    return new FileFault('ERR_TRUNCATED', message, this.start)
  }

  #tagFault(): FileFault {
    const what = this.high === 0 ? 'the number 0' : 'a number beyond 2^29 - 1'
    return new FileFault('ERR_HEADER', `A field has ${what}; it must be 1 to 2^29 - 1.`, this.start)
  }

  #varintFault(end: number): FileFault {
    if (end - this.position >= VARINT_BYTES) {
      return new FileFault('ERR_HEADER', `A varint has more than ${VARINT_BYTES} bytes.`, this.position)
    }
    return new FileFault('ERR_TRUNCATED', 'The message ends inside a varint.', this.position)
  }
}

/** Fields that may continue a run; `at` is the index in the window of the first, `held` the end of the bytes that may be read. */
interface Run {
  readonly window: Uint8Array
  readonly at: number
  readonly held: number
  readonly tag: number
}

/** Index after the varint fields, of which each has at most `VARINT_BYTES` bytes of value. */
function endOfVarints({ window, at, held, tag }: Run): number {
  let end = at
  while (end + 1 < held && window[end] === tag) {
    let last = end + 1
    // Most numbers have one byte.
    if (window[last]! >= 0x80) {
      const longest = Math.min(held, last + VARINT_BYTES) - 1
      while (last < longest && window[last]! >= 0x80) last++
      if (window[last]! >= 0x80) return end
    }
    end = last + 1
  }
  return end
}

function endOfFixed({ window, at, held, tag }: Run, byteLength: number): number {
  let end = at
  while (end + byteLength < held && window[end] === tag) end += 1 + byteLength
  return end
}

/**
 * Index after the length-delimited fields, of which each has a length of one or two bytes.
 *
 * @param limit - index of the end of the message, which a value must not exceed; the last one may exceed the window
 */
function endOfShortValues({ window, at, held, tag }: Run, limit: number): number {
  let end = at
  while (end + 2 < held && window[end] === tag) {
    const low = window[end + 1]!
    const high = low < 0x80 ? 0 : window[end + 2]!
    if (high >= 0x80) return end
    const next = end + (low < 0x80 ? 2 + low : 3 + (low & 0x7f) + 128 * high)
    if (next > limit) return end
    end = next
  }
  return end
}

/** Nesting limit of groups. ONNX defines none, so groups are skipped as unknown fields. */
const MAX_GROUPS = 100

/** Skips the group whose start tag is the current field. @throws FileFault where it does not end */
export function* skipGroup(cursor: WireCursor, end: number): Steps<void> {
  const { start } = cursor
  const open = [cursor.number]
  while (open.length > 0) {
    if (cursor.position >= end)
      throw new FileFault('ERR_TRUNCATED', 'The message ends inside a group.', start)
    if (!cursor.holdsField(end)) yield FIELD_BYTES
    cursor.field(end)
    if (cursor.wireType === GROUP_START) open.push(cursor.number)
    if (cursor.wireType === GROUP_END && open.pop() !== cursor.number) {
      throw new FileFault('ERR_HEADER', `Group ${cursor.number} ends inside another group.`, cursor.start)
    }
    if (open.length > MAX_GROUPS) {
      throw new FileFault('ERR_LIMIT', `Groups are nested deeper than ${MAX_GROUPS}.`, cursor.start)
    }
  }
}

/**
 * Reads the fields from the position to `end` and calls `visit` for each, which finds it in the cursor. Groups are skipped.
 *
 * @param visit - returns a walk into the value, or the byte offset of a later field to continue at
 */
export function* eachField(
  cursor: WireCursor,
  end: number,
  visit: () => Steps<void> | number | undefined,
): Steps<void> {
  while (cursor.position < end) {
    if (!cursor.heldField(end)) {
      if (!cursor.holdsField(end)) yield FIELD_BYTES
      cursor.field(end)
      if (cursor.wireType === GROUP_END)
        throw new FileFault('ERR_HEADER', `Group ${cursor.number} ends without a start.`, cursor.start)
      if (cursor.wireType === GROUP_START) {
        yield* skipGroup(cursor, end)
        continue
      }
    }
    const next = cursor.position
    const inside = visit()
    if (typeof inside === 'object') yield* inside
    cursor.position = typeof inside === 'number' ? inside : next
  }
}

/**
 * As `eachField`, without a generator while the window holds the fields: most messages of a graph are a few bytes, and a
 * generator for each would cost more than reading them.
 *
 * @returns the walk over what is left; undefined where nothing is
 */
export function visitFields(
  cursor: WireCursor,
  end: number,
  visit: () => Steps<void> | number | undefined,
): Steps<void> | undefined {
  while (cursor.heldField(end)) {
    const next = cursor.position
    const inside = visit()
    if (typeof inside === 'object') return resumeFields(cursor, { inside, next, end }, visit)
    cursor.position = typeof inside === 'number' ? inside : next
  }
  return cursor.position < end ? eachField(cursor, end, visit) : undefined
}

/** Continues `visitFields` with the walk into a field, and at the field after it. */
function* resumeFields(
  cursor: WireCursor,
  { inside, next, end }: { readonly inside: Steps<void>; readonly next: number; readonly end: number },
  visit: () => Steps<void> | number | undefined,
): Steps<void> {
  yield* inside
  cursor.position = next
  yield* eachField(cursor, end, visit)
}

/** Calls `action` after a walk, at once where there is none. */
export function afterSteps(steps: Steps<void> | undefined, action: () => void): Steps<void> | undefined {
  if (steps) return stepsAndThen(steps, action)
  action()
  return undefined
}

function* stepsAndThen(steps: Steps<void>, action: () => void): Steps<void> {
  yield* steps
  action()
}

/** As `eachField`, without loads: stops before the first field that is not in the window or that `visit` refuses. */
export function heldFields(cursor: WireCursor, end: number, visit: () => boolean): void {
  let { position } = cursor
  while (cursor.heldField(end)) {
    if (!visit()) {
      cursor.position = position
      return
    }
    position = cursor.position
  }
}

/** Loads `[start, end)` into the window and returns it as `held` does. */
export function* holdRange(cursor: WireCursor, start: number, end: number): Steps<Uint8Array> {
  cursor.position = start
  if (!cursor.holds(end - start, end)) yield end - start
  return cursor.held(start, end)
}
