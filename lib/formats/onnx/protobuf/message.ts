/**
 * A lossless protobuf message: a range of the file, and the fields that were changed since. Fields are found in the bytes on
 * access; unchanged bytes, unknown fields included, are copied as they are.
 *
 * Protobuf runtimes parse whole messages and may reorder fields, so they can neither skip payloads nor keep the bytes.
 */
import { MemorySource } from '../../../bytes/memory.js'
import { allocateBytes } from '../../../bytes/view_limit.js'
import { TileworkError } from '../../../errors.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { FileFault } from '../../file_fault.js'
import type { WriteSegment } from '../../format.js'
import {
  DEFAULT_LIMITS,
  ENUM_SIZES,
  type FieldInfo,
  FORMAT_NAME,
  fieldInfo,
  MAX_TEXT_BYTES,
  MESSAGES,
  type MessageName,
} from '../schema.js'
import { type PlannedMessage, planSparse, planTensor } from '../tensor/plan.js'
import { EditedBytes, isText, MAX_EDITED_BYTES, type MessageFile } from './edited_bytes.js'
import { checkInt64, checkText, checkTexts } from './field_input.js'
import { type Chunk, FieldLists, type Item, type Listed, type Scalar } from './field_lists.js'
import { canBe } from './message_kind.js'
import { Segments } from './segments.js'
import { checkTinyMessages } from './tiny_messages.js'
import { eachField, holdRange, LENGTH, WireCursor, walkSourceSync } from './wire.js'
import { WireWriter } from './wire_writer.js'

/** The file and range of a message that was read. */
export interface MessageOrigin {
  readonly file: MessageFile
  readonly start: number
  readonly end: number
  /** Offset of the tag; absent where the message is not one whole field of the file. */
  readonly tagStart?: number
}

/** A tensor that is encoded when the model is saved. */
export class NewTensor implements Listed {
  readonly kind = 'tensor'
  chunk: Chunk | undefined
  readonly tensor: Tensor
  readonly name: string

  constructor(tensor: Tensor, name: string) {
    this.tensor = tensor
    this.name = name
    this.chunk = undefined
  }
}

/** Gets `bytes[start, end)` of a field; a view would take longer to make than to compare. Must keep no bytes and read no message. */
export type TextVisit = (bytes: Uint8Array, start: number, end: number, field: number) => void

/** What a visit returns that read no field inside and need not see the fields that continue the run; see `endOfRun`. */
const SKIP_RUN = 'skip run'
type FieldVisited = typeof SKIP_RUN | undefined
type FieldVisit = (cursor: WireCursor) => FieldVisited

/** An occurrence of a field with messages. */
export type MessageField = Message | NewTensor

/** Messages that a large graph has by the hundred thousand, and whose edits change names and types. */
const EDITED_IN_BYTES: ReadonlySet<MessageName> = new Set(['NodeProto', 'ValueInfoProto'])

/** A new message has no bytes. */
const NO_FIELDS = WireCursor.over(new Uint8Array(0))

/** Field numbers of all messages are below this, so that a bit set has them. */
const FIELD_NUMBERS = 32

/** Bytes of a number of a float field. */
const FLOAT_BYTES = 4
/** Bytes of the tags of fields that `endOfRun` skips. */
const TAG_BYTES = 1

/** Longer messages keep an index of their runs of fields; others are scanned at each access. */
const MIN_INDEXED_BYTES = 4096

/** Size limit of a message that is joined from several occurrences, which is done in memory. */
const MAX_MERGED_BYTES = 2 ** 28

/** Messages that a walk over a model reads at once. */
const BATCH_MESSAGES = 256

/** Levels below a message whose edits it counts: from a graph down to the attributes of its nodes. */
const COUNTED_LEVELS = 2

/** Members of the oneof of a message, with mutual exclusion. */
const ONEOFS = new Map(
  Object.entries(MESSAGES).map(([message, fields]) => [message, fields.filter((field) => field?.oneof)]),
)

export class Message implements Listed {
  readonly type: MessageName
  /** Where the message is among the known fields of its parent; undefined after it was removed. */
  chunk: Chunk | undefined
  /** The object that presents this message to users. */
  view: object | undefined
  readonly #parent: Message | undefined
  readonly #depth: number
  #file: MessageFile | undefined
  #tagStart: number
  #start: number
  #end: number
  /** Known and edited fields; other fields are in the bytes. */
  #lists: FieldLists | undefined
  /** Number, start and end of each run of fields of equal number, in file order; see `MIN_INDEXED_BYTES`. */
  #runs: readonly number[] | undefined
  #isChanged: boolean
  #edits = 0

