/**
 * A lossless protobuf message: it knows its range in the file, finds fields on access, writes changed fields anew, and
 * copies everything else, including unknown fields, byte for byte.
 *
 * Protobuf runtimes parse whole messages and may reorder fields, so they can neither skip payloads nor keep the bytes.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { FileFault } from '../../file_fault.js'
import type { WriteSegment } from '../../format.js'
import { FORMAT_NAME, isMessageKind, MAX_TEXT_BYTES, MESSAGES, type MessageName } from '../schema.js'
import { type PlannedMessage, planSparse, planTensor, segmentBytes } from '../tensor/plan.js'
import { checkInt64, checkText, checkTexts } from './field_input.js'
import { checkTinyMessages } from './tiny_messages.js'
import {
  eachField,
  FIELD_BYTES,
  FIXED32,
  GROUP_START,
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  WireCursor,
  walkSourceSync,
} from './wire.js'
import { WireWriter } from './wire_writer.js'

/** State shared by the messages of a file: its bytes, one cursor, and the open external files. */
export interface MessageFile {
  readonly source: ByteSource
  readonly cursor: WireCursor
  /** Open files of external data by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  readonly depthLimit: number
}

/** The file and range of a message that was read. */
export interface MessageOrigin {
  readonly file: MessageFile
  readonly start: number
  readonly end: number
}

/** A field, in the order of the message. */
export type MessageField =
  /** Unchanged bytes of the file; `message` once it was parsed. */
  | {
      readonly kind: 'kept'
      readonly number: number
      readonly wireType: number
      readonly start: number
      readonly valueStart: number
      /** Changes only while fields are parsed. */
      end: number
      message?: Message | undefined
      /** A run of adjacent fields with the same number; `valueStart` belongs to the first. */
      isRun?: boolean
    }
  /** Bytes of the whole field. */
  | { readonly kind: 'made'; readonly number: number; readonly bytes: Uint8Array }
  | { readonly kind: 'nested'; readonly number: number; readonly message: Message }
  | { readonly kind: 'tensor'; readonly number: number; readonly tensor: Tensor; readonly name: string }

type KeptField = Extract<MessageField, { kind: 'kept' }>

/** Number given to unknown fields, which are kept but never looked up; no known field has it. */
const UNKNOWN_FIELD = 0

/** Bytes of a number of a float field. */
const FLOAT_BYTES = 4

/** Size limit of a run of fields: access to one field copies the run. */
const MAX_RUN_BYTES = 64 * 1024

/** The first fields of a message are never joined to runs, so fields of nodes are read without a copy. */
const MAX_SINGLE_FIELDS = 16

/** Levels below a message whose edits it counts: from a graph down to the attributes of its nodes. */
const COUNTED_LEVELS = 2

/** Fields by name, for every message. */
const NUMBERS = new Map(
  Object.entries(MESSAGES).map(([message, fields]) => [
    message,
    new Map(fields.flatMap((field) => (field ? [[field.name, field] as const] : []))),
  ]),
)

export class Message {
  readonly type: MessageName
  readonly origin: MessageOrigin | undefined
  readonly #parent: Message | undefined
  readonly #depth: number
  #fields: MessageField[] | undefined
  #isChanged: boolean
  #edits = 0

