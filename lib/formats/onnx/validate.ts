/**
 * Validates every message of a file against the schema: wire types of fields, UTF-8 of texts, packed numbers, and the
 * rules of tensors anywhere (attributes, subgraphs, functions, training). Payloads are skipped.
 */
import { isUtf8 } from 'node:buffer'
import type { ByteSource } from '../../bytes/source.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import type { Report } from '../report.js'
import type { ExternalFiles } from './external/files.js'
import { canBe, type FileMessage } from './protobuf/message_kind.js'
import {
  eachField,
  holdRange,
  LENGTH,
  type Steps,
  VARINT_BYTES,
  WireCursor,
  walkSource,
} from './protobuf/wire.js'
import { type FieldInfo, isMessageKind, MAX_TEXT_BYTES, MESSAGES, type MessageName } from './schema.js'
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
    await walkSource(validator.message(message, 0, source.byteLength, 1), validator.cursor)
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

class Validator {
  readonly cursor: WireCursor
  readonly external: ExternalTensor[] = []
  readonly #budget: Budget
  readonly #report: Report
  /** Path of the current message: field names, with indices of repeated fields. */
  readonly #path: string[] = []

  constructor(source: ByteSource, budget: Budget, report: Report) {
    this.cursor = new WireCursor(source)
    this.#budget = budget
    this.#report = report
  }

  path(): string {
    return this.#path.join('.')
  }

  *message(name: MessageName, start: number, end: number, depth: number, isListed = true): Steps<void> {
    this.#budget.require('depth', depth, start)
    const fields = MESSAGES[name]
    const counts: number[] = []
    const { cursor } = this
    cursor.position = start
    if (!isListed) yield* this.#tensorRules(name, start, end)
    cursor.position = start
    yield* eachField(cursor, end, () => {
      const field = fields[cursor.number]
      if (!field) return undefined
      if (!canBe(field, cursor.wireType)) {
        this.#noteWireType(name, field)
        return undefined
      }
      if (cursor.wireType !== LENGTH) return undefined
      if (isPackable(name, field)) return this.#packedRun(name, field)
      if (!hasText(field)) return undefined
      const index = counts[field.number] ?? 0
      counts[field.number] = index + 1
      return this.#enter(name, field, index, depth, isListed)
    })
  }

  /** Walks into the current field. */
  *#enter(name: MessageName, field: FieldInfo, index: number, depth: number, isListed: boolean): Steps<void> {
    const { start, valueStart, position } = this.cursor
    this.#path.push(field.isRepeated ? `${field.name}[${index}]` : field.name)
    if (isMessageKind(field.kind)) {
      // Values and indices of a sparse tensor are checked together with it.
      const isListedInside = name === 'SparseTensorProto' || (isListed && isListing(name, field, depth))
      yield* this.message(field.kind, valueStart, position, depth + 1, isListedInside)
    } else {
      yield* this.#text(start, valueStart, position)
    }
    this.#path.pop()
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
    const message = `Field ${field.number} (${field.name}) of ${name} is a packed run of ${byteLength} bytes; it must be a multiple of ${FLOAT_BYTES}.`
    this.#report.broken('ERR_HEADER', message, { path: [...this.#path, field.name].join('.'), offset: start })
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

  *#text(start: number, valueStart: number, end: number): Steps<void> {
    const place = { path: this.path(), offset: start }
    if (end - valueStart > MAX_TEXT_BYTES) {
      const message = `A text has ${end - valueStart} bytes; only texts up to ${MAX_TEXT_BYTES} bytes are checked.`
      this.#report.note('ERR_LIMIT', message, place)
      return
    }
    const text = yield* holdRange(this.cursor, valueStart, end)
    if (isUtf8(text)) return
    this.#report.deviation('ERR_HEADER', `${place.path} is not valid UTF-8.`, place)
  }

  #noteWireType(name: MessageName, field: FieldInfo): void {
    const { wireType, start } = this.cursor
    const path = [...this.#path, field.name].join('.')
    const message = `Field ${field.number} (${field.name}) of ${name} has the wire type ${wireType}; it is read as an unknown field.`
    this.#report.deviation('ERR_HEADER', message, { path, offset: start })
  }
}

/** True for numbers that may be packed; numbers of tensors are checked with the tensor. */
function isPackable(name: MessageName, { kind, isRepeated }: FieldInfo): boolean {
  return isRepeated && name !== 'TensorProto' && (kind === 'float' || kind === 'int64')
}

function hasText({ kind }: FieldInfo): boolean {
  return kind === 'string' || isMessageKind(kind)
}

/** Whether tensors in this field are listed, judged by this level alone. */
function isListing(name: MessageName, { name: field }: FieldInfo, depth: number): boolean {
  if (name === 'ModelProto') return field === 'graph'
  if (name === 'GraphProto') return depth === 2 && (field === 'initializer' || field === 'sparse_initializer')
  return LISTED_IN.has(name)
}
