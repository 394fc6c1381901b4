/**
 * Prints models in ONNX text, the syntax of onnx.printer, which onnx.parser reads. Source: onnx/defs/printer.cc at f7546912;
 * as there, sparse initializers, annotations and defaults of function attributes have no text.
 */
import { checkOptions, readInput } from '../../../caller_input.js'
import { TileworkError } from '../../../errors.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { ATTRIBUTE_TYPES, FORMAT_NAME } from '../../../formats/onnx/schema.js'
import { floatText, writeFloat } from '../../../formats/onnx/text/float_text.js'
import { joinedNumbers } from '../../../formats/onnx/text/write_numbers.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { tensorText } from './tensor_text.js'
import { attributeTypeName, identifier, list, quoted, typeText } from './words.js'

export interface PrintOptions {
  /**
   * Tensors with more elements are printed as `...`, which no parser reads. Default: all values are printed, except those of
   * external data, of complex numbers and of types below 8 bits.
   */
  readonly maxElements?: number
}

/** Limit of the text: strings of Node have at most 2^29 characters. */
const MAX_TEXT_LENGTH = 2 ** 28

/** Spaces by which nodes of a graph are indented, and nodes of its subgraphs beyond them. */
const INDENT = 3

/**
 * A model in the syntax of onnx.printer: for bug reports, tests and comparisons by line.
 *
 * @throws TileworkError ERR_ARGUMENT; ERR_LIMIT beyond 2^28 characters; errors of reading tensors
 */
export async function printModel(model: OnnxModel, options: PrintOptions = {}): Promise<string> {
  checkModel(model, 'printModel')
  checkOptions(options, 'printModel', ['maxElements'])
  const { maxElements = Number.POSITIVE_INFINITY } = readInput('The options of printModel', () => ({
    ...options,
  }))
  if (typeof maxElements !== 'number' || !(maxElements >= 0)) {
    const text = `maxElements of printModel is ${valueText(maxElements)}; it must be a number from 0.`
    throw new TileworkError('ERR_ARGUMENT', text)
  }
  const printer = new Printer(maxElements)
  await printer.model(model.message)
  return printer.text()
}

class Printer {
  readonly #parts: string[] = []
  readonly #maxElements: number
  #length = 0
  #indent = INDENT

  constructor(maxElements: number) {
    this.#maxElements = maxElements
  }

  text(): string {
    return this.#parts.join('')
  }

  async model(model: Message): Promise<void> {
    this.#put(`<\n${modelFields(model).join(',\n')}\n>\n`)
    const graph = model.message('graph')
    if (graph) await this.#graph(graph)
    for (const body of model.messages('functions')) {
      this.#put('\n')
      await this.#function(body)
    }
  }