  /** @param origin - absent for a new message, which has no fields */
  constructor(type: MessageName, origin?: MessageOrigin, parent?: Message) {
    this.type = type
    this.origin = origin
    this.#parent = parent
    this.#depth = parent ? parent.#depth + 1 : 1
    this.#isChanged = origin === undefined
    if (!origin) this.#fields = []
    else if (this.#depth > origin.file.depthLimit) {
      const message = `Messages are nested deeper than limits.depth, which is ${origin.file.depthLimit}.`
      throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, offset: origin.start })
    }
  }

  /** The enclosing message; undefined for the message of the file. */
  get parent(): Message | undefined {
    return this.#parent
  }

  /** True after any edit of the message or of a nested one. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** @throws TileworkError for bytes that are not fields, ERR_ASYNC_ONLY for a source without synchronous reads */
  get fields(): readonly MessageField[] {
    return this.#ownFields()
  }

  /**
   * Counts edits of this message and of `COUNTED_LEVELS` levels below. While the count of a graph is unchanged, so are its
   * nodes and values; subgraphs have their own counts.
   */
  get edits(): number {
    return this.#edits
  }

  has(name: string): boolean {
    const number = this.#number(name)
    return this.fields.some((field) => field.number === number)
  }

  /** Values of a length-delimited field. */
  byteValues(name: string): Uint8Array[] {
    return this.fieldsOf(name).flatMap((field) => this.#valuesOf(field))
  }

  /** The last value of a string field, as in protobuf; empty where it is absent. */
  text(name: string): string {
    const number = this.#number(name)
    const { fields } = this
    for (let at = fields.length - 1; at >= 0; at--) {
      const text = fields[at]!.number === number ? this.#textOf(fields[at]!) : undefined
      if (text !== undefined) return text
    }
    return ''
  }

  texts(name: string): string[] {
    const number = this.#number(name)
    const texts: string[] = []
    for (const field of this.fields) {
      if (field.number !== number) continue
      for (const text of this.#textsOf(field)) texts.push(text)
    }
    return texts
  }

  /** Values of an integer field, packed or not. */
  ints(name: string): (number | bigint)[] {
    return this.fieldsOf(name).flatMap((field) => this.#intsOf(field))
  }

  int(name: string): number | bigint | undefined {
    return this.ints(name).at(-1)
  }

  /**
   * Values of a float field, packed or not.
   *
   * @throws TileworkError ERR_HEADER for a packed run that is not a multiple of 4 bytes
   */
  floats(name: string): number[] {
    return this.fieldsOf(name).flatMap((field) =>
      this.#fixedOf(field).flatMap((run) => {
        if (run.byteLength % FLOAT_BYTES !== 0) throw this.#raggedRun(name, run.byteLength, field)
        const view = new DataView(run.buffer, run.byteOffset, run.byteLength)
        const count = run.byteLength / FLOAT_BYTES
        return Array.from({ length: count }, (_, at) => view.getFloat32(FLOAT_BYTES * at, true))
      }),
    )
  }

  /** Messages of a repeated field; the same objects each time. */
  messages(name: string): Message[] {
    const number = this.#number(name)
    const messages: Message[] = []
    for (const field of this.fields) {
      const message = field.number === number ? this.#messageOf(field) : undefined
      if (message) messages.push(message)
    }
    return messages
  }

  /**
   * The message of a singular field.
   *
   * @throws TileworkError ERR_UNSUPPORTED for repeated occurrences: protobuf would merge them, but no known writer does this
   */
  message(name: string): Message | undefined {
    const [message, ...others] = this.messages(name)
    if (others.length === 0) return message
    const text = `${this.type}.${name} occurs ${others.length + 1} times; it must occur once, since messages are not merged.`
    throw new TileworkError('ERR_UNSUPPORTED', text, { format: FORMAT_NAME, ...this.#offset() })
  }

  /** As all setters, changes nothing if it throws. @throws TileworkError ERR_ARGUMENT for a value of another type */
  setText(name: string, value: string): void {
    checkText(this.#what(name), value)
    this.#replaceAll(name, [new WireWriter().text(this.#number(name), value).finish()])
  }

  setTexts(name: string, values: readonly string[]): void {
    checkTexts(this.#what(name), values)
    const number = this.#number(name)
    this.#replaceAll(
      name,
      values.map((value) => new WireWriter().text(number, value).finish()),
    )
  }

  setInt(name: string, value: number | bigint): void {
    checkInt64(this.#what(name), value)
    this.#replaceAll(name, [new WireWriter().varint(this.#number(name), value).finish()])
  }

  setBytes(name: string, values: readonly Uint8Array[]): void {
    const number = this.#number(name)
    this.#replaceAll(
      name,
      values.map((value) => new WireWriter().bytes(number, value).finish()),
    )
  }

  setInts(name: string, values: readonly (number | bigint)[]): void {
    const number = this.#number(name)
    this.#replaceAll(
      name,
      values.map((value) => new WireWriter().varint(number, value).finish()),
    )
  }

  setFloats(name: string, values: readonly number[]): void {
    const number = this.#number(name)
    const bytesOf = (value: number): Uint8Array => new Uint8Array(Float32Array.of(value).buffer)
    this.#replaceAll(
      name,
      values.map((value) => new WireWriter().fixed(number, bytesOf(value)).finish()),
    )
  }

  clear(name: string): void {
    this.#replaceAll(name, [])
  }

  /** Inserts an empty message at index `at` of the repeated field; default: appended. */
  insert(name: string, at?: number): Message {
    return this.insertAll(name, 1, at)[0]!
  }

  /** Inserts `count` empty messages with one pass over the fields. */
  insertAll(name: string, count: number, at?: number): Message[] {
    const { kind, number } = this.#info(name)
    const messages = Array.from({ length: count }, () => new Message(kind as MessageName, undefined, this))
    this.#insertFields(
      number,
      messages.map((message): MessageField => ({ kind: 'nested', number, message })),
      at,
    )
    return messages
  }

  /** Appends a copy of a message of any file, as that message is now. */
  adopt(name: string, other: Message): Message {
    const message = other.#clone(this)
    const number = this.#number(name)
    this.#insertFields(number, [{ kind: 'nested', number, message }])
    return message
  }

  /** An independent copy without parent. */
  copy(): Message {
    return this.#clone(undefined)
  }

  #clone(parent: Message | undefined): Message {
    const clone = new Message(this.type, this.origin, parent)
    if (!this.#isChanged) return clone
    clone.#isChanged = true
    clone.#fields = this.fields.map((field) => {
      const isInside = field.kind === 'nested' || (field.kind === 'kept' && field.message?.isChanged)
      if (isInside) return { ...field, message: field.message!.#clone(clone) }
      if (field.kind !== 'kept') return field
      const { message, ...kept } = field
      return kept
    })
    return clone
  }

  /** Appends a tensor to the field, or replaces an occurrence. @returns the new occurrence */
  putTensor(name: string, tensor: Tensor, tensorName: string, replaced?: MessageField): MessageField {
    const number = this.#number(name)
    const field = { kind: 'tensor', number, tensor, name: tensorName } as const
    if (!replaced) this.#insertFields(number, [field])
    else {
      this.#ownFields()[this.fields.indexOf(replaced)] = field
      this.#noteChange()
    }
    return field
  }

  /** Appends several tensors with one pass over the fields. */
  putTensors(name: string, tensors: readonly { readonly tensor: Tensor; readonly name: string }[]): void {
    const number = this.#number(name)
    this.#insertFields(
      number,
      tensors.map((each): MessageField => ({ kind: 'tensor', number, tensor: each.tensor, name: each.name })),
    )
  }

  remove(field: MessageField): void {
    const index = this.fields.indexOf(field)
    if (index < 0) return
    this.#ownFields().splice(index, 1)
    this.#noteChange()
  }

  /** The field of a nested message; undefined for a message of another parent. */
  fieldOf(message: Message): MessageField | undefined {
    return this.fields.find((field) => 'message' in field && field.message === message)
  }

  removeAll(removed: Iterable<MessageField>): void {
    const left = new Set(removed)
    if (left.size > 0) this.#change((fields) => fields.filter((field) => !left.has(field)))
  }

  /** Reorders the occurrences of a field among the positions that they have now. */
  reorder(name: string, order: readonly MessageField[]): void {
    const number = this.#number(name)
    let next = 0
    this.#change((fields) => fields.map((field) => (field.number === number ? order[next++]! : field)))
  }

  fieldsOf(name: string): MessageField[] {
    const number = this.#number(name)
    return this.fields.filter((field) => field.number === number)
  }

  /**
   * The nested message of a field; undefined for new tensors and for scalars.
   *
   * @param remembers - false: the message is not kept, and the next call returns another object; for walks over whole
   * models that must not fill the memory
   */
  messageOf(field: MessageField, remembers = true): Message | undefined {
    return this.#messageOf(field, remembers)
  }

  /** False where a plan can copy the range of the file. */
  isWritten(other: Replacements | undefined): boolean {
    return this.#isChanged || other?.encloses(this) === true
  }

  /**
   * The message as ranges of the file and new bytes.
   *
   * @param other - replacements for nested messages
   * @throws TileworkError errors of planning and reading new tensors
   */
  async plan(other?: Replacements): Promise<PlannedMessage> {
    const segments = new Segments()
    const { origin } = this
    if (origin && !this.isWritten(other)) segments.range(origin.file.source, origin.start, origin.end)
    // Iterates over a copy: an edit during planning must not skip or repeat a field.
    else for (const field of [...this.fields]) await this.#planField(field, segments, other)
    return segments.finish()
  }

  /**
   * As `plan`, with some fields replaced.
   *
   * @param omitted - numbers of the fields to omit
   * @param made - new fields, inserted where fields of `number` belong
   */
  async planWith(
    omitted: ReadonlySet<number>,
    number: number,
    made: readonly WriteSegment[],
  ): Promise<PlannedMessage> {
    const fields = this.fields.filter((field) => !omitted.has(field.number))
    const at = insertionIndex(fields, number)
    const segments = new Segments()
    for (const field of fields.slice(0, at)) await this.#planField(field, segments)
    for (const segment of made) segments.segment(segment)
    for (const field of fields.slice(at)) await this.#planField(field, segments)
    return segments.finish()
  }

  async #planField(field: MessageField, segments: Segments, other?: Replacements): Promise<void> {
    const replacement = other?.of(field)
    if (replacement) segments.message(field.number, replacement)
    else if (field.kind === 'made') segments.bytes(field.bytes)
    else if (field.kind === 'kept' && !field.message?.isWritten(other)) {
      segments.range(this.origin!.file.source, field.start, field.end)
    } else if (field.kind === 'tensor') {
      const { tensor, name } = field
      const planned = await (tensor.kind === 'sparse' ? planSparse(tensor, name) : planTensor(tensor, name))
      segments.message(field.number, planned)
    } else {
      segments.message(field.number, await field.message!.plan(other))
    }
  }

  #parse(): MessageField[] {
    const { file, start, end } = this.origin!
    const { cursor } = file
    const infos = MESSAGES[this.type]
    // As in protobuf, a number where the schema has a message is an unknown field: kept, but not found by name.
    const known = (number: number, wireType: number): number => {
      const info = infos[number]
      return info && wireType !== LENGTH && isMessageKind(info.kind) ? UNKNOWN_FIELD : number
    }
    const kept = new KeptFields(start)
    cursor.position = start
    let messages = 0
    const steps = eachField(cursor, end, () => {
      const { wireType, start: tagStart, valueStart, position } = cursor
      const number = known(cursor.number, wireType)
      kept.addSkipped(tagStart)
      const info = infos[number]
      if (!info || !isMessageKind(info.kind)) {
        if (!kept.extendRun(number, wireType, tagStart, position, info?.isRepeated ?? true)) {
          kept.add({ kind: 'kept', number, wireType, start: tagStart, valueStart, end: position })
        }
      } else {
        checkTinyMessages(++messages, position - start, tagStart)
        // The property exists from the start: V8 would allocate a separate store for one that is added later.
        const message = undefined
        kept.add({ kind: 'kept', number, wireType, start: tagStart, valueStart, end: position, message })
      }
      return undefined
    })
    this.#walk(steps)
    kept.addSkipped(end)
    // `slice` drops the spare capacity of a grown array, which is most of the memory of a small node.
    return kept.fields.length <= MAX_SINGLE_FIELDS ? kept.fields.slice() : kept.fields
  }

  #walk<T>(steps: Steps<T>): T {
    const { cursor } = this.origin!.file
    return this.#withErrors(0, () => walkSourceSync(steps, cursor))
  }

  /** Converts wire faults in bytes at `offset` to errors of this message. */
  #withErrors<T>(offset: number, read: () => T): T {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof FileFault)) throw error
      throw new TileworkError(error.code, error.message, {
        format: FORMAT_NAME,
        path: this.type,
        offset: offset + error.offset,
      })
    }
  }

  /** Values of length-delimited fields. */
  #valuesOf(field: MessageField): Uint8Array[] {
    const values: Uint8Array[] = []
    this.#eachOf(field, (cursor) => {
      if (cursor.wireType === LENGTH) values.push(cursor.held(cursor.valueStart, cursor.position))
    })
    return values
  }

  /** The last length-delimited value as text; undefined where there is none. */
  #textOf(field: MessageField): string | undefined {
    if (field.kind !== 'kept' || field.isRun) return this.#valuesOf(field).map(textOf).at(-1)
    if (field.wireType !== LENGTH) return undefined
    const { valueStart, end } = field
    if (end - valueStart > MAX_TEXT_BYTES) throw this.#longText(end - valueStart)
    const { cursor } = this.origin!.file
    cursor.position = valueStart
    if (!cursor.holds(end - valueStart, end)) this.#walk(holdRange(cursor, valueStart, end))
    return cursor.heldText(valueStart, end)
  }

  #textsOf(field: MessageField): string[] {
    if (field.kind !== 'kept' || field.isRun) return this.#valuesOf(field).map(textOf)
    const text = this.#textOf(field)
    return text === undefined ? [] : [text]
  }

  #intsOf(field: MessageField): (number | bigint)[] {
    const numbers: (number | bigint)[] = []
    this.#eachOf(field, (cursor) => {
      if (cursor.wireType === VARINT) numbers.push(cursor.int64())
      if (cursor.wireType !== LENGTH) return
      const end = cursor.position
      cursor.position = cursor.valueStart
      while (cursor.position < end) {
        cursor.varint(end)
        numbers.push(cursor.int64())
      }
    })
    return numbers
  }

  #fixedOf(field: MessageField): Uint8Array[] {
    const values: Uint8Array[] = []
    this.#eachOf(field, (cursor) => {
      const isFloats = cursor.wireType === FIXED32 || cursor.wireType === LENGTH
      if (isFloats) values.push(cursor.held(cursor.valueStart, cursor.position))
    })
    return values
  }

  /** Visits the fields of a run, read from a copy of its bytes. */
  #eachOf(field: MessageField, visit: (cursor: WireCursor) => void): void {
    const bytes = this.#fieldBytes(field)
    this.#withErrors(field.kind === 'kept' ? field.start : 0, () => {
      const cursor = WireCursor.over(bytes)
      while (cursor.position < bytes.byteLength) {
        cursor.field(bytes.byteLength)
        visit(cursor)
      }
    })
  }

  /** The bytes of a field or run, tags included. */
  #fieldBytes(field: MessageField): Uint8Array {
    if (field.kind === 'made') return field.bytes
    if (field.kind !== 'kept') return new Uint8Array(0)
    if (field.end - field.start > MAX_TEXT_BYTES + FIELD_BYTES) throw this.#longText(field.end - field.start)
    return new Uint8Array(this.#walk(holdRange(this.origin!.file.cursor, field.start, field.end)))
  }

  #messageOf(field: MessageField, remembers = true): Message | undefined {
    if (field.kind === 'nested') return field.message
    if (field.kind !== 'kept' || field.wireType !== LENGTH) return undefined
    if (field.message) return field.message
    const { kind } = MESSAGES[this.type][field.number]!
    const origin = { file: this.origin!.file, start: field.valueStart, end: field.end }
    const message = new Message(kind as MessageName, origin, this)
    if (remembers) field.message = message
    return message
  }

  #replaceAll(name: string, made: readonly Uint8Array[]): void {
    const number = this.#number(name)
    const fields = made.map((bytes): MessageField => ({ kind: 'made', number, bytes }))
    this.#change((all) => {
      const first = all.findIndex((field) => field.number === number)
      const at = first >= 0 ? first : insertionIndex(all, number)
      const before = all.slice(0, at).filter((field) => field.number !== number)
      const behind = all.slice(at).filter((field) => field.number !== number)
      return [...before, ...fields, ...behind]
    })
  }

  /** @param at - index among the fields of the number; default: appended */
  #insertFields(number: number, fields: readonly MessageField[], at?: number): void {
    if (fields.length === 0) return
    const index = at === undefined ? endOf(this.fields, number) : indexAmong(this.fields, number, at)
    const [field] = fields
    // A single field is spliced in, so that appending to a long list does not copy it.
    if (fields.length === 1) this.#ownFields().splice(index, 0, field!)
    else this.#fields = this.fields.slice(0, index).concat(fields, this.fields.slice(index))
    this.#noteChange()
  }

  #ownFields(): MessageField[] {
    this.#fields ??= this.#parse()
    return this.#fields
  }

  #change(change: (fields: readonly MessageField[]) => MessageField[]): void {
    this.#fields = change(this.fields)
    this.#noteChange()
  }

  #noteChange(): void {
    let distance = 0
    for (let message: Message | undefined = this; message; message = message.#parent) {
      message.#isChanged = true
      if (distance++ <= COUNTED_LEVELS) message.#edits += 1
    }
  }

  #what(name: string): string {
    return `${this.type}.${name}`
  }

  #info(name: string): NonNullable<(typeof MESSAGES)[MessageName][number]> {
    const info = NUMBERS.get(this.type)!.get(name)
    if (info) return info
    throw new RangeError(`${this.type} has no field ${name}`)
  }

  #number(name: string): number {
    return this.#info(name).number
  }

  #offset(): { offset?: number } {
    return this.origin ? { offset: this.origin.start } : {}
  }

  #raggedRun(name: string, byteLength: number, field: MessageField): TileworkError {
    const message = `${this.type}.${name} has a packed run of ${byteLength} bytes; it must be a multiple of ${FLOAT_BYTES}.`
    const offset = field.kind === 'kept' ? field.start : 0
    return new TileworkError('ERR_HEADER', message, { format: FORMAT_NAME, path: this.type, offset })
  }

  #longText(byteLength: number): TileworkError {
    const message = `A field of ${this.type} has ${byteLength} bytes; the limit is ${MAX_TEXT_BYTES}.`
    return new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, ...this.#offset() })
  }
}

