/** What the rules of nodes need of a model before its nodes are read: versions, operator sets and signatures of functions. */
import { FileFault } from '../../../formats/file_fault.js'
import { checkNameLength } from '../../../formats/onnx/name_length.js'
import {
  eachField,
  holdRange,
  LENGTH,
  type Steps,
  VARINT,
  type WireCursor,
} from '../../../formats/onnx/protobuf/wire.js'
import { MAX_FUNCTIONS, MESSAGES, type MessageName } from '../../../formats/onnx/schema.js'
import { textOf } from '../../../formats/onnx/tensor/header.js'

/** A version of an operator set that a model or a function imports. */
export interface OpsetImport {
  readonly domain: string
  readonly version: number | bigint
  readonly offset: number
}

/** A range of bytes. */
export interface Range {
  readonly start: number
  readonly end: number
}

export interface FunctionHeader extends Range {
  readonly name: string
  /** Undefined where the message has no such field. */
  readonly domain: string | undefined
  readonly overload: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  /** Names of attributes, those with defaults too. */
  readonly attributes: readonly string[]
  readonly imports: readonly OpsetImport[]
}

export interface ModelHeader {
  readonly irVersion: number | bigint
  readonly imports: readonly OpsetImport[]
  /** Keys of `metadata_props`. */
  readonly metadataKeys: readonly string[]
  readonly functions: readonly FunctionHeader[]
  /** The main graph; several ranges are one graph for readers, which merge them. */
  readonly graphs: readonly Range[]
}

/** Reads the header. */
export function* modelHeader(cursor: WireCursor, end: number): Steps<ModelHeader> {
  const header = new MessageFields(cursor)
  const message = yield* header.read('ModelProto', 0, end)
  const functions: FunctionHeader[] = []
  for (const range of message.ranges('functions')) {
    if (functions.length === MAX_FUNCTIONS)
      throw new FileFault('ERR_LIMIT', `The model has more than ${MAX_FUNCTIONS} functions.`, range.start)
    functions.push(yield* functionHeader(header, range))
  }
  const metadataKeys: string[] = []
  for (const { start, end: to } of message.ranges('metadata_props'))
    metadataKeys.push((yield* header.read('StringStringEntryProto', start, to)).text('key') ?? '')
  return {
    irVersion: message.numbers.get('ir_version') ?? 0,
    imports: yield* importsOf(header, message),
    metadataKeys,
    functions,
    graphs: message.ranges('graph'),
  }
}

function* functionHeader(header: MessageFields, { start, end }: Range): Steps<FunctionHeader> {
  const message = yield* header.read('FunctionProto', start, end)
  const attributes = message.texts('attribute').slice()
  for (const range of message.ranges('attribute_proto'))
    attributes.push((yield* header.read('AttributeProto', range.start, range.end)).text('name') ?? '')
  return {
    start,
    end,
    name: message.text('name') ?? '',
    domain: message.text('domain'),
    overload: message.text('overload') ?? '',
    inputs: message.texts('input'),
    outputs: message.texts('output'),
    attributes,
    imports: yield* importsOf(header, message),
  }
}

function* importsOf(header: MessageFields, message: ReadFields): Steps<OpsetImport[]> {
  const imports: OpsetImport[] = []
  for (const { start, end } of message.ranges('opset_import')) {
    const fields = yield* header.read('OperatorSetIdProto', start, end)
    imports.push({
      domain: fields.text('domain') ?? '',
      version: fields.numbers.get('version') ?? 0,
      offset: start,
    })
  }
  return imports
}

/** Fields of one message, by name. */
class ReadFields {
  readonly numbers = new Map<string, number | bigint>()
  readonly #texts = new Map<string, string[]>()
  readonly #ranges = new Map<string, Range[]>()

  /** All texts of a field. */
  texts(name: string): readonly string[] {
    return this.#texts.get(name) ?? []
  }

  /** The last one, which counts; undefined for none. */
  text(name: string): string | undefined {
    return this.texts(name).at(-1)
  }

  /** The messages of a field. */
  ranges(name: string): readonly Range[] {
    return this.#ranges.get(name) ?? []
  }

  addText(name: string, text: string): void {
    listOf(this.#texts, name).push(text)
  }

  addRange(name: string, range: Range): void {
    listOf(this.#ranges, name).push(range)
  }
}

function listOf<T>(lists: Map<string, T[]>, name: string): T[] {
  const list = lists.get(name) ?? []
  lists.set(name, list)
  return list
}

/** Fields that are read. Others may be long: nodes, values and doc strings. */
const READ: ReadonlySet<string> = new Set(
  `ir_version opset_import metadata_props functions graph name domain overload input output attribute attribute_proto key
  version`.split(/\s+/),
)

class MessageFields {
  readonly #cursor: WireCursor

  constructor(cursor: WireCursor) {
    this.#cursor = cursor
  }

  *read(message: MessageName, start: number, end: number): Steps<ReadFields> {
    const cursor = this.#cursor
    const fields = new ReadFields()
    const wanted = MESSAGES[message].map((field) => (field && READ.has(field.name) ? field : undefined))
    cursor.position = start
    yield* eachField(cursor, end, () => {
      const { number, wireType, valueStart, position } = cursor
      const field = wanted[number]
      if (!field) return cursor.endOfRun(end)
      if (wireType === VARINT && field.wireType === VARINT) fields.numbers.set(field.name, cursor.int64())
      if (wireType !== LENGTH || field.wireType !== LENGTH) return undefined
      if (field.kind === 'string')
        return this.#text(valueStart, position, (text) => fields.addText(field.name, text))
      fields.addRange(field.name, { start: valueStart, end: position })
      return undefined
    })
    return fields
  }

  *#text(start: number, end: number, take: (text: string) => void): Steps<void> {
    checkNameLength(start, end)
    take(textOf(yield* holdRange(this.#cursor, start, end)))
  }
}
