/**
 * Validates every message of a file against the schema: wire types of fields, UTF-8 of texts, packed numbers, and the
 * rules of tensors anywhere (attributes, subgraphs, functions, training). Payloads are skipped.
 */
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
type Content = 'unchecked' | 'numbers' | 'text' | 'message'

/** A field with what its checks need, because looking it up for each of a million fields would take as long as reading. */
interface FieldRule {
  readonly field: FieldInfo
  /** Bit set of the wire types that the field may have. */
  readonly wireTypes: number
  readonly content: Content
  /** Rules of the message that the field holds. */
  readonly inner: MessageRules | undefined
  /** Values from this on are cut to 32 bits, or are unknown numbers of an enum. */
  readonly limit: number | undefined
}

interface MessageRules {
  readonly name: MessageName
  /** Whether a walk of its own checks the fields against each other. */
  readonly isTensor: boolean
  /** Whether any field is repeated. */
  readonly hasLists: boolean
  /** By field number. */
  readonly fields: (FieldRule | undefined)[]
}

const WIRE_TYPES = [VARINT, FIXED64, LENGTH, FIXED32]

const MESSAGE_RULES = new Map(
  (Object.keys(MESSAGES) as MessageName[]).map((name): [MessageName, MessageRules] => [
    name,
    {
      name,
      isTensor: name === 'TensorProto' || name === 'SparseTensorProto',
      hasLists: MESSAGES[name].some((field) => field?.isRepeated),
      fields: [],
    },
  ]),
)

// Messages hold each other, so fields follow once all messages are there.
for (const [name, { fields }] of MESSAGE_RULES)
  for (const field of MESSAGES[name]) fields.push(field && ruleOf(name, field))

function ruleOf(name: MessageName, field: FieldInfo): FieldRule {
  const allowed = WIRE_TYPES.filter((wireType) => canBe(field, wireType))
  const wireTypes = allowed.reduce((set, wireType) => set | (1 << wireType), 0)
  const limit = field.kind === 'int32' ? 2 ** 31 : ENUM_SIZES[`${name}.${field.name}`]
  const inner = isMessageKind(field.kind) ? MESSAGE_RULES.get(field.kind) : undefined
  return { field, wireTypes, content: contentOf(name, field), inner, limit }
}

/** Packed numbers of tensors are checked with the tensor. */
function contentOf(name: MessageName, { kind, isRepeated }: FieldInfo): Content {
  if (isMessageKind(kind)) return 'message'
  if (kind === 'string') return 'text'
  const mayBePacked = isRepeated && name !== 'TensorProto' && (kind === 'float' || kind === 'int64')
  return mayBePacked ? 'numbers' : 'unchecked'
}

/** Field numbers of the format are below this, so that a bit set of 32 bits has them all. */
const FIELD_NUMBERS = 32

/**
 * What is known of the message that is being checked at one depth. Objects for each of a million messages would take longer
 * than the checks, so the next message at the depth uses the same ones.
 */
class Level {
  rules!: MessageRules
  /** Whether the walk that lists tensors has checked the tensors here. */
  isListed = false
  /** Bit sets of the singular fields and of the members of a oneof so far. */
  seen = 0
  members = 0
  /** Occurrences of each field with texts or messages. */
  readonly counts = new Int32Array(FIELD_NUMBERS)
  /** The field that is being checked, and its index where it is repeated. */
  field: FieldInfo | undefined
  index = 0
  /** Checks a field. */
  readonly visit: () => Steps<void> | number | undefined
  /** End of the message. */
  #end = 0