/** Collects the fields of a message while it is parsed. */
class KeptFields {
  readonly fields: KeptField[] = []
  /** End of the bytes that the fields cover. */
  #end: number

  constructor(start: number) {
    this.#end = start
  }

  add(field: KeptField): void {
    this.fields.push(field)
    this.#end = field.end
  }

  /** Joins a field to the run before it, so that a list of a million numbers is not a million objects. */
  extendRun(number: number, wireType: number, start: number, end: number, isList: boolean): boolean {
    const { fields } = this
    const last = fields.at(-1)
    if (!isList || fields.length < MAX_SINGLE_FIELDS || last?.number !== number || last.wireType !== wireType)
      return false
    if (last.end !== start || end - last.start > MAX_RUN_BYTES) return false
    last.end = end
    last.isRun = true
    this.#end = end
    return true
  }

  /** Keeps the bytes up to the next field, which are skipped groups. */
  addSkipped(next: number): void {
    const start = this.#end
    if (next === start) return
    this.add({
      kind: 'kept',
      number: UNKNOWN_FIELD,
      wireType: GROUP_START,
      start,
      valueStart: start,
      end: next,
    })
  }
}

/** Messages that a plan writes in place of fields of the model; the model does not change. */
export class Replacements {
  readonly #planned = new Map<MessageField, PlannedMessage>()
  readonly #enclosing = new Set<Message>()

