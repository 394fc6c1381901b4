/**
 * Parses ONNX text, the syntax of onnx.parser and onnx.printer, to the bytes of a ModelProto. Source of the grammar:
 * onnx/defs/parser.{h,cc} and docs/Syntax.md at f7546912. Beyond it, lists of tensors, graphs and types are read, which the printer
 * writes, and values of the types below 8 bits.
 */
import {
  ATTRIBUTE_TYPES,
  type AttributeTypeName,
  DTYPE_OF_CODE,
  FIELD_STORAGE,
  fieldsByName,
} from '../schema.js'
import { codeOfElementName } from './element_names.js'
import { MessageWriter } from './message_writer.js'
import { INTEGER_RANGES } from './numbers.js'
import { TextCursor } from './text_cursor.js'

const WORD = /[A-Za-z_][A-Za-z0-9_]*/y
const INTEGER = /-?\d+(?![\d.eE])/y
const NUMBER = /-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf(?:inity)?\b|nan\b)/iy

/** @throws TileworkError ERR_HEADER with line and column for what is no model; ERR_LIMIT */
export function parseOnnxText(text: string, depthLimit: number): Uint8Array {
  return new Parser(new TextCursor(text, depthLimit, true)).model()
}

/** A type, and what a tensor needs of it. */
interface ParsedType {
  readonly message: MessageWriter
  /** Of a tensor type: the code of the elements, and the dims, absent where the rank is unknown. */
  readonly code?: number
  readonly dims?: readonly (string | bigint | null)[]
}

class Parser {
  readonly #cursor: TextCursor

  constructor(cursor: TextCursor) {
    this.#cursor = cursor
  }

