/**
 * Validates every message of a file against the schema: wire types of fields, UTF-8 of texts, packed numbers, and the
 * rules of tensors anywhere (attributes, subgraphs, functions, training). Payloads are skipped.
 */
import { isUtf8 } from 'node:buffer'
import type { ByteSource } from '../../bytes/source.js'
import type { FindingCode } from '../../errors.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import type { ExternalFiles } from './external/files.js'
import { canBe, type FileMessage } from './protobuf/message_kind.js'
import {
  afterSteps,
  FIXED32,
  FIXED64,
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  VARINT_BYTES,
  visitFields,
  WireCursor,
  walkSource,
} from './protobuf/wire.js'
import {
  ENUM_SIZES,
  type FieldInfo,
  isMessageKind,
  MAX_TEXT_BYTES,
  MESSAGES,
  type MessageName,
} from './schema.js'
import { walkTensor } from './tensor/header.js'
import { type CheckedTensor, checkTensor, type ExternalPlacement } from './tensor/rules.js'
import { checkSparse, walkSparse } from './tensor/sparse.js'

/** Does not charge the budget of header bytes, which covers one walk and is spent by the walk that lists tensors. */
export async function validateFile(
  source: ByteSource,
  message: FileMessage,
  { budget, report, files }: { budget: Budget; report: Report; files: ExternalFiles },
): Promise<void> {
  const validator = new Validator(source, budget, report)
  try {
    await walkSource(validator.file(message, source.byteLength), validator.cursor)
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    report.broken(error.code, error.message, { path: validator.path(), offset: error.offset })
  }
  for (const { placement, byteLength, path } of validator.external) {
    await files.fileFor(placement, byteLength, path)
  }
}

/** An external tensor that is not listed. */
interface ExternalTensor {
  readonly placement: ExternalPlacement
  readonly byteLength: number
  readonly path: string
}

/** Bytes of a number of a float field. */
const FLOAT_BYTES = 4

/** Messages whose tensors are listed, and so were checked by the walk that lists them. */
const LISTED_IN: ReadonlySet<string> = new Set(['SequenceProto', 'OptionalProto', 'MapProto'])

/** What a length-delimited value of a field holds that is checked. */
type Content = 'unchecked' | 'numbers' | 'nested'

/** A field with what its checks need, because looking it up for each of a million fields would take as long as reading. */
interface FieldRule {
  readonly field: FieldInfo
  /** Bit set of the wire types that the field may have. */
  readonly wireTypes: number
  readonly content: Content
  /** Values from this on are cut to 32 bits, or are unknown numbers of an enum. */
  readonly limit: number | undefined
}

const WIRE_TYPES = [VARINT, FIXED64, LENGTH, FIXED32]

/** By message and field number. */
const FIELD_RULES = new Map(
  Object.entries(MESSAGES).map(([name, fields]: [string, readonly (FieldInfo | undefined)[]]) => [
    name,
    fields.map((field) => field && ruleOf(name, field)),
  ]),
)

function ruleOf(name: string, field: FieldInfo): FieldRule {
  const allowed = WIRE_TYPES.filter((wireType) => canBe(field, wireType))
  const wireTypes = allowed.reduce((set, wireType) => set | (1 << wireType), 0)
  const limit = field.kind === 'int32' ? 2 ** 31 : ENUM_SIZES[`${name}.${field.name}`]
  return { field, wireTypes, content: contentOf(name, field), limit }
}

/** Packed numbers of tensors are checked with the tensor. */
function contentOf(name: string, { kind, isRepeated }: FieldInfo): Content {
  if (kind === 'string' || isMessageKind(kind)) return 'nested'
  const mayBePacked = isRepeated && name !== 'TensorProto' && (kind === 'float' || kind === 'int64')
  return mayBePacked ? 'numbers' : 'unchecked'
}

/** Messages with rules of their own. */
const HAS_RULES: ReadonlySet<MessageName> = new Set(['TensorProto', 'SparseTensorProto'])

/** Where a message is in the file. */
interface Level {
  readonly depth: number
  /** Whether the walk that lists tensors has checked the tensors here. */
  readonly isListed: boolean
}

