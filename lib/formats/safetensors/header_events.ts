/**
 * Turns JSON events into header entries. It checks the structure of the header; the values are checked elsewhere. Unknown
 * content is ignored, as in the reference.
 */
import { toUSVString } from 'node:util'
import { FileFault } from '../file_fault.js'
import type { JsonHandler } from '../json_events.js'
import type { Place, Report } from '../report.js'
import {
  LAYOUT_KEY_PREFIX,
  MAX_METADATA_ENTRIES,
  MAX_RANK,
  METADATA_KEY,
  quote,
  tensorPath,
} from './schema.js'

/** An exact number of the header; undefined for anything but a whole number from 0. */
export type Spelled = number | bigint | undefined

/** A value of an entry and its byte offset. */
export interface Field<T> {
  readonly value: T
  readonly at: number
}

/** An unchecked entry of the header. A field is absent where the header lacks it or its value has the wrong JSON type. */
export interface HeaderEntry {
  readonly name: string
  readonly nameAt: number
  dtype?: Field<string>
  /** Dimensions beyond the maximum rank are counted, not kept. */
  shape?: Field<Spelled[]> & { count: number }
  offsets?: Field<Spelled[]> & { count: number }
}

type Context = 'start' | 'root' | 'metadata' | 'entry' | 'list' | 'unknown'

export class HeaderEvents implements JsonHandler {
  /** The metadata of the file; undefined where it has none. */
  metadata: Map<string, string> | undefined
  /** Offsets of the layout entries, the only metadata that later checks report on. */
  readonly metadataAt = new Map<string, number>()
  /** Number of invalid entries. Bytes that look unused may belong to them. */
  unreadable = 0
  readonly #report: Report
  readonly #finishEntry: (entry: HeaderEntry) => void
  #context: Context = 'start'
  /** The context to resume after an unknown value, and the nesting depth inside it. */
  #outer: Context = 'start'
  #depth = 0
  #key = ''
  #keyAt = 0
  #entry: HeaderEntry = { name: '', nameAt: 0 }
  #list: Spelled[] = []
  #seen = new Set<string>()
  #hasMetadata = false

  constructor(report: Report, finishEntry: (entry: HeaderEntry) => void) {
    this.#report = report
    this.#finishEntry = finishEntry
  }

