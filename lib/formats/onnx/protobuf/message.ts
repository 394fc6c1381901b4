/**
 * A message that remembers where it was read: fields are found when someone asks for them, changed ones are written anew,
 * and everything else, known or not, goes from file to file as it stands.
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

/** What messages of one file share: its bytes, one cursor over them, and the other files that tensors lie in. */
export interface MessageFile {
  readonly source: ByteSource
  readonly cursor: WireCursor
  /** Open files of external data by location. */
  readonly files: ReadonlyMap<string, ByteSource>
  readonly depthLimit: number
}

/** Where a message was read. */
export interface MessageOrigin {
  readonly file: MessageFile
  readonly start: number
  readonly end: number
}

/** A field in the order of the message. */
export type MessageField =
  /** As it stands in the file; `message` where it was looked into. */
  | {
      readonly kind: 'kept'
      readonly number: number
      readonly wireType: number
      readonly start: number
      readonly valueStart: number
      /** Changes only while fields are read. */
      end: number
      message?: Message | undefined
      /** Several fields of one number behind each other, of which `valueStart` is of the first. */
      isRun?: boolean
    }
  /** Bytes of the whole field. */
  | { readonly kind: 'made'; readonly number: number; readonly bytes: Uint8Array }
  | { readonly kind: 'nested'; readonly number: number; readonly message: Message }
  | { readonly kind: 'tensor'; readonly number: number; readonly tensor: Tensor; readonly name: string }

/** The number of fields that are kept and never asked for; no field of a message has it. */
const UNKNOWN_FIELD = 0

/** Of a number of a float field. */
const FLOAT_BYTES = 4

/** Most bytes of fields that are kept as one: they are copied when one of them is asked for. */
const MAX_RUN_BYTES = 64 * 1024

/** So many fields of a message are kept one by one: those of a node are read without a copy then. */
const FIRST_FIELDS = 16

/** Levels below a message whose changes it counts: from a graph to the attributes of its nodes. */
const COUNTED_LEVELS = 2