  /** @param owner - the message with `field` */
  set(owner: Message, field: MessageField, planned: PlannedMessage): void {
    this.#planned.set(field, planned)
    for (let message: Message | undefined = owner; message; message = message.parent)
      this.#enclosing.add(message)
  }

  of(field: MessageField): PlannedMessage | undefined {
    return this.#planned.get(field)
  }

  /** True for a message with a replacement at any depth. */
  encloses(message: Message): boolean {
    return this.#enclosing.has(message)
  }
}

/** Index for a field of an absent number: writers order fields by number. */
function insertionIndex(fields: readonly MessageField[], number: number): number {
  const next = fields.findIndex((field) => field.number > number)
  return next < 0 ? fields.length : next
}

/** Index after the last field of a number, searched from the end, where most edits happen. */
function endOf(fields: readonly MessageField[], number: number): number {
  const last = fields.findLastIndex((field) => field.number === number)
  return last < 0 ? insertionIndex(fields, number) : last + 1
}

/** Index of occurrence `at` of a number, or the index after the last one. */
function indexAmong(fields: readonly MessageField[], number: number, at: number): number {
  let before = 0
  for (const [index, field] of fields.entries()) {
    if (field.number !== number) continue
    if (before === at) return index
    before += 1
  }
  return endOf(fields, number)
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Segments of a message; adjacent ranges of a source are joined. */
class Segments {
  readonly #segments: WriteSegment[] = []
  #byteLength = 0

  bytes(bytes: Uint8Array): void {
    this.#segments.push({ kind: 'bytes', bytes })
    this.#byteLength += bytes.byteLength
  }

  range(source: ByteSource, start: number, end: number): void {
    const last = this.#segments.at(-1)
    this.#byteLength += end - start
    if (last?.kind === 'range' && last.source === source && last.end === start) {
      this.#segments[this.#segments.length - 1] = { ...last, end }
    } else this.#segments.push({ kind: 'range', source, start, end })
  }

  message(number: number, { byteLength, segments }: PlannedMessage): void {
    this.bytes(new WireWriter().lengthOf(number, byteLength).finish())
    for (const segment of segments) this.#segments.push(segment)
    this.#byteLength += byteLength
  }

  segment(segment: WriteSegment): void {
    this.#segments.push(segment)
    this.#byteLength += segmentBytes(segment)
  }

  finish(): PlannedMessage {
    return { byteLength: this.#byteLength, segments: this.#segments }
  }
}