  key(name: string, at: number): void {
    this.#checkUnicode(name, at)
    if (this.#context === 'unknown') return
    this.#key = name
    this.#keyAt = at
    if (this.#context === 'entry') this.#startField(name, at)
    if (this.#context === 'metadata' && this.metadata?.has(name)) {
      const message = `The metadata have the key ${quote(name)} twice; the last value counts.`
      this.#report.deviation('ERR_DUPLICATE', message, this.#metadataPlace(at))
    }
  }

  beginObject(at: number): void {
    if (this.#context === 'start') {
      this.#context = 'root'
    } else if (this.#context === 'root') {
      this.#beginRootValue(at)
    } else {
      this.#beginUnknown('an object', at)
    }
  }

  endObject(): void {
    if (this.#endUnknown()) return
    if (this.#context === 'entry') this.#finishEntry(this.#entry)
    this.#context = 'root'
  }

  beginArray(at: number): void {
    const isList = this.#context === 'entry' && (this.#key === 'shape' || this.#key === 'data_offsets')
    if (!isList) {
      this.#beginUnknown('an array', at)
      return
    }
    this.#context = 'list'
    this.#list = []
    const field = { value: this.#list, at, count: 0 }
    if (this.#key === 'shape') this.#entry.shape = field
    else this.#entry.offsets = field
  }

  endArray(): void {
    if (!this.#endUnknown()) this.#context = 'entry'
  }

  value(kind: 'string' | 'number' | 'literal', text: string, at: number): void {
    if (kind === 'string') this.#checkUnicode(text, at)
    switch (this.#context) {
      case 'list':
        this.#addNumber(kind === 'number' ? wholeNumber(text) : undefined)
        return
      case 'entry':
        if (this.#key === 'dtype' && kind === 'string') this.#entry.dtype = { value: text, at }
        return
      case 'metadata':
        if (kind === 'string') this.#setMetadata(text)
        else this.#refuseMetadata(kind === 'number' ? 'a number' : text, at)
        return
      case 'unknown':
        return
      default:
        this.#refuseRootValue(kind === 'literal' ? text : `a ${kind}`, at)
    }
  }

  #beginRootValue(at: number): void {
    if (this.#key !== METADATA_KEY) {
      this.#context = 'entry'
      this.#entry = { name: this.#key, nameAt: this.#keyAt }
      this.#seen.clear()
      return
    }
    this.#context = 'metadata'
    if (this.#hasMetadata) {
      const message = `The header has ${METADATA_KEY} twice; the last one counts.`
      this.#report.deviation('ERR_DUPLICATE', message, this.#metadataPlace(at))
    }
    this.#hasMetadata = true
    this.metadata = new Map()
    this.metadataAt.clear()
  }

  #startField(name: string, at: number): void {
    if (name !== 'dtype' && name !== 'shape' && name !== 'data_offsets') {
      const path = tensorPath(this.#entry.name)
      const message = `${path} has the key ${quote(name)}, which is not part of the format; readers ignore it.`
      this.#report.note('ERR_HEADER', message, { path, offset: at })
      return
    }
    if (this.#seen.has(name)) {
      const path = tensorPath(this.#entry.name)
      const place = { path: `${path}.${name}`, offset: at }
      this.#report.deviation('ERR_DUPLICATE', `${path} has ${name} twice; the last one counts.`, place)
    }
    this.#seen.add(name)
    // The last value counts even where its type is wrong, so the earlier one is dropped.
    delete this.#entry[name === 'data_offsets' ? 'offsets' : name]
  }

  #addNumber(number: Spelled): void {
    const field = this.#key === 'shape' ? this.#entry.shape : this.#entry.offsets
    field!.count += 1
    if (this.#list.length <= MAX_RANK) this.#list.push(number)
  }

  #setMetadata(text: string): void {
    this.metadata!.set(this.#key, text)
    if (this.#key.startsWith(LAYOUT_KEY_PREFIX)) this.metadataAt.set(this.#key, this.#keyAt)
    if (this.metadata!.size <= MAX_METADATA_ENTRIES) return
    const message = `The metadata have more than ${MAX_METADATA_ENTRIES} entries.`
    throw new FileFault('ERR_LIMIT', message, this.#keyAt)
  }

  #refuseMetadata(what: string, at: number): void {
    const message = `The metadata value of ${quote(this.#key)} is ${what}; expected a string.`
    this.#report.deviation('ERR_HEADER', message, this.#metadataPlace(at))
  }

  #refuseRootValue(what: string, at: number): void {
    if (this.#context === 'start') {
      this.#report.broken('ERR_HEADER', `The header is ${what}; expected an object.`, {
        path: '',
        offset: at,
      })
    } else if (this.#key !== METADATA_KEY) {
      const path = tensorPath(this.#key)
      this.unreadable += 1
      this.#report.broken('ERR_HEADER', `${path} is ${what}; expected an object.`, { path, offset: at })
    } else if (what === 'null') {
      const message = `${METADATA_KEY} is null; the reference reads it as absent.`
      this.#report.note('ERR_HEADER', message, this.#metadataPlace(at))
    } else {
      const message = `${METADATA_KEY} is ${what}; expected an object.`
      this.#report.deviation('ERR_HEADER', message, this.#metadataPlace(at))
    }
  }

  #beginUnknown(what: string, at: number): void {
    if (this.#context === 'unknown') {
      this.#depth += 1
      return
    }
    if (this.#context === 'metadata') this.#refuseMetadata(what, at)
    if (this.#context === 'list') this.#addNumber(undefined)
    if (this.#context === 'root' || this.#context === 'start') this.#refuseRootValue(what, at)
    this.#outer = this.#context
    this.#context = 'unknown'
    this.#depth = 1
  }

  /** True where the value that ends is part of an ignored value. */
  #endUnknown(): boolean {
    if (this.#context !== 'unknown') return false
    this.#depth -= 1
    if (this.#depth === 0) this.#context = this.#outer
    return true
  }

  #checkUnicode(text: string, at: number): void {
    if (toUSVString(text) === text) return
    const message = `The text ${quote(text)} has an unpaired surrogate, which is not valid Unicode.`
    this.#report.deviation('ERR_HEADER', message, { path: '', offset: at })
  }

  #metadataPlace(offset: number): Place {
    return { path: METADATA_KEY, offset }
  }
}

/** Digits of the largest unsigned 64-bit number. Longer numbers are out of range, and slow to convert. */
const U64_DIGITS = 20

/** A whole number from 0, exact; undefined for other spellings, `-0`, `1.0` and `1e3` included, as in the reference. */
function wholeNumber(spelling: string): Spelled {
  if (!/^\d+$/.test(spelling)) return undefined
  const number = Number(spelling)
  if (Number.isSafeInteger(number)) return number
  return spelling.length > U64_DIGITS ? 10n ** BigInt(U64_DIGITS) : BigInt(spelling)
}