/** Numbers of all fields by name, for every message. */
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
      const message = `Messages are nested deeper than ${origin.file.depthLimit}, which is limits.depth.`
      throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, offset: origin.start })
    }
  }

  /** The message that it is a field of; absent for that of the file. */
  get parent(): Message | undefined {
    return this.#parent
  }

  /** True when anything in it is not as it was read. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /** @throws TileworkError for bytes that are no fields, ERR_ASYNC_ONLY for a source that cannot be read at once */
  get fields(): readonly MessageField[] {
    return this.#ownFields()
  }

  /**
   * Counts changes to this message, its fields' messages and those in these. Two equal numbers say that nothing of what a
   * node or value of a graph says has changed; graphs inside have numbers of their own.
   */
  get edits(): number {
    return this.#edits
  }

  has(name: string): boolean {
    const number = this.#number(name)
    return this.fields.some((field) => field.number === number)
  }

  /** Bytes of the values of a field with a length. */
  byteValues(name: string): Uint8Array[] {
    return this.fieldsOf(name).flatMap((field) => this.#valuesOf(field))
  }

  /** The last value of a text, as protobuf reads it; empty where there is none. */
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

  /** Numbers of an integer field, packed or not. */
  ints(name: string): (number | bigint)[] {
    return this.fieldsOf(name).flatMap((field) => this.#intsOf(field))
  }

  int(name: string): number | bigint | undefined {
    return this.ints(name).at(-1)
  }

  /**
   * Numbers of a float field, packed or not.
   *
   * @throws TileworkError ERR_HEADER for a packed run that ends inside a number
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

  /** Messages of a repeated field. The same objects each time. */
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
   * The message of a field that occurs once.
   *
   * @throws TileworkError ERR_UNSUPPORTED where it occurs more often: protobuf merges them, which no writer asks for
   */
  message(name: string): Message | undefined {
    const [message, ...others] = this.messages(name)
    if (others.length === 0) return message
    const text = `${this.type}.${name} occurs ${others.length + 1} times; such messages are not merged.`
    throw new TileworkError('ERR_UNSUPPORTED', text, { format: FORMAT_NAME, ...this.#place() })
  }

  /** This and the other setters change nothing where they throw. @throws TileworkError ERR_ARGUMENT for what is no such value */
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

  /** A new message at a place among those of the field; behind them where it is left out. */
  insert(name: string, at?: number): Message {
    return this.insertAll(name, 1, at)[0]!
  }

  /** As `insert`, with several behind each other, for the price of one. */
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

  /** A copy of another message, behind those of the field; of this file or another, as it is now. */
  adopt(name: string, other: Message): Message {
    const message = other.#clone(this)
    const number = this.#number(name)
    this.#insertFields(number, [{ kind: 'nested', number, message }])
    return message
  }

  /** A copy as it is now, which has no parent; changes of one are none of the other. */
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

  /** A tensor behind the messages of the field, or in place of one of them. @returns the field that it is now */
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

  /** Tensors behind the messages of the field, for the price of one. */
  putTensors(name: string, tensors: readonly { readonly tensor: Tensor; readonly name: string }[]): void {
    const number = this.#number(name)
    this.#insertFields(
      number,
      tensors.map((each): MessageField => ({ kind: 'tensor', number, tensor: each.tensor, name: each.name })),
    )
  }

  remove(field: MessageField): void {
    const place = this.fields.indexOf(field)
    if (place < 0) return
    this.#ownFields().splice(place, 1)
    this.#noteChange()
  }

  /** The field that a message is; undefined where it is none of this one. */
  fieldOf(message: Message): MessageField | undefined {
    return this.fields.find((field) => 'message' in field && field.message === message)
  }

  removeAll(removed: Iterable<MessageField>): void {
    const left = new Set(removed)
    if (left.size > 0) this.#change((fields) => fields.filter((field) => !left.has(field)))
  }

  /** Brings the fields of a name into another order, at the places that they have. */
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
   * The message that a field is; undefined for a tensor that was put there, and for what is no message.
   *
   * @param remembers - false: what is read of it is forgotten, and the next call gives another object; for walks over
   * whole models, of which nothing is to stay in memory
   */
  messageOf(field: MessageField, remembers = true): Message | undefined {
    return this.#messageOf(field, remembers)
  }

  /** False where a plan can copy the bytes of the file. */
  isWritten(other: Replacements | undefined): boolean {
    return this.#isChanged || other?.isAround(this) === true
  }

  /**
   * The message as pieces of the file and new bytes.
   *
   * @param other - messages that are written otherwise than they are here
   * @throws TileworkError what planning and reading new tensors throws
   */
  async plan(other?: Replacements): Promise<PlannedMessage> {
    const pieces = new Pieces()
    const { origin } = this
    if (origin && !this.isWritten(other)) pieces.range(origin.file.source, origin.start, origin.end)
    // A copy: whoever edits the model while it is written gets old or new fields, and each once.
    else for (const field of [...this.fields]) await this.#planField(field, pieces, other)
    return pieces.finish()
  }

  /**
   * As `plan`, with other fields in the place of some.
   *
   * @param left - numbers of the fields that are left out
   * @param made - whole fields, put where those of `number` belong
   */
  async planWith(
    left: ReadonlySet<number>,
    number: number,
    made: readonly WriteSegment[],
  ): Promise<PlannedMessage> {
    const fields = this.fields.filter((field) => !left.has(field.number))
    const at = placeFor(fields, number)
    const pieces = new Pieces()
    for (const field of fields.slice(0, at)) await this.#planField(field, pieces)
    for (const segment of made) pieces.segment(segment)
    for (const field of fields.slice(at)) await this.#planField(field, pieces)
    return pieces.finish()
  }

  async #planField(field: MessageField, pieces: Pieces, other?: Replacements): Promise<void> {
    const replacement = other?.of(field)
    if (replacement) pieces.message(field.number, replacement)
    else if (field.kind === 'made') pieces.bytes(field.bytes)
    else if (field.kind === 'kept' && !field.message?.isWritten(other)) {
      pieces.range(this.origin!.file.source, field.start, field.end)
    } else if (field.kind === 'tensor') {
      const { tensor, name } = field
      const planned = await (tensor.kind === 'sparse' ? planSparse(tensor, name) : planTensor(tensor, name))
      pieces.message(field.number, planned)
    } else {
      pieces.message(field.number, await field.message!.plan(other))
    }
  }

  #parse(): MessageField[] {
    const { file, start, end } = this.origin!
    const { cursor } = file
    const infos = MESSAGES[this.type]
    // A number in the place of a message is an unknown field, as for protobuf: kept, and no field of that name.
    const known = (number: number, wireType: number): number => {
      const info = infos[number]
      return info && wireType !== LENGTH && isMessageKind(info.kind) ? UNKNOWN_FIELD : number
    }
    const fields: MessageField[] = []
    cursor.position = start
    let keptTo = start
    let messages = 0
    const steps = eachField(cursor, end, () => {
      const { wireType, start: tagStart, valueStart, position } = cursor
      const number = known(cursor.number, wireType)
      keepGroups(tagStart)
      const info = infos[number]
      if (!info || !isMessageKind(info.kind)) {
        if (!goesOn(number, wireType, tagStart, position, info?.isRepeated ?? true)) {
          fields.push({ kind: 'kept', number, wireType, start: tagStart, valueStart, end: position })
        }
      } else {
        checkTinyMessages(++messages, position - start, tagStart)
        // Its place for the message is made with it: one that is added later is memory of its own.
        const message = undefined
        fields.push({ kind: 'kept', number, wireType, start: tagStart, valueStart, end: position, message })
      }
      keptTo = position
      return undefined
    })
    this.#walk(steps)
    keepGroups(end)
    // A list that grew has room for sixteen more, which in a node of a few bytes is most of its memory.
    return fields.length <= FIRST_FIELDS ? fields.slice() : fields

    /** Makes the last field longer by one of its kind: a list of a million numbers is no million objects. */
    function goesOn(number: number, wireType: number, from: number, to: number, isList: boolean): boolean {
      const last = fields.at(-1)
      if (
        !isList ||
        fields.length < FIRST_FIELDS ||
        last?.kind !== 'kept' ||
        last.number !== number ||
        last.wireType !== wireType
      )
        return false
      if (last.end !== from || to - last.start > MAX_RUN_BYTES) return false
      last.end = to
      last.isRun = true
      return true
    }

    /** Groups are stepped over without a visit; what lies between two fields is some of them. */
    function keepGroups(next: number): void {
      if (next === keptTo) return
      fields.push({
        kind: 'kept',
        number: UNKNOWN_FIELD,
        wireType: GROUP_START,
        start: keptTo,
        valueStart: keptTo,
        end: next,
      })
    }
  }

  #walk<T>(steps: Steps<T>): T {
    const { cursor } = this.origin!.file
    return this.#tellFaults(0, () => walkSourceSync(steps, cursor))
  }

  /** Faults of the wire in bytes that lie at `offset`, as errors of this message. */
  #tellFaults<T>(offset: number, read: () => T): T {
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

  /** Value bytes of fields with a length. */
  #valuesOf(field: MessageField): Uint8Array[] {
    const values: Uint8Array[] = []
    this.#eachOf(field, (cursor) => {
      if (cursor.wireType === LENGTH) values.push(cursor.held(cursor.valueStart, cursor.position))
    })
    return values
  }

  /** The last of values with a length as text; undefined for what has none. */
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

  /** Reads the fields that stand behind each other as one, from a copy of their bytes. */
  #eachOf(field: MessageField, visit: (cursor: WireCursor) => void): void {
    const bytes = this.#fieldBytes(field)
    this.#tellFaults(field.kind === 'kept' ? field.start : 0, () => {
      const cursor = WireCursor.over(bytes)
      while (cursor.position < bytes.byteLength) {
        cursor.field(bytes.byteLength)
        visit(cursor)
      }
    })
  }

  /** Tags and values. */
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
      const at = first >= 0 ? first : placeFor(all, number)
      const before = all.slice(0, at).filter((field) => field.number !== number)
      const behind = all.slice(at).filter((field) => field.number !== number)
      return [...before, ...fields, ...behind]
    })
  }

  /** @param at - how many of the number stand before them; all where it is left out */
  #insertFields(number: number, fields: readonly MessageField[], at?: number): void {
    if (fields.length === 0) return
    const place = at === undefined ? endOf(this.fields, number) : placeAmong(this.fields, number, at)
    const [field] = fields
    // A list of many is not copied for one more.
    if (fields.length === 1) this.#ownFields().splice(place, 0, field!)
    else this.#fields = this.fields.slice(0, place).concat(fields, this.fields.slice(place))
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

  #place(): { offset?: number } {
    return this.origin ? { offset: this.origin.start } : {}
  }

  #raggedRun(name: string, byteLength: number, field: MessageField): TileworkError {
    const message = `${this.type}.${name} has a packed run of ${byteLength} bytes; its numbers have ${FLOAT_BYTES}.`
    const offset = field.kind === 'kept' ? field.start : 0
    return new TileworkError('ERR_HEADER', message, { format: FORMAT_NAME, path: this.type, offset })
  }

  #longText(byteLength: number): TileworkError {
    const message = `A field of ${this.type} has ${byteLength} bytes; the limit is ${MAX_TEXT_BYTES}.`
    return new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, ...this.#place() })
  }
}