  constructor(visit: (level: Level, end: number) => Steps<void> | number | undefined) {
    this.visit = () => visit(this, this.#end)
  }

  start(rules: MessageRules, end: number, isListed: boolean): void {
    this.rules = rules
    this.#end = end
    this.isListed = isListed
    this.seen = 0
    this.members = 0
    if (rules.hasLists) this.counts.fill(0)
  }
}

class Validator {
  readonly cursor: WireCursor
  readonly external: ExternalTensor[] = []
  readonly #budget: Budget
  readonly #report: Report
  /** Messages from that of the file to the current one, `#depth` of them. */
  readonly #levels: Level[] = []
  #depth = 0
  readonly #leave = (): void => {
    this.#depth -= 1
  }

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
    const enclosing = this.#levels.slice(0, Math.max(0, this.#depth - 1))
    const names = enclosing.map(({ field, index }) => textOfStep(field!, index))
    if (inner) names.push(inner.name)
    return names.join('.')
  }

  *file(message: FileMessage, end: number): Steps<void> {
    const steps = this.#message(MESSAGE_RULES.get(message)!, 0, end, true)
    if (steps) yield* steps
  }

  /** Checks a message; returns a walk over what the window does not hold. */
  #message(rules: MessageRules, start: number, end: number, isListed: boolean): Steps<void> | undefined {
    this.#depth += 1
    this.#budget.require('depth', this.#depth, start)
    const level = this.#levels[this.#depth - 1] ?? this.#newLevel()
    level.start(rules, end, isListed)
    const steps =
      rules.isTensor && !isListed ? this.#tensor(level, start, end) : this.#fields(level, start, end)
    if (steps) return afterSteps(steps, this.#leave)
    this.#leave()
    return undefined
  }

  #newLevel(): Level {
    const level = new Level((each, end) => this.#field(each, end))
    this.#levels.push(level)
    return level
  }

  *#tensor(level: Level, start: number, end: number): Steps<void> {
    this.cursor.position = start
    yield* this.#tensorRules(level.rules.name, start, end)
    const steps = this.#fields(level, start, end)
    if (steps) yield* steps
  }

  #fields(level: Level, start: number, end: number): Steps<void> | undefined {
    this.cursor.position = start
    return visitFields(this.cursor, end, level.visit)
  }

  /** Checks the current field. */
  #field(level: Level, end: number): Steps<void> | number | undefined {
    const { wireType, number } = this.cursor
    const { name, fields } = level.rules
    const rule = fields[number]
    if (!rule) return this.cursor.endOfRun(end)
    const { field } = rule
    level.field = field
    if ((rule.wireTypes & (1 << wireType)) === 0) {
      this.#noteWireType(name, field)
      return undefined
    }
    if (wireType === VARINT && rule.limit !== undefined) this.#checkNumber(name, rule)
    if (!field.isRepeated) this.#checkSingular(level, field)
    // Bytes, and numbers that are not cut: one is as good as the next.
    else if (rule.limit === undefined && (rule.content === 'unchecked' || wireType !== LENGTH))
      return this.cursor.endOfRun(end)
    else level.index = level.counts[number]!++
    return wireType === LENGTH ? this.#content(level, rule) : undefined
  }

  /** Notes a field that occurs again, or that follows another member of its oneof. */
  #checkSingular(level: Level, field: FieldInfo): void {
    const { name } = level.rules
    const bit = 1 << field.number
    if ((level.seen & bit) !== 0) this.#noteRepeated(name, field)
    level.seen |= bit
    if (field.oneof === undefined) return
    if ((level.members & ~bit) !== 0) this.#noteMember(name, field)
    level.members |= bit
  }

  /** Checks the content of the current field. */
  #content({ rules, isListed }: Level, { content, field, inner }: FieldRule): Steps<void> | undefined {
    if (content === 'text') return this.#text()
    if (content === 'numbers') return this.#packedRun(rules.name, field)
    if (content === 'unchecked') return undefined
    const { valueStart, position } = this.cursor
    // Values and indices of a sparse tensor are checked together with it.
    const isChecked =
      rules.name === 'SparseTensorProto' || (isListed && isListing(rules.name, field, this.#depth))
    return this.#message(inner!, valueStart, position, isChecked)
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

  /** Checks the text of the current field. */
  #text(): Steps<void> | undefined {
    const { cursor } = this
    const { start, valueStart, position } = cursor
    if (!cursor.holdsRange(valueStart, position)) return this.#loadText(start, valueStart, position)
    if (!cursor.isUtf8(valueStart, position)) this.#noteText(start)
    return undefined
  }

  *#loadText(start: number, valueStart: number, end: number): Steps<void> {
    if (end - valueStart > MAX_TEXT_BYTES) {
      const message = `A text has ${end - valueStart} bytes; only texts up to ${MAX_TEXT_BYTES} bytes are checked.`
      this.#report.note('ERR_LIMIT', message, { path: this.#pathOfText(), offset: start })
      return
    }
    yield* holdRange(this.cursor, valueStart, end)
    if (!this.cursor.isUtf8(valueStart, end)) this.#noteText(start)
  }

  #noteText(offset: number): void {
    const path = this.#pathOfText()
    this.#report.deviation('ERR_HEADER', `${path} is not valid UTF-8.`, { path, offset })
  }

  #pathOfText(): string {
    const { field, index } = this.#levels[this.#depth - 1]!
    const step = textOfStep(field!, index)
    const path = this.path()
    return path === '' ? step : `${path}.${step}`
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

/** A field on the way to a message. */
function textOfStep({ name, isRepeated }: FieldInfo, index: number): string {
  return isRepeated ? `${name}[${index}]` : name
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