  async #graph(graph: Message): Promise<void> {
    const [inputs, outputs] = ['input', 'output'].map((name) =>
      list('(', ', ', ')', graph.messages(name).map(declarationText)),
    )
    this.#put(`${identifier(graph.text('name'))} ${inputs} => ${outputs} `)
    const initializers = graph.fieldsOf('initializer')
    const declared = graph.messages('value_info')
    if (initializers.length + declared.length > 0) {
      this.#put(`\n${' '.repeat(this.#indent)}<`)
      let separator = ''
      for (const field of initializers) {
        this.#put(separator + (await tensorText(field, ' = ', this.#maxElements)))
        separator = ', '
      }
      for (const value of declared) {
        this.#put(separator + declarationText(value))
        separator = ', '
      }
      this.#put('>\n')
    }
    await this.#nodes(graph.messages('node'))
  }

  async #function(body: Message): Promise<void> {
    const overload = body.text('overload')
    const imports = list('[', ',', ']', body.messages('opset_import').map(importText))
    const attributes = body.texts('attribute')
    const [inputs, outputs] = ['input', 'output'].map((name) => identifiers('(', body.texts(name), ')'))
    this.#put(`<\n  domain: ${quoted(body.text('domain'))},\n`)
    if (overload !== '') this.#put(`  overload: ${quoted(overload)},\n`)
    this.#put(`  opset_import: ${imports}\n>\n${identifier(body.text('name'))} `)
    if (attributes.length > 0) this.#put(list('<', ',', '>', attributes))
    this.#put(`${inputs} => ${outputs}\n`)
    await this.#nodes(body.messages('node'))
  }

  async #nodes(nodes: readonly Message[]): Promise<void> {
    this.#put('{\n')
    for (const node of nodes) await this.#node(node)
    this.#put(`${this.#indent > INDENT ? ' '.repeat(this.#indent - INDENT) : ''}}`)
  }

  /** Attributes are before the inputs, except those of a node with subgraphs. */
  async #node(node: Message): Promise<void> {
    const domain = node.text('domain')
    const overload = node.text('overload')
    const attributes = node.messages('attribute')
    const hasSubgraph = attributes.some((each) => each.has('g') || each.has('graphs'))
    const name = node.has('name') ? `[${identifier(node.text('name'))}] ` : ''
    const operator = `${domain === '' ? '' : `${domain}.`}${node.text('op_type')}${overload === '' ? '' : `:${overload}`}`
    this.#put(`${' '.repeat(this.#indent)}${name}${identifiers('', node.texts('output'), '')} = ${operator}`)
    if (!hasSubgraph) await this.#attributes(attributes)
    this.#put(identifiers(' (', node.texts('input'), ')'))
    if (hasSubgraph) await this.#attributes(attributes)
    this.#put('\n')
  }

  async #attributes(attributes: readonly Message[]): Promise<void> {
    if (attributes.length === 0) return
    await this.#list([' <', ', ', '>'], attributes, (each) => this.#attribute(each))
  }

  async #attribute(attribute: Message): Promise<void> {
    const code = Number(attribute.int('type') ?? 0)
    this.#put(`${attribute.text('name')}: ${attributeTypeName(code)} = `)
    if (attribute.has('ref_attr_name')) {
      this.#put(`@${attribute.text('ref_attr_name')}`)
      return
    }
    const type = ATTRIBUTE_TYPES[code] ?? 'UNDEFINED'
    const scalar = SCALAR_TEXTS[type]
    if (scalar) this.#put(scalar(attribute))
    else if (type === 'TENSOR' || type === 'TENSORS') await this.#tensors(attribute, type)
    else if (type === 'GRAPH' || type === 'GRAPHS') await this.#graphs(attribute, type)
  }

  async #tensors(attribute: Message, type: 'TENSOR' | 'TENSORS'): Promise<void> {
    const print = async (field: Parameters<typeof tensorText>[0]): Promise<void> => {
      this.#put(await tensorText(field, '', this.#maxElements))
    }
    if (type === 'TENSORS') await this.#list(['[', ', ', ']'], attribute.fieldsOf('tensors'), print)
    else {
      const [tensor] = attribute.fieldsOf('t')
      if (tensor) await print(tensor)
      else this.#put('undefined...')
    }
  }

  async #graphs(attribute: Message, type: 'GRAPH' | 'GRAPHS'): Promise<void> {
    this.#indent += INDENT
    const print = (graph: Message): Promise<void> => this.#graph(graph)
    if (type === 'GRAPHS') await this.#list(['[', ', ', ']'], attribute.messages('graphs'), print)
    else {
      const graph = attribute.message('g')
      if (graph) await print(graph)
    }
    this.#indent -= INDENT
  }

  async #list<T>(
    [open, separator, close]: readonly [string, string, string],
    items: readonly T[],
    print: (item: T) => Promise<void>,
  ): Promise<void> {
    this.#put(open)
    for (const [at, item] of items.entries()) {
      if (at > 0) this.#put(separator)
      await print(item)
    }
    this.#put(close)
  }

  #put(text: string): void {
    this.#length += text.length
    if (this.#length > MAX_TEXT_LENGTH) {
      const message = `The text would have more than ${MAX_TEXT_LENGTH} characters; set maxElements, or store values as external data.`
      throw new TileworkError('ERR_LIMIT', message, { format: FORMAT_NAME })
    }
    this.#parts.push(text)
  }
}

const TEXT_FIELDS = ['producer_name', 'producer_version', 'domain'] as const

function modelFields(model: Message): readonly string[] {
  const fields = [
    `ir_version: ${model.int('ir_version') ?? 0}`,
    `opset_import: ${list('[', ', ', ']', model.messages('opset_import').map(importText))}`,
    ...TEXT_FIELDS.filter((name) => model.has(name)).map((name) => `${name}: ${quoted(model.text(name))}`),
  ]
  const version = model.int('model_version')
  if (version !== undefined) fields.push(`model_version: ${version}`)
  if (model.has('doc_string')) fields.push(`doc_string: ${quoted(model.text('doc_string'))}`)
  const entries = model.messages('metadata_props')
  const properties = entries.map((each) => `${quoted(each.text('key'))}: ${quoted(each.text('value'))}`)
  if (entries.length > 0) fields.push(`metadata_props: ${list('[', ', ', ']', properties)}`)
  return fields.map((field) => ' '.repeat(INDENT) + field)
}

function importText(entry: Message): string {
  return `${quoted(entry.text('domain'))} : ${entry.int('version') ?? 0}`
}

function declarationText(value: Message): string {
  return `${typeText(value.message('type'))} ${identifier(value.text('name'))}`
}

function identifiers(open: string, names: readonly string[], close: string): string {
  return list(open, ', ', close, names.map(identifier))
}

const bytesText = (bytes: Uint8Array | undefined): string =>
  quoted(bytes ? new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) : '')

/** Attributes without tensors and graphs. */
const SCALAR_TEXTS: Readonly<
  Partial<Record<(typeof ATTRIBUTE_TYPES)[number], (attribute: Message) => string>>
> = {
  FLOAT: (each) => floatText(each.floats('f').at(-1) ?? 0, true),
  INT: (each) => String(each.int('i') ?? 0),
  STRING: (each) => bytesText(each.byteValues('s').at(-1)),
  FLOATS: (each) => {
    const values = each.floats('floats')
    return `[${joinedNumbers(values.length, ', ', (text, to, index) => writeFloat(text, to, values[index]!, true))}]`
  },
  INTS: (each) => list('[', ', ', ']', each.ints('ints').map(String)),
  STRINGS: (each) => {
    const texts = each.byteValues('strings').map(bytesText)
    // The printer of onnx opens the list with the first string.
    return texts.length === 0 ? ']' : list('[', ', ', ']', texts)
  },
  TYPE_PROTO: (each) => typeText(each.message('tp')),
  TYPE_PROTOS: (each) => list('[', ', ', ']', each.messages('type_protos').map(typeText)),
}