  /** @param origin - absent for a new message, which has no fields */
  constructor(type: MessageName, origin?: MessageOrigin, parent?: Message) {
    this.type = type
    this.chunk = undefined
    this.view = undefined
    this.#parent = parent
    this.#depth = parent ? parent.#depth + 1 : 1
    this.#file = origin?.file
    this.#tagStart = origin?.tagStart ?? -1
    this.#start = origin?.start ?? 0
    this.#end = origin?.end ?? 0
    this.#isChanged = origin === undefined
    if (origin && this.#depth > origin.file.depthLimit) {
      const message = `Messages are nested deeper than limits.depth, which is ${origin.file.depthLimit}.`
      throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, offset: origin.start })
    }
  }

  get kind(): 'message' {
    return 'message'
  }

  /** The enclosing message; undefined for the message of the file. */
  get parent(): Message | undefined {
    return this.#parent
  }

  get origin(): MessageOrigin | undefined {
    return this.#file && { file: this.#file, start: this.#start, end: this.#end }
  }

  /** True after any edit of the message or of a nested one. */
  get isChanged(): boolean {
    return this.#isChanged
  }

  /**
   * Counts edits of this message and of `COUNTED_LEVELS` levels below. While the count of a graph is unchanged, so are its
   * nodes and values; subgraphs have their own counts.
   */
  get edits(): number {
    return this.#edits
  }

  /** @throws TileworkError for bytes that are not fields, ERR_ASYNC_ONLY for a source without synchronous reads */
  has(name: string): boolean {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return known.length > 0
    let isThere = false
    this.#scan(info, () => {
      isThere = true
      return SKIP_RUN
    })
    return isThere
  }

  /** Values of a length-delimited field. */
  byteValues(name: string): Uint8Array[] {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return known.map((item) => bytesOf(item as string | Uint8Array))
    const values: Uint8Array[] = []
    this.#scan(info, (cursor) => {
      values.push(this.#held(cursor).slice())
    })
    return values
  }

  /** The last value of a string field, as in protobuf; empty where it is absent. */
  text(name: string): string {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return (known.at(-1) as string | undefined) ?? ''
    let text = ''
    this.#scan(info, (cursor) => {
      text = this.#heldText(cursor)
    })
    return text
  }

  texts(name: string): string[] {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return [...(known as readonly string[])]
    const texts: string[] = []
    this.#scan(info, (cursor) => {
      texts.push(this.#heldText(cursor))
    })
    return texts
  }

  /** As `texts`, for several fields in one scan. */
  textLists<Names extends readonly string[]>(...names: Names): { [Index in keyof Names]: string[] } {
    const numbers = names.map((name) => fieldInfo(this.type, name).number)
    const isKnown = this.#lists !== undefined && numbers.some((number) => this.#lists!.isKnown(number))
    const lists = names.map((name) => (isKnown ? this.texts(name) : []))
    if (!isKnown && this.#file)
      this.#scanRange(this.#start, this.#end, (cursor) => {
        const list = lists[numbers.indexOf(cursor.number)]
        if (list === undefined || cursor.wireType !== LENGTH) return SKIP_RUN
        list.push(this.#heldText(cursor))
        return undefined
      })
    return lists as { [Index in keyof Names]: string[] }
  }

  /**
   * Visits the texts of some fields as UTF-8, in the order of each field, without making strings of those in the file.
   *
   * @param fields - bit set of field numbers
   * @returns bit set of the known fields that the message has
   */
  eachText(fields: number, visit: TextVisit): number {
    let seen = 0
    let known = 0
    for (const { number, items } of this.#lists?.chunks() ?? []) {
      known |= 1 << number
      if (items.length === 0) continue
      seen |= 1 << number
      if ((fields & (1 << number)) === 0) continue
      for (const item of items) {
        const bytes = bytesOf(item as string | Uint8Array)
        visit(bytes, 0, bytes.byteLength, number)
      }
    }
    if (!this.#file) return seen
    this.#scanRange(this.#start, this.#end, (cursor) => {
      const { number } = cursor
      if (number >= FIELD_NUMBERS || (known & (1 << number)) !== 0) return SKIP_RUN
      seen |= 1 << number
      if ((fields & (1 << number)) === 0 || cursor.wireType !== LENGTH) return SKIP_RUN
      this.#visitText(cursor, visit)
      return undefined
    })
    return seen
  }

  /**
   * As `eachText` for all messages of a field, one after the other. Makes no objects for them while this message is unchanged: a
   * large graph has them by the hundred thousand.
   *
   * @param end - called after each message with the bit set of the fields that it has
   */
  eachTextInside(name: string, fields: number, visit: TextVisit, end: (seen: number) => void): void {
    if (this.#isChanged) {
      for (const message of this.messages(name)) end(message.eachText(fields, visit))
      return
    }
    let seen = 0
    const visitField = (cursor: WireCursor): FieldVisited => {
      const { number } = cursor
      if (number >= FIELD_NUMBERS) return undefined
      seen |= 1 << number
      if ((fields & (1 << number)) === 0 || cursor.wireType !== LENGTH) return SKIP_RUN
      this.#visitText(cursor, visit)
      return undefined
    }
    this.#scan(fieldInfo(this.type, name), ({ valueStart, position }) => {
      seen = 0
      this.#scanRange(valueStart, position, visitField)
      end(seen)
    })
  }

  #visitText(cursor: WireCursor, visit: TextVisit): void {
    const { number, valueStart, position } = cursor
    this.#checkLength(position - valueStart)
    if (!cursor.holdsRange(valueStart, position)) this.#walk(valueStart, position)
    const { window, windowStart } = cursor
    if (cursor.isUtf8(valueStart, position))
      visit(window, valueStart - windowStart, position - windowStart, number)
    else {
      const bytes = Buffer.from(cursor.heldText(valueStart, position))
      visit(bytes, 0, bytes.byteLength, number)
    }
  }

  /** True where a message of the field `name` has one of the fields `inner`; makes no objects for what was not read. */
  hasInside(name: string, ...inner: readonly string[]): boolean {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return known.some((item) => item instanceof Message && inner.some((each) => item.has(each)))
    // Of long messages the index of their runs serves the next look too.
    if (this.#end - this.#start >= MIN_INDEXED_BYTES)
      return this.messages(name).some((item) => inner.some((each) => item.has(each)))
    const wanted = inner.map((each) => fieldInfo(info.kind as MessageName, each))
    let isThere = false
    this.#scan(info, ({ valueStart, position }) => {
      const isWanted = (cursor: WireCursor): boolean =>
        wanted.some((each) => each.number === cursor.number && canBe(each, cursor.wireType))
      this.#scanRange(valueStart, position, (cursor) => {
        isThere ||= isWanted(cursor)
        return SKIP_RUN
      })
    })
    return isThere
  }

  /** Values of an integer field, packed or not. */
  ints(name: string): (number | bigint)[] {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return [...(known as readonly (number | bigint)[])]
    const numbers: (number | bigint)[] = []
    const limit = ENUM_SIZES[`${this.type}.${name}`] ?? Number.POSITIVE_INFINITY
    this.#scan(info, (cursor) => {
      if (cursor.wireType === LENGTH) {
        const packed = WireCursor.over(this.#held(cursor).slice())
        const end = cursor.position - cursor.valueStart
        while (packed.position < end) {
          packed.varint(end)
          numbers.push(integerOf(info, packed))
        }
        return undefined
      }
      const end = cursor.endOfRun(this.#end)
      for (cursor.position = cursor.valueStart; ; cursor.position += TAG_BYTES) {
        cursor.varint(end)
        const value = integerOf(info, cursor)
        // As in proto2, an unknown number of an enum is an unknown field.
        if (info.kind !== 'enum' || (value >= 0 && value < limit)) numbers.push(value)
        if (cursor.position >= end) return SKIP_RUN
      }
    })
    return numbers
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
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) return (known as readonly number[]).map(Math.fround)
    const values: number[] = []
    this.#scan(info, (cursor) => {
      const isPacked = cursor.wireType === LENGTH
      const run = isPacked ? this.#held(cursor) : cursor.held(cursor.valueStart, cursor.endOfRun(this.#end))
      if (isPacked && run.byteLength % FLOAT_BYTES !== 0)
        throw this.#raggedRun(name, run.byteLength, cursor.start)
      const view = new DataView(run.buffer, run.byteOffset, run.byteLength)
      const step = isPacked ? FLOAT_BYTES : FLOAT_BYTES + TAG_BYTES
      for (let at = 0; at < run.byteLength; at += step) values.push(view.getFloat32(at, true))
      return isPacked ? undefined : SKIP_RUN
    })
    return values
  }

  /** Messages of a field; the same objects each time, unless `remembers` is false: see `eachOf`. */
  messages(name: string, remembers = true): Message[] {
    const items = this.#itemsOf(fieldInfo(this.type, name), remembers)
    return items.filter((item): item is Message => item instanceof Message)
  }

  /** The message of a singular field; several occurrences are merged, as in protobuf. */
  message(name: string, remembers = true): Message | undefined {
    return this.messages(name, remembers)[0]
  }

  /** As all setters, changes nothing if it throws. @throws TileworkError ERR_ARGUMENT for a value of another type */
  setText(name: string, value: string): void {
    this.#setTexts(name, [checkText(`${this.type}.${name}`, value)])
  }

  setTexts(name: string, values: readonly string[]): void {
    this.#setTexts(name, checkTexts(`${this.type}.${name}`, values))
  }

  #setTexts(name: string, values: readonly string[]): void {
    const info = fieldInfo(this.type, name)
    if (!this.#setInBytes(info, values)) this.#set(info, values.slice())
  }

  /** Replaces a text wherever the field has it. */
  replaceText(name: string, text: string, other: string): void {
    const info = fieldInfo(this.type, name)
    if (this.#replaceInBytes(info, text, other)) return
    const texts = this.texts(name)
    if (!texts.includes(text)) return
    this.#set(
      info,
      texts.map((each) => (each === text ? other : each)),
    )
  }

  setInt(name: string, value: number | bigint): void {
    this.#set(fieldInfo(this.type, name), [checkInt64(`${this.type}.${name}`, value)])
  }

  setBytes(name: string, values: readonly Uint8Array[]): void {
    this.#set(
      fieldInfo(this.type, name),
      values.map((value) => value.slice()),
    )
  }

  setInts(name: string, values: readonly (number | bigint)[]): void {
    this.#set(fieldInfo(this.type, name), values.slice())
  }

  setFloats(name: string, values: readonly number[]): void {
    this.#set(fieldInfo(this.type, name), values.slice())
  }

  clear(name: string): void {
    this.#set(fieldInfo(this.type, name), [])
  }

  /** Inserts an empty message at index `at` of the repeated field; default: appended. */
  insert(name: string, at?: number): Message {
    return this.insertAll(name, 1, at)[0]!
  }

  insertAll(name: string, count: number, at?: number): Message[] {
    const info = fieldInfo(this.type, name)
    const messages = Array.from(
      { length: count },
      () => new Message(info.kind as MessageName, undefined, this),
    )
    this.#insert(info, messages, at)
    return messages
  }

  /** Appends a message that is encoded already. */
  insertEncoded(name: string, bytes: Uint8Array): void {
    const info = fieldInfo(this.type, name)
    this.#insert(info, [this.#encoded(info, bytes)])
  }

  /** Replaces a singular message by one that is encoded already. */
  setEncoded(name: string, bytes: Uint8Array): void {
    const info = fieldInfo(this.type, name)
    if (!this.#setInBytes(info, [bytes])) this.#set(info, [this.#encoded(info, bytes)])
  }

  #encoded({ kind }: FieldInfo, bytes: Uint8Array): Message {
    const origin = { file: encodedFile(bytes), start: 0, end: bytes.byteLength }
    return new Message(kind as MessageName, origin, this)
  }

  /** Appends a copy of a message of any file, as that message is now. */
  adopt(name: string, other: Message): Message {
    const message = other.#clone(this, false)
    this.#insert(fieldInfo(this.type, name), [message])
    return message
  }

  /** An independent copy without parent. */
  copy(): Message {
    return this.#clone(undefined, true)
  }

  #clone(parent: Message | undefined, keepsTag: boolean): Message {
    const origin = this.#file && {
      file: this.#file,
      start: this.#start,
      end: this.#end,
      ...(keepsTag && this.#tagStart >= 0 && { tagStart: this.#tagStart }),
    }
    const clone = new Message(this.type, origin, parent)
    if (!this.#isChanged) return clone
    clone.#isChanged = true
    clone.#lists = this.#lists?.clone((item) => {
      if (item instanceof Message) return item.#clone(clone, true)
      // An item knows the list that holds it, so two lists cannot share one.
      return item instanceof NewTensor ? new NewTensor(item.tensor, item.name) : item
    })
    return clone
  }

  /** Appends a tensor to the field, or replaces an occurrence. @returns the new occurrence */
  putTensor(name: string, tensor: Tensor, tensorName: string, replaced?: MessageField): MessageField {
    const info = fieldInfo(this.type, name)
    const field = new NewTensor(tensor, tensorName)
    if (!replaced) this.#insert(info, [field])
    else {
      this.#edit(info).replace(replaced, field)
      this.#noteChange()
    }
    return field
  }

  putTensors(name: string, tensors: readonly { readonly tensor: Tensor; readonly name: string }[]): void {
    this.#insert(
      fieldInfo(this.type, name),
      tensors.map((each) => new NewTensor(each.tensor, each.name)),
    )
  }

  /** Removes an occurrence; does nothing where it is not in the field. */
  remove(name: string, field: MessageField): void {
    const info = fieldInfo(this.type, name)
    if (!this.holds(name, field)) return
    this.#edit(info).remove(field)
    this.#noteChange()
  }

  /** True for an occurrence of the field. */
  holds(name: string, field: MessageField): boolean {
    return this.#lists?.holds(fieldInfo(this.type, name).number, field) === true
  }

  /** Position of an occurrence that the message holds, without looking at the others. */
  indexOf(field: MessageField): number {
    return this.#lists!.indexOf(field)
  }

  /** Keeps the occurrences of a field for which `keeps` is true. @returns the number of removed occurrences */
  filter(name: string, keeps: (field: MessageField, index: number) => boolean): number {
    const kept: MessageField[] = []
    let count = 0
    for (const field of this.eachOf(name)) {
      if (keeps(field, count)) kept.push(field)
      count += 1
    }
    if (kept.length < count) this.#set(fieldInfo(this.type, name), kept)
    return count - kept.length
  }

  /** Reorders the occurrences of a field. */
  reorder(name: string, order: readonly MessageField[]): void {
    this.#set(fieldInfo(this.type, name), order.slice())
  }

  /** Occurrences of a field with messages. */
  fieldsOf(name: string): MessageField[] {
    return this.#itemsOf(fieldInfo(this.type, name))
  }

  /**
   * As `fieldsOf`, one after the other. Messages that were not read before are not kept, and the next call makes other
   * objects: for walks over whole models, which must not fill the memory.
   */
  *eachOf(name: string): Generator<MessageField> {
    const info = fieldInfo(this.type, name)
    const known = this.#lists?.items(info.number)
    if (known) yield* known.slice() as MessageField[]
    else if (this.#file && info.isRepeated) yield* this.#readInBatches(info)
    else yield* this.#readMessages(info)
  }

  *#readInBatches(info: FieldInfo): Generator<Message> {
    const counted = { messages: 0, bytes: 0 }
    const runs = this.#indexed() ?? [info.number, this.#start, this.#end]
    for (let run = 0; run < runs.length; run += 3) {
      const end = runs[run + 2]!
      let next = runs[run]! === info.number ? runs[run + 1]! : end
      while (next < end) {
        const batch: Message[] = []
        const add = (cursor: WireCursor): undefined => {
          batch.push(this.#messageAt(cursor, info, counted))
          next = cursor.position
        }
        this.#scanRange(next, end, add, info, () => batch.length === BATCH_MESSAGES)
        if (batch.length < BATCH_MESSAGES) next = end
        yield* batch
      }
    }
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
    const planned = new Map<NewTensor, PlannedMessage>()
    for (const field of this.#newTensors()) {
      if (other?.of(field)) continue
      const { tensor, name } = field
      planned.set(
        field,
        await (tensor.kind === 'sparse' ? planSparse(tensor, name) : planTensor(tensor, name)),
      )
    }
    const isWritten = (item: Message): boolean => item.isWritten(other)
    const planOf = (item: MessageField): PlannedMessage | undefined =>
      other?.of(item) ?? (item instanceof NewTensor ? planned.get(item) : undefined)
    return this.#planned({ isWritten, planOf })
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
    const planOf = (): undefined => undefined
    return this.#planned({ isWritten: (item) => item.isChanged, planOf, omitted, number, made })
  }

  #planned(how: Planning): PlannedMessage {
    const segments = new Segments()
    const isCopied = !how.omitted && !how.isWritten(this)
    if (isCopied && this.#file) segments.range(this.#file.source, this.#start, this.#end)
    else this.#planFields(segments, how)
    return segments.finish()
  }

  /** Writes runs of the file in their order, and each rewritten field where its first run was or its number belongs. */
  #planFields(segments: Segments, how: Planning): void {
    const runs = this.#runsOfAll()
    const inFile = new Set<number>()
    for (let at = 0; at < runs.length; at += 3) inFile.add(runs[at]!)
    const rewritten = this.#rewritten(how)
    // Fields that are new in this message, in the order of their numbers.
    const added = [...rewritten].filter((number) => !inFile.has(number)).sort((one, other) => one - other)
    const write = (number: number): void => {
      if (number === how.number) for (const segment of how.made!) segments.segment(segment)
      else if (!how.omitted?.has(number)) this.#planItems(segments, number, how)
    }
    const done = new Set<number>()
    for (let at = 0; at < runs.length; at += 3) {
      const [number, start, end] = [runs[at]!, runs[at + 1]!, runs[at + 2]!]
      while (added.length > 0 && added[0]! < number) write(added.shift()!)
      if (!rewritten.has(number)) segments.range(this.#file!.source, start, end)
      else {
        if (!done.has(number)) write(number)
        done.add(number)
        if (!how.omitted?.has(number)) this.#planForeign(segments, number, start, end)
      }
    }
    for (const number of added) write(number)
  }

  /** Numbers of the fields whose bytes in the file are not copied. */
  #rewritten(how: Planning): Set<number> {
    const numbers = new Set(how.omitted)
    if (how.number !== undefined) numbers.add(how.number)
    const isMade = (item: Item): boolean =>
      item instanceof Message && (how.isWritten(item) || how.planOf(item) !== undefined)
    for (const { number, items, owner } of this.#lists?.chunks() ?? []) {
      if (!numbers.has(number) && (owner.isEdited(number) || items.some(isMade))) numbers.add(number)
    }
    return numbers
  }

  /** Keeps fields of a rewritten number that protobuf reads as unknown fields, by their wire type. */
  #planForeign(segments: Segments, number: number, start: number, end: number): void {
    const info = MESSAGES[this.type][number]!
    this.#scanRange(start, end, (cursor) => {
      if (canBe(info, cursor.wireType)) return SKIP_RUN
      segments.range(this.#file!.source, cursor.start, cursor.position)
      return undefined
    })
  }

  #planItems(segments: Segments, number: number, how: Planning): void {
    const info = MESSAGES[this.type][number]!
    for (const item of this.#lists?.items(number) ?? []) {
      if (item instanceof Message) {
        const planned = how.planOf(item)
        const isCopied = !planned && !how.isWritten(item) && item.#tagStart >= 0
        if (isCopied) segments.range(item.#file!.source, item.#tagStart, item.#end)
        else
          segments.message(
            number,
            planned ?? item.#planned({ ...how, omitted: undefined, number: undefined }),
          )
      } else if (item instanceof NewTensor) segments.message(number, how.planOf(item)!)
      else segments.bytes(scalarField(info, item as Scalar))
    }
  }

  *#newTensors(): Generator<NewTensor> {
    if (!this.#isChanged) return
    for (const { items } of this.#lists?.chunks() ?? []) {
      for (const item of items) {
        if (item instanceof NewTensor) yield item
        else if (item instanceof Message) yield* item.#newTensors()
      }
    }
  }

  #itemsOf(info: FieldInfo, remembers = true): MessageField[] {
    const known = this.#lists?.items(info.number)
    if (known) return known.slice() as MessageField[]
    const messages = this.#readMessages(info)
    if (remembers && messages.length > 0) this.#known().load(info.number, messages)
    return messages
  }

  #known(): FieldLists {
    this.#lists ??= new FieldLists()
    return this.#lists
  }

  #readMessages(info: FieldInfo): Message[] {
    const messages: Message[] = []
    const counted = { messages: 0, bytes: 0 }
    this.#scan(info, (cursor) => {
      messages.push(this.#messageAt(cursor, info, counted))
    })
    return info.isRepeated || messages.length < 2
      ? messages
      : [this.#merged(info.kind as MessageName, messages)]
  }

  /** The message that the cursor has passed. */
  #messageAt(
    { start: tagStart, valueStart, position }: WireCursor,
    { kind }: FieldInfo,
    counted: { messages: number; bytes: number },
  ): Message {
    counted.messages += 1
    counted.bytes += position - tagStart
    checkTinyMessages(counted.messages, counted.bytes, tagStart)
    const origin = { file: this.#file!, start: valueStart, end: position, tagStart }
    return new Message(kind as MessageName, origin, this)
  }

  /** Several occurrences of a singular message as one, which is what the joined bytes encode. */
  #merged(kind: MessageName, messages: readonly Message[]): Message {
    const byteLength = messages.reduce((sum, each) => sum + each.#end - each.#start, 0)
    const file = this.#file!
    if (byteLength > MAX_MERGED_BYTES) {
      const text = `${kind} occurs ${messages.length} times with ${byteLength} bytes; up to ${MAX_MERGED_BYTES} bytes are merged.`
      throw new TileworkError('ERR_LIMIT', text, { format: FORMAT_NAME, offset: messages[0]!.#start })
    }
    const bytes = allocateBytes(byteLength)
    let at = 0
    for (const each of messages) {
      bytes.set(this.#walk(each.#start, each.#end), at)
      at += each.#end - each.#start
    }
    const source = new MemorySource(bytes, file.source.label)
    const joined = { ...file, source, cursor: new WireCursor(source) }
    return new Message(kind, { file: joined, start: 0, end: byteLength }, this)
  }

  /** Visits the occurrences of a field that protobuf accepts. The cursor is at the value's end. */
  #scan(info: FieldInfo, visit: FieldVisit): void {
    if (!this.#file) return
    const from = info.oneof === undefined ? this.#start : this.#endOfOthers(info)
    const runs = this.#indexed()
    if (!runs) this.#scanRange(from, this.#end, visit, info)
    else
      for (let at = 0; at < runs.length; at += 3)
        if (runs[at] === info.number) this.#scanRange(runs[at + 1]!, runs[at + 2]!, visit, info)
  }

  /** Offset after the last other member of the oneof, which clears the members before it. */
  #endOfOthers({ number }: FieldInfo): number {
    let end = this.#start
    this.#scanRange(this.#start, this.#end, (cursor) => {
      const info = MESSAGES[this.type][cursor.number]
      if (info?.oneof && info.number !== number && canBe(info, cursor.wireType)) end = cursor.position
    })
    return end
  }

  /**
   * @param only - the field to visit; default: all. Fields with another wire type than the schema's are not visited
   * @param isEnough - asked after each visit; true ends the scan
   */
  #scanRange(
    start: number,
    end: number,
    visit: FieldVisit,
    only?: FieldInfo,
    isEnough?: () => boolean,
  ): void {
    const { cursor } = this.#file!
    cursor.position = start
    try {
      // Without a generator and closures while the window holds the fields, as it mostly does.
      while (cursor.heldField(end)) {
        if (only && (cursor.number !== only.number || !canBe(only, cursor.wireType))) {
          cursor.position = cursor.endOfRun(end)
          continue
        }
        const { position } = cursor
        const visited = visit(cursor)
        if (isEnough?.()) return
        cursor.position = position
        if (visited === SKIP_RUN) cursor.position = cursor.endOfRun(end)
      }
      if (cursor.position < end) scanRest(cursor, end, visit, only, isEnough)
    } catch (error) {
      throw this.#withPlace(error)
    }
  }

  #indexed(): readonly number[] | undefined {
    if (this.#end - this.#start < MIN_INDEXED_BYTES) return undefined
    this.#runs ??= this.#runsOfAll()
    return this.#runs
  }

  /** Groups, which are skipped, are runs of the number 0. */
  #runsOfAll(): readonly number[] {
    if (this.#runs) return this.#runs
    const runs: number[] = []
    if (!this.#file) return runs
    let last = this.#start
    const add = (number: number, start: number, end: number): void => {
      if (runs.length > 0 && runs.at(-3) === number && runs.at(-1) === start) runs[runs.length - 1] = end
      else runs.push(number, start, end)
      last = end
    }
    this.#scanRange(this.#start, this.#end, (cursor) => {
      if (cursor.start > last) add(0, last, cursor.start)
      add(cursor.number, cursor.start, cursor.endOfRun(this.#end))
      return SKIP_RUN
    })
    if (this.#end > last) add(0, last, this.#end)
    return runs
  }

  /** The value of the current field; the cursor overwrites it later. */
  #held(cursor: WireCursor): Uint8Array {
    const { valueStart, position } = cursor
    this.#checkLength(position - valueStart)
    if (cursor.holdsRange(valueStart, position)) return cursor.held(valueStart, position)
    return this.#walk(valueStart, position)
  }

  #heldText(cursor: WireCursor): string {
    const { valueStart, position } = cursor
    this.#checkLength(position - valueStart)
    if (!cursor.holdsRange(valueStart, position)) this.#walk(valueStart, position)
    return cursor.heldText(valueStart, position)
  }

  #checkLength(byteLength: number): void {
    if (byteLength <= MAX_TEXT_BYTES) return
    const message = `A field of ${this.type} has ${byteLength} bytes; the limit is ${MAX_TEXT_BYTES}.`
    throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME, offset: this.#start })
  }

  /** Bytes of the file, which the next load overwrites. */
  #walk(start: number, end: number): Uint8Array {
    const { cursor } = this.#file!
    try {
      return walkSourceSync(holdRange(cursor, start, end), cursor)
    } catch (error) {
      throw this.#withPlace(error)
    }
  }

  /** Converts a wire fault to an error of this message. */
  #withPlace(error: unknown): unknown {
    if (!(error instanceof FileFault)) return error
    const { code, message, offset } = error
    return new TileworkError(code, message, { format: FORMAT_NAME, path: this.type, offset })
  }

  #insert(info: FieldInfo, fields: readonly MessageField[], at?: number): void {
    if (fields.length === 0) return
    this.#edit(info).insert(info.number, fields, at)
    this.#noteChange()
  }

  #set(info: FieldInfo, items: readonly Item[]): void {
    this.#clearOthers(info)
    this.#known().set(info.number, items)
    this.#noteChange()
  }

  /** True for a message whose edits change its bytes; see `EditedBytes`. Lists of the field must not be known. */
  #isEditedInBytes({ number, oneof }: FieldInfo): boolean {
    if (!EDITED_IN_BYTES.has(this.type) || oneof !== undefined) return false
    return this.#end - this.#start <= MAX_EDITED_BYTES && this.#lists?.isKnown(number) !== true
  }

  /** @returns false where a list is needed */
  #replaceInBytes(info: FieldInfo, text: string, other: string): boolean {
    // Invalid UTF-8 of a file may read as the text.
    if (!this.#isEditedInBytes(info) || text.includes('\ufffd')) return false
    const edited = this.#startEdit()
    if (!edited) return false
    const cursor = this.#heldCursor()
    const { window, windowStart } = cursor
    let kept = this.#start
    while (cursor.heldField(this.#end)) {
      const { number, wireType, start, valueStart, position } = cursor
      if (number !== info.number || wireType !== LENGTH) continue
      if (!isText(window, valueStart - windowStart, position - windowStart, text)) continue
      edited.copy(window, kept - windowStart, start - windowStart)
      edited.field(number, other)
      kept = position
    }
    if (cursor.position < this.#end) return false
    if (kept === this.#start) return true
    edited.copy(window, kept - windowStart, this.#end - windowStart)
    return this.#endEdit(edited)
  }

  /** Puts a field where its first occurrence was, or where its number belongs. @returns false where a list is needed */
  #setInBytes(info: FieldInfo, values: readonly (string | Uint8Array)[]): boolean {
    if (!this.#isEditedInBytes(info)) return false
    const edited = this.#startEdit()
    if (!edited) return false
    const cursor = this.#heldCursor()
    const { window, windowStart } = cursor
    let from = -1
    let to = -1
    let next = this.#end
    while (cursor.heldField(this.#end)) {
      const { number, wireType, start, position } = cursor
      if (number === info.number && wireType === LENGTH) {
        // Occurrences with other fields in between.
        if (from >= 0 && start !== to) return false
        if (from < 0) from = start
        to = position
      } else if (number > info.number && start < next) next = start
    }
    if (cursor.position < this.#end) return false
    if (from < 0) from = to = next
    edited.copy(window, this.#start - windowStart, from - windowStart)
    for (const value of values) edited.field(info.number, value)
    edited.copy(window, to - windowStart, this.#end - windowStart)
    return this.#endEdit(edited)
  }

  /** @returns undefined for a message that is in no file */
  #startEdit(): EditedBytes | undefined {
    const file = this.#nearestFile()
    if (!file) return undefined
    file.edited ??= new EditedBytes(file)
    file.edited.begin()
    return file.edited
  }

  #endEdit(edited: EditedBytes): boolean {
    if (!edited.finish()) return false
    this.#file = edited.file
    this.#start = edited.start
    this.#end = edited.end
    this.#tagStart = -1
    this.#noteChange()
    return true
  }

  /** The cursor at the start of the message, all of which is in the window. */
  #heldCursor(): WireCursor {
    const cursor = this.#file?.cursor ?? NO_FIELDS
    if (!cursor.holdsRange(this.#start, this.#end)) this.#walk(this.#start, this.#end)
    cursor.position = this.#start
    return cursor
  }

  #nearestFile(): MessageFile | undefined {
    for (let message: Message | undefined = this; message; message = message.#parent)
      if (message.#file) return message.#file
    return undefined
  }

  /** The lists, with the field among them; its bytes in the file no longer count. */
  #edit(info: FieldInfo): FieldLists {
    this.#clearOthers(info)
    const lists = this.#known()
    if (!lists.isKnown(info.number)) lists.load(info.number, this.#readMessages(info))
    lists.markEdited(info.number)
    return lists
  }

  #clearOthers(info: FieldInfo): void {
    if (info.oneof === undefined) return
    for (const other of ONEOFS.get(this.type)!)
      if (other!.number !== info.number) this.#known().set(other!.number, [])
  }

  #noteChange(): void {
    let distance = 0
    for (let message: Message | undefined = this; message; message = message.#parent) {
      message.#isChanged = true
      if (distance++ <= COUNTED_LEVELS) message.#edits += 1
    }
  }

  #raggedRun(name: string, byteLength: number, offset: number): TileworkError {
    const message = `${this.type}.${name} has a packed run of ${byteLength} bytes; it must be a multiple of ${FLOAT_BYTES}.`
    return new TileworkError('ERR_HEADER', message, { format: FORMAT_NAME, path: this.type, offset })
  }
}

/** As `#scanRange`, with loads. */
function scanRest(
  cursor: WireCursor,
  end: number,
  visit: FieldVisit,
  only?: FieldInfo,
  isEnough?: () => boolean,
): void {
  const steps = eachField(cursor, end, () => {
    if (only && (cursor.number !== only.number || !canBe(only, cursor.wireType))) return cursor.endOfRun(end)
    const { position } = cursor
    const visited = visit(cursor)
    if (isEnough?.()) return end
    cursor.position = position
    return visited === SKIP_RUN ? cursor.endOfRun(end) : position
  })
  walkSourceSync(steps, cursor)
}

/** How a message is written. */
interface Planning {
  readonly isWritten: (message: Message) => boolean
  /** A plan that takes the place of the message. */
  readonly planOf: (field: MessageField) => PlannedMessage | undefined
  readonly omitted?: ReadonlySet<number> | undefined
  readonly number?: number | undefined
  readonly made?: readonly WriteSegment[] | undefined
}

/** Files of encoded messages by their bytes: types of values are set by the thousand, and most are equal. */
const encodedFiles = new Map<string, MessageFile>()
/** Encoded messages that are kept; a model has tens of different types of values. */
const MAX_ENCODED_FILES = 256

function encodedFile(bytes: Uint8Array): MessageFile {
  const key = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
  const known = encodedFiles.get(key)
  if (known) return known
  const source = new MemorySource(bytes, 'a new message')
  const file = { source, cursor: new WireCursor(source), files: new Map(), depthLimit: DEFAULT_LIMITS.depth }
  if (encodedFiles.size === MAX_ENCODED_FILES) encodedFiles.clear()
  encodedFiles.set(key, file)
  return file
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

function integerOf({ kind }: FieldInfo, cursor: WireCursor): number | bigint {
  return kind === 'int32' || kind === 'enum' ? cursor.int32() : cursor.int64()
}

function bytesOf(value: string | Uint8Array): Uint8Array {
  return typeof value === 'string' ? Buffer.from(value, 'utf8') : value
}

function scalarField({ number, kind }: FieldInfo, value: Scalar): Uint8Array {
  const writer = new WireWriter()
  if (typeof value === 'string') return writer.text(number, value).finish()
  if (value instanceof Uint8Array) return writer.bytes(number, value).finish()
  if (kind === 'float')
    return writer.fixed(number, new Uint8Array(Float32Array.of(value as number).buffer)).finish()
  return writer.varint(number, value as number | bigint).finish()
}