/** Messages that a plan writes otherwise than they are in the model, which stays as it is. */
export class Replacements {
  readonly #planned = new Map<MessageField, PlannedMessage>()
  readonly #around = new Set<Message>()

  /** @param owner - the message that `field` is in */
  set(owner: Message, field: MessageField, planned: PlannedMessage): void {
    this.#planned.set(field, planned)
    for (let message: Message | undefined = owner; message; message = message.parent)
      this.#around.add(message)
  }

  of(field: MessageField): PlannedMessage | undefined {
    return this.#planned.get(field)
  }

  /** True for a message with a replaced one somewhere in it. */
  isAround(message: Message): boolean {
    return this.#around.has(message)
  }
}

/** Where a field of a number that is not there belongs: writers put fields in the order of their numbers. */
function placeFor(fields: readonly MessageField[], number: number): number {
  const next = fields.findIndex((field) => field.number > number)
  return next < 0 ? fields.length : next
}

/** Behind the last field of a number, looked for from the end: most edits add there. */
function endOf(fields: readonly MessageField[], number: number): number {
  const last = fields.findLastIndex((field) => field.number === number)
  return last < 0 ? placeFor(fields, number) : last + 1
}

/** Where a field stands that has `at` of its number before it, or all where there are fewer. */
function placeAmong(fields: readonly MessageField[], number: number, at: number): number {
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

/** Pieces of a message, those that lie behind each other joined. */
class Pieces {
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