class Validator {
  readonly cursor: WireCursor
  readonly external: ExternalTensor[] = []
  readonly #budget: Budget
  readonly #report: Report
  /** Fields on the way to the current message, with their indices; text only where a finding needs it. */
  readonly #fields: FieldInfo[] = []
  readonly #indices: number[] = []

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
  }

  /**
   * Names of the fields to the current message, with indices of repeated ones.
   *
   * @param inner - field of that message, added without an index
   */
  path(inner?: FieldInfo): string {
    const names = this.#fields.map(({ name, isRepeated }, at) =>
      isRepeated ? `${name}[${this.#indices[at]}]` : name,
    )
    if (inner) names.push(inner.name)
    return names.join('.')
  }

  *file(message: FileMessage, end: number): Steps<void> {
    const steps = this.#message(message, 0, end, { depth: 1, isListed: true })
    if (steps) yield* steps
  }

  /** Checks a message; returns a walk over what the window does not hold. */
  #message(name: MessageName, start: number, end: number, level: Level): Steps<void> | undefined {
    this.#budget.require('depth', level.depth, start)
    if (level.isListed || !HAS_RULES.has(name)) return this.#messageFields(name, start, end, level)
    return this.#ruledMessage(name, start, end, level)
  }

  *#ruledMessage(name: MessageName, start: number, end: number, level: Level): Steps<void> {
    this.cursor.position = start
    yield* this.#tensorRules(name, start, end)
    const steps = this.#messageFields(name, start, end, level)
    if (steps) yield* steps
  }

  #messageFields(name: MessageName, start: number, end: number, level: Level): Steps<void> | undefined {
    const fields = FIELD_RULES.get(name)!
    const counts: number[] = []
    // Bit sets of the singular fields and of the members of a oneof so far.
    let seen = 0
    let members = 0
    const { cursor } = this
    cursor.position = start
    return visitFields(cursor, end, () => {
      const rule = fields[cursor.number]
      if (!rule) return undefined
      const { field, content } = rule
      if ((rule.wireTypes & (1 << cursor.wireType)) === 0) {
        this.#noteWireType(name, field)
        return undefined
      }
      const bit = 1 << field.number
      if (cursor.wireType === VARINT && rule.limit !== undefined) this.#checkNumber(name, rule)
      if (!field.isRepeated) {
        if ((seen & bit) !== 0) this.#noteRepeated(name, field)
        if (field.oneof !== undefined && (members & ~bit) !== 0) this.#noteMember(name, field)
        if (field.oneof !== undefined) members |= bit
        seen |= bit
      }
      if (cursor.wireType !== LENGTH || content === 'unchecked') return undefined
      if (content === 'numbers') return this.#packedRun(name, field)
      const index = counts[field.number] ?? 0
      if (field.isRepeated) counts[field.number] = index + 1
      return this.#enter(name, field, index, level)
    })
  }

  /** Checks the content of the current field. */
  #enter(
    name: MessageName,
    field: FieldInfo,
    index: number,
    { depth, isListed }: Level,
  ): Steps<void> | undefined {
    const { start, valueStart, position } = this.cursor
    this.#fields.push(field)
    this.#indices.push(index)
    const steps = isMessageKind(field.kind)
      ? this.#message(field.kind, valueStart, position, {
          depth: depth + 1,
          // Values and indices of a sparse tensor are checked together with it.
          isListed: name === 'SparseTensorProto' || (isListed && isListing(name, field, depth)),
        })
      : this.#text(start, valueStart, position)
    return afterSteps(steps, () => {
      this.#fields.pop()
      this.#indices.pop()
    })
  }

  *#tensorRules(name: MessageName, start: number, end: number): Steps<void> {
    const where = { report: this.#report, path: () => this.path(), offset: start }
    if (name === 'TensorProto') {
      this.#note(checkTensor(yield* walkTensor(this.cursor, end), where), this.path())
    }
    if (name === 'SparseTensorProto') {
      const sparse = checkSparse(yield* walkSparse(this.cursor, end), where)
      this.#note(sparse?.values.checked, `${this.path()}.values`)
      this.#note(sparse?.indices?.checked, `${this.path()}.indices`)
    }
  }

  #note(checked: CheckedTensor | undefined, path: string): void {
    if (checked?.placement.kind !== 'external') return
    this.external.push({ placement: checked.placement, byteLength: checked.byteLength, path })
  }

  /** Packed numbers must end exactly at the end of the field. */
  #packedRun(name: MessageName, field: FieldInfo): Steps<void> | undefined {
    const { start, valueStart, position } = this.cursor
    if (field.kind !== 'float') return this.#varints(valueStart, position)
    const byteLength = position - valueStart
    if (byteLength % FLOAT_BYTES === 0) return undefined
    const message = `${nameOfField(name, field)} is a packed run of ${byteLength} bytes; it must be a multiple of ${FLOAT_BYTES}.`
    this.#report.broken('ERR_HEADER', message, { path: this.path(field), offset: start })
    return undefined
  }

  *#varints(start: number, end: number): Steps<void> {
    const { cursor } = this
    cursor.position = start
    while (cursor.position < end) {
      if (!cursor.holds(VARINT_BYTES, end)) yield VARINT_BYTES
      cursor.varint(end)
    }
  }

  #text(start: number, valueStart: number, end: number): Steps<void> | undefined {
    if (!this.cursor.holdsRange(valueStart, end)) return this.#loadText(start, valueStart, end)
    this.#checkText(this.cursor.held(valueStart, end), start)
    return undefined
  }

  *#loadText(start: number, valueStart: number, end: number): Steps<void> {
    if (end - valueStart > MAX_TEXT_BYTES) {
      const message = `A text has ${end - valueStart} bytes; only texts up to ${MAX_TEXT_BYTES} bytes are checked.`
      this.#report.note('ERR_LIMIT', message, { path: this.path(), offset: start })
      return
    }
    this.#checkText(yield* holdRange(this.cursor, valueStart, end), start)
  }

  #checkText(text: Uint8Array, offset: number): void {
    if (isUtf8(text)) return
    const path = this.path()
    this.#report.deviation('ERR_HEADER', `${path} is not valid UTF-8.`, { path, offset })
  }

  /** Protobuf cuts an int32 to its low bits, and keeps an unknown number of an enum as an unknown field. */
  #checkNumber(name: MessageName, { field, limit }: FieldRule): void {
    const value = this.cursor.int64()
    if (field.kind === 'int32' ? value === this.cursor.int32() : value >= 0 && value < limit!) return
    const reading =
      field.kind === 'int32' ? `it is read as ${this.cursor.int32()}` : 'it is read as an unknown field'
    this.#noteRule(field, `${nameOfField(name, field)} is ${value}; ${reading}.`)
  }

  #noteRepeated(name: MessageName, field: FieldInfo): void {
    const reading = isMessageKind(field.kind) ? 'its occurrences are merged' : 'the last one counts'
    this.#noteRule(field, `${nameOfField(name, field)} occurs more than once; ${reading}.`, 'ERR_DUPLICATE')
  }

  #noteMember(name: MessageName, field: FieldInfo): void {
    this.#noteRule(
      field,
      `${nameOfField(name, field)} follows another member of its oneof, of which the last one counts.`,
      'ERR_DUPLICATE',
    )
  }

  /** Reports an encoding that protobuf allows and no writer makes. */
  #noteRule(field: FieldInfo, message: string, code: FindingCode = 'ERR_HEADER'): void {
    this.#report.note(code, message, { path: this.path(field), offset: this.cursor.start })
  }

  #noteWireType(name: MessageName, field: FieldInfo): void {
    const { wireType, start } = this.cursor
    const path = this.path(field)
    const message = `${nameOfField(name, field)} has the wire type ${wireType}; it is read as an unknown field.`
    this.#report.deviation('ERR_HEADER', message, { path, offset: start })
  }
}

function nameOfField(name: MessageName, { number, name: field }: FieldInfo): string {
  return `Field ${number} (${field}) of ${name}`
}

/** Whether tensors in this field are listed, judged by this level alone. */
function isListing(name: MessageName, { name: field }: FieldInfo, depth: number): boolean {
  if (name === 'ModelProto') return field === 'graph'
  if (name === 'GraphProto') return depth === 2 && (field === 'initializer' || field === 'sparse_initializer')
  return LISTED_IN.has(name)
}