  model(): Uint8Array {
    const model = new MessageWriter('ModelProto')
    if (this.#cursor.takes('<')) this.#header(model, MODEL_FIELDS)
    model.message(fieldOf(model, 'graph'), this.#graph(2))
    while (!this.#cursor.isAtEnd) model.message(fieldOf(model, 'functions'), this.#function())
    return model.finish().finish()
  }

  /** `name: value` with commas, up to `>`. */
  #header(message: MessageWriter, known: readonly string[]): void {
    const cursor = this.#cursor
    do {
      cursor.next()
      const at = cursor.position
      const name = this.#word('the name of a field')
      if (!known.includes(name))
        throw cursor.error(`unknown field "${name}"; expected one of: ${known.join(', ')}`, 'ERR_HEADER', at)
      const info = fieldOf(message, name)
      if (!message.claim(info)) throw cursor.error(`the field "${name}" is given twice`, 'ERR_HEADER', at)
      cursor.expect(':')
      if (name === 'opset_import') this.#pairs(message, name, 'OperatorSetIdProto', ['domain', 'version'])
      else if (name === 'metadata_props')
        this.#pairs(message, name, 'StringStringEntryProto', ['key', 'value'])
      else if (info.kind === 'string') message.text(info, this.#string())
      else message.int(info, this.#integer(INTEGER_RANGES.int64!))
    } while (cursor.takes(','))
    cursor.expect('>')
  }

  /** `["a": 1, "b": 2]` as messages of two fields. */
  #pairs(
    message: MessageWriter,
    name: string,
    type: 'OperatorSetIdProto' | 'StringStringEntryProto',
    [first, second]: readonly [string, string],
  ): void {
    this.#list('[', ']', () => {
      const entry = new MessageWriter(type)
      entry.text(fieldOf(entry, first), this.#string())
      this.#cursor.expect(':')
      const info = fieldOf(entry, second)
      if (info.kind === 'string') entry.text(info, this.#string())
      else entry.int(info, this.#integer(INTEGER_RANGES.int64!))
      message.message(fieldOf(message, name), entry)
    })
  }

  /** `name (inputs) => (outputs) <initializers and types> { nodes }` */
  #graph(depth: number): MessageWriter {
    this.#cursor.checkDepth(depth)
    const graph = new MessageWriter('GraphProto')
    graph.text(fieldOf(graph, 'name'), this.#name('the name of a graph'))
    if (this.#cursor.next() === '(')
      this.#list('(', ')', () => this.#declaration(graph, 'input', true, depth))
    this.#cursor.expect('=>')
    this.#list('(', ')', () => this.#declaration(graph, 'output', false, depth))
    if (this.#cursor.next() === '<')
      this.#list('<', '>', () => this.#declaration(graph, 'value_info', true, depth))
    this.#nodes(graph, depth)
    return graph
  }

  /** `type name`, or with `= values` an initializer: an input stays one then. */
  #declaration(graph: MessageWriter, list: string, hasValues: boolean, depth: number): void {
    const type = this.#isType() ? this.#type(depth + 2) : undefined
    const name = this.#name('the name of a value')
    const isInitializer = hasValues && this.#cursor.takes('=')
    if (isInitializer) {
      const tensor = new MessageWriter('TensorProto')
      this.#tensor(tensor, type, name)
      graph.message(fieldOf(graph, 'initializer'), tensor)
      if (list !== 'input') return
    }
    graph.message(fieldOf(graph, list), valueInfo(name, type))
  }

  #function(): MessageWriter {
    const body = new MessageWriter('FunctionProto')
    if (this.#cursor.takes('<')) this.#header(body, FUNCTION_FIELDS)
    body.text(fieldOf(body, 'name'), this.#name('the name of a function'))
    if (this.#cursor.next() === '<') this.#list('<', '>', () => this.#formalAttribute(body))
    for (const end of ['input', 'output']) {
      if (end === 'output') this.#cursor.expect('=>')
      this.#list('(', ')', () => {
        const type = this.#isType() ? this.#type(4) : undefined
        const name = this.#name('the name of a value')
        body.text(fieldOf(body, end), name)
        if (type) body.message(fieldOf(body, 'value_info'), valueInfo(name, type))
      })
    }
    if (this.#cursor.next() === '<')
      this.#list('<', '>', () => this.#declaration(body, 'value_info', false, 2))
    this.#nodes(body, 2)
    return body
  }

  /** A name, or an attribute with its default. */
  #formalAttribute(body: MessageWriter): void {
    const name = this.#name('the name of an attribute')
    const next = this.#cursor.next()
    if (next === ':' || next === '=') body.message(fieldOf(body, 'attribute_proto'), this.#attribute(name, 3))
    else body.text(fieldOf(body, 'attribute'), name)
  }

  #nodes(owner: MessageWriter, depth: number): void {
    const info = fieldOf(owner, 'node')
    this.#cursor.expect('{')
    while (!this.#cursor.takes('}')) owner.message(info, this.#node(depth + 1))
  }

  /** `[name] outputs = domain.Operator:overload <attributes> (inputs) <attributes>` */
  #node(depth: number): MessageWriter {
    const cursor = this.#cursor
    cursor.checkDepth(depth)
    const node = new MessageWriter('NodeProto')
    if (cursor.takes('[')) {
      node.text(fieldOf(node, 'name'), this.#optionalName() ?? '')
      cursor.expect(']')
    }
    this.#names(node, 'output')
    cursor.expect('=')
    const words = [this.#word('an operator')]
    while (cursor.takes('.')) words.push(this.#word('an operator'))
    node.text(fieldOf(node, 'op_type'), words.pop()!)
    node.text(fieldOf(node, 'domain'), words.join('.'))
    if (cursor.takes(':')) node.text(fieldOf(node, 'overload'), this.#word('an overload'))
    const isBefore = this.#attributes(node, depth)
    cursor.expect('(')
    this.#names(node, 'input')
    cursor.expect(')')
    if (!isBefore) this.#attributes(node, depth)
    return node
  }

  /** Names with commas; one that is missing before a comma is empty. */
  #names(node: MessageWriter, list: 'input' | 'output'): void {
    const info = fieldOf(node, list)
    for (;;) {
      const name = this.#optionalName()
      if (name !== undefined || this.#cursor.next() === ',') node.text(info, name ?? '')
      if (!this.#cursor.takes(',')) return
    }
  }

  #attributes(node: MessageWriter, depth: number): boolean {
    if (this.#cursor.next() !== '<') return false
    this.#list('<', '>', () => {
      const attribute = this.#attribute(this.#word('the name of an attribute'), depth + 1)
      node.message(fieldOf(node, 'attribute'), attribute)
    })
    return true
  }

  /** `: type = value`, the type optional. */
  #attribute(name: string, depth: number): MessageWriter {
    const cursor = this.#cursor
    cursor.checkDepth(depth)
    const attribute = new MessageWriter('AttributeProto')
    attribute.text(fieldOf(attribute, 'name'), name)
    const declared = cursor.takes(':') ? this.#attributeType() : undefined
    cursor.expect('=')
    // The printer of onnx opens lists with the first text, so an empty one is `]`.
    if (declared === 'STRINGS' && cursor.takes(']')) {
      attribute.int(fieldOf(attribute, 'type'), ATTRIBUTE_TYPES.indexOf(declared))
      return attribute
    }
    const type =
      cursor.next() === '['
        ? this.#values(attribute, declared, depth)
        : this.#value(attribute, declared, depth)
    if (type !== undefined) attribute.int(fieldOf(attribute, 'type'), ATTRIBUTE_TYPES.indexOf(type))
    return attribute
  }

  #attributeType(): AttributeTypeName {
    this.#cursor.next()
    const at = this.#cursor.position
    const word = this.#word('the type of an attribute').toUpperCase() as AttributeTypeName
    if (ATTRIBUTE_TYPES.indexOf(word) > 0) return word
    throw this.#cursor.error(`unknown attribute type "${word.toLowerCase()}"`, 'ERR_HEADER', at)
  }

  /** A list, whose type may be given by its first value. */
  #values(
    attribute: MessageWriter,
    declared: AttributeTypeName | undefined,
    depth: number,
  ): AttributeTypeName {
    const cursor = this.#cursor
    const at = cursor.position
    let single = declared && SINGLE_TYPES[declared]
    if (declared !== undefined && single === undefined)
      throw cursor.error(`an attribute of type ${declared.toLowerCase()} takes one value`, 'ERR_HEADER', at)
    this.#list('[', ']', () => {
      single = this.#single(attribute, single, true, depth)
    })
    const type = single && LIST_TYPES[single]
    if (type !== undefined) return type
    throw cursor.error('the type of an empty list is unknown; write "name: type = []"', 'ERR_HEADER', at)
  }

  /** One value, or `@name`. */
  #value(
    attribute: MessageWriter,
    declared: AttributeTypeName | undefined,
    depth: number,
  ): AttributeTypeName | undefined {
    if (!this.#cursor.takes('@')) return this.#single(attribute, declared, false, depth)
    attribute.text(fieldOf(attribute, 'ref_attr_name'), this.#name('the name of an attribute'))
    return declared
  }

  /** A value of the type that is wanted, or of the one that it has. */
  #single(
    attribute: MessageWriter,
    wanted: AttributeTypeName | undefined,
    isListed: boolean,
    depth: number,
  ): AttributeTypeName {
    const cursor = this.#cursor
    cursor.next()
    const at = cursor.position
    const found = this.#kindOfNext(wanted)
    if (wanted !== undefined && found !== wanted)
      throw cursor.error(
        `the value is ${found.toLowerCase()}; the attribute takes ${wanted.toLowerCase()}`,
        'ERR_HEADER',
        at,
      )
    const [single, list] = VALUE_FIELDS[found]!
    const info = fieldOf(attribute, isListed ? list : single)
    if (found === 'INT') attribute.int(info, this.#integer(INTEGER_RANGES.int64!))
    else if (found === 'FLOAT') attribute.float(info, this.#float())
    else if (found === 'STRING') attribute.bytes(info, Buffer.from(this.#string(), 'utf8'))
    else if (found === 'GRAPH') attribute.message(info, this.#graph(depth + 1))
    else this.#typed(attribute, info, found, depth)
    return found
  }

  /** What begins with a type: a tensor, or the type itself. */
  #typed(
    attribute: MessageWriter,
    info: ReturnType<typeof fieldOf>,
    found: AttributeTypeName,
    depth: number,
  ): void {
    const type = this.#type(depth + 1)
    if (found === 'TYPE_PROTO') {
      attribute.message(info, type.message)
      return
    }
    const tensor = new MessageWriter('TensorProto')
    const name = this.#optionalName()
    this.#cursor.takes('=')
    this.#tensor(tensor, type, name ?? '')
    attribute.message(info, tensor)
  }

  #kindOfNext(wanted: AttributeTypeName | undefined): AttributeTypeName {
    const cursor = this.#cursor
    // The name of a graph is quoted where it is no word.
    if (cursor.next() === '"') return wanted === 'GRAPH' ? wanted : 'STRING'
    if (cursor.peek(INTEGER) !== undefined) return wanted === 'FLOAT' ? 'FLOAT' : 'INT'
    if (cursor.peek(NUMBER) !== undefined) return 'FLOAT'
    if (!this.#isType()) return 'GRAPH'
    if (wanted === 'TENSOR' || wanted === 'TYPE_PROTO') return wanted
    const start = cursor.position
    this.#type(1)
    const isTensor = /[{="[A-Za-z_]/.test(cursor.next())
    cursor.position = start
    return isTensor ? 'TENSOR' : 'TYPE_PROTO'
  }

  /** The type of a value. @param depth - of the message */
  #type(depth: number): ParsedType {
    const cursor = this.#cursor
    cursor.checkDepth(depth)
    cursor.next()
    const at = cursor.position
    const word = this.#word('a type')
    const message = new MessageWriter('TypeProto')
    const code = codeOfElementName(word)
    if (code !== undefined) {
      const dims = this.#dims()
      message.message(fieldOf(message, 'tensor_type'), tensorType(code, dims))
      return { message, code, ...(dims && { dims }) }
    }
    const parse = this.#nested[word]
    if (!parse) throw cursor.error(`unknown type "${word}"`, 'ERR_HEADER', at)
    cursor.expect('(')
    parse(message, depth)
    cursor.expect(')')
    return { message }
  }

  readonly #nested: Readonly<Record<string, (type: MessageWriter, depth: number) => void>> = {
    __proto__: null as never,
    seq: (type, depth) => this.#containerType(type, 'sequence_type', depth),
    optional: (type, depth) => this.#containerType(type, 'optional_type', depth),
    map: (type, depth) => {
      const map = new MessageWriter('TypeProtoMap')
      map.int(fieldOf(map, 'key_type'), this.#elementCode())
      this.#cursor.expect(',')
      map.message(fieldOf(map, 'value_type'), this.#type(depth + 2).message)
      type.message(fieldOf(type, 'map_type'), map)
    },
    sparse_tensor: (type) => {
      const code = this.#elementCode()
      type.message(fieldOf(type, 'sparse_tensor_type'), tensorType(code, this.#dims()))
    },
  }

  #containerType(type: MessageWriter, field: string, depth: number): void {
    const container = new MessageWriter('TypeProtoSequence')
    container.message(fieldOf(container, 'elem_type'), this.#type(depth + 2).message)
    type.message(fieldOf(type, field), container)
  }

  #elementCode(): number {
    this.#cursor.next()
    const at = this.#cursor.position
    const word = this.#word('an element type')
    const code = codeOfElementName(word)
    if (code !== undefined) return code
    throw this.#cursor.error(`unknown element type "${word}"`, 'ERR_HEADER', at)
  }

  /** Dims in brackets; none at all are those of a scalar, and `[]` is an unknown rank. */
  #dims(): readonly (string | bigint | null)[] | undefined {
    if (this.#cursor.next() !== '[') return []
    const dims: (string | bigint | null)[] = []
    this.#list('[', ']', () => {
      if (this.#cursor.takes('?')) dims.push(null)
      else dims.push(this.#optionalName() ?? this.#integer(INTEGER_RANGES.int64!))
    })
    return dims.length === 0 ? undefined : dims
  }

  /** `{ values }`, or `[where]` of external data, or nothing. */
  #tensor(tensor: MessageWriter, type: ParsedType | undefined, name: string): void {
    const cursor = this.#cursor
    const { code, dims } = type ?? {}
    if (code === undefined) throw cursor.error('values need the type of a tensor before their name')
    const fixed = dims?.filter((dim) => typeof dim === 'bigint')
    if (!fixed || fixed.length < dims!.length)
      throw cursor.error('the type of values needs dims that are numbers')
    for (const dim of fixed) tensor.int(fieldOf(tensor, 'dims'), dim)
    tensor.int(fieldOf(tensor, 'data_type'), code)
    tensor.text(fieldOf(tensor, 'name'), name)
    if (cursor.next() === '[') {
      this.#pairs(tensor, 'external_data', 'StringStringEntryProto', ['key', 'value'])
      tensor.int(fieldOf(tensor, 'data_location'), 1)
    } else if (cursor.next() === '{') this.#numbers(tensor, code)
    else if (DTYPE_OF_CODE.get(code) === 'string') cursor.takes('}')
    else if (cursor.takes('...'))
      throw cursor.error('the values are omitted ("..."); the text is no whole model', 'ERR_NO_DATA')
  }

  #numbers(tensor: MessageWriter, code: number): void {
    const dtype = DTYPE_OF_CODE.get(code)!
    if (dtype === 'string') {
      const info = fieldOf(tensor, 'string_data')
      this.#list('{', '}', () => tensor.bytes(info, Buffer.from(this.#string(), 'utf8')))
      return
    }
    const info = fieldOf(tensor, FIELD_STORAGE[dtype].field)
    if (info.kind === 'float' || info.kind === 'double')
      this.#list('{', '}', () => tensor.float(info, this.#float()))
    else {
      const range = INTEGER_RANGES[info.kind as 'int32']!
      this.#list('{', '}', () => tensor.int(info, this.#integer(range)))
    }
  }

  #list(open: string, close: string, item: () => void): void {
    const cursor = this.#cursor
    cursor.expect(open)
    if (cursor.takes(close)) return
    do item()
    while (cursor.takes(','))
    cursor.expect(close)
  }

  #isType(): boolean {
    const word = this.#cursor.peek(WORD)
    return word !== undefined && (codeOfElementName(word) !== undefined || word in this.#nested)
  }

  #word(what: string): string {
    return this.#cursor.need(WORD, what)
  }

  /** A word, or a quoted name. */
  #name(what: string): string {
    return this.#optionalName() ?? this.#word(what)
  }

  #optionalName(): string | undefined {
    return this.#cursor.next() === '"' ? this.#string() : this.#cursor.match(WORD)
  }

  /** Of escapes only the backslash goes. */
  #string(): string {
    return this.#cursor.quoted().replace(/\\([\s\S])/g, '$1')
  }

  #integer([lowest, highest]: readonly [bigint, bigint]): bigint {
    const cursor = this.#cursor
    cursor.next()
    const at = cursor.position
    const value = BigInt(cursor.numeral(INTEGER, 'an integer'))
    if (value >= lowest && value <= highest) return value
    throw cursor.error(`${value} is not from ${lowest} to ${highest}`, 'ERR_OVERFLOW', at)
  }

  #float(): string {
    return this.#cursor.numeral(NUMBER, 'a number')
  }
}

const MODEL_FIELDS = [
  'ir_version',
  'opset_import',
  'producer_name',
  'producer_version',
  'domain',
  'model_version',
  'doc_string',
  'metadata_props',
]
const FUNCTION_FIELDS = ['opset_import', 'doc_string', 'domain', 'overload']

/** Fields of one value and of a list, by the type of one. */
const VALUE_FIELDS: Readonly<Partial<Record<AttributeTypeName, readonly [single: string, list: string]>>> = {
  FLOAT: ['f', 'floats'],
  INT: ['i', 'ints'],
  STRING: ['s', 'strings'],
  TENSOR: ['t', 'tensors'],
  GRAPH: ['g', 'graphs'],
  TYPE_PROTO: ['tp', 'type_protos'],
}
const LIST_TYPES: Readonly<Partial<Record<AttributeTypeName, AttributeTypeName>>> = {
  FLOAT: 'FLOATS',
  INT: 'INTS',
  STRING: 'STRINGS',
  TENSOR: 'TENSORS',
  GRAPH: 'GRAPHS',
  TYPE_PROTO: 'TYPE_PROTOS',
  SPARSE_TENSOR: 'SPARSE_TENSORS',
}
const SINGLE_TYPES = Object.fromEntries(
  Object.entries(LIST_TYPES).map(([single, list]) => [list, single]),
) as Partial<Record<AttributeTypeName, AttributeTypeName>>

function fieldOf(message: MessageWriter, name: string) {
  return fieldsByName(message.type).get(name)!
}

function valueInfo(name: string, type: ParsedType | undefined): MessageWriter {
  const value = new MessageWriter('ValueInfoProto')
  value.text(fieldOf(value, 'name'), name)
  if (type) value.message(fieldOf(value, 'type'), type.message)
  return value
}

function tensorType(code: number, dims: readonly (string | bigint | null)[] | undefined): MessageWriter {
  const type = new MessageWriter('TypeProtoTensor')
  type.int(fieldOf(type, 'elem_type'), code)
  if (!dims) return type
  const shape = new MessageWriter('TensorShapeProto')
  for (const each of dims) {
    const dim = new MessageWriter('TensorShapeDimension')
    if (typeof each === 'string') dim.text(fieldOf(dim, 'dim_param'), each)
    else if (each !== null) dim.int(fieldOf(dim, 'dim_value'), each)
    shape.message(fieldOf(shape, 'dim'), dim)
  }
  type.message(fieldOf(type, 'shape'), shape)
  return type
}
