/** Walks the tables of a file: every number is checked, and each table is read once. */
import type { ByteSource } from '../../bytes/source.js'
import type { QuantizationParameters } from '../../tensor/quantization.js'
import type { Budget } from '../budget.js'
import { FileFault } from '../file_fault.js'
import { quote } from '../quote.js'
import type { Report } from '../report.js'
import type { TfliteFile, TfliteSignature, TfliteSubgraph, TfliteTensor } from './model.js'
import { Pages } from './pages.js'
import type { TfliteType } from './schema.js'
import {
  IDENTIFIER,
  IDENTIFIER_AT,
  MAX_SUBGRAPHS,
  METADATA,
  MODEL,
  SIGNATURE,
  SUBGRAPH,
  TENSOR_MAP,
  VERSION,
} from './schema.js'
import type { Sparsity } from './sparsity.js'
import { Table, type Vector } from './table.js'
import { TensorReader } from './tensor_reader.js'

/** A tensor with data, which is made when someone asks for it. */
export interface NamedTensor {
  readonly name: string
  readonly type: TfliteType
  readonly shape: readonly number[]
  /** Range of its data in the file. */
  readonly start: number
  readonly end: number
  readonly quantization?: QuantizationParameters
  readonly sparsity?: Sparsity
}

export interface WalkedFile {
  readonly tensors: readonly NamedTensor[]
  readonly details: TfliteFile
}

export interface WalkMeans {
  readonly budget: Budget
  readonly report: Report
}

/** Undefined where the file cannot be read, which is reported. */
export async function walkFile(source: ByteSource, means: WalkMeans): Promise<WalkedFile | undefined> {
  try {
    return await new Walk(source, means).run()
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    means.report.broken(error.code, error.message, { path: error.path ?? '', offset: error.offset })
    return undefined
  }
}

class Walk {
  readonly #source: ByteSource
  readonly #means: WalkMeans
  readonly #pages: Pages
  readonly #names = new UniqueNames()
  readonly #tensors: NamedTensor[] = []

  constructor(source: ByteSource, means: WalkMeans) {
    this.#source = source
    this.#means = means
    this.#pages = new Pages(source)
  }

  async run(): Promise<WalkedFile> {
    const model = await this.#pages.run(() => rootOf(this.#pages))
    const { version, description, buffers } = await this.#pages.run(() => ({
      version: model.u32(MODEL.version),
      description: this.#charged(model.text(MODEL.description), model.at),
      buffers: model.vector(MODEL.buffers, 4),
    }))
    if (version !== VERSION) {
      throw new FileFault(
        'ERR_UNSUPPORTED',
        `The schema has version ${version}; version ${VERSION} is read.`,
        model.at,
      )
    }
    const reader = new TensorReader({
      source: this.#source,
      pages: this.#pages,
      model,
      buffers,
      ...this.#means,
    })
    const tables = await this.#tablesOf(model, MODEL.subgraphs, MAX_SUBGRAPHS)
    const subgraphs: TfliteSubgraph[] = []
    for (const [index, table] of tables.entries()) subgraphs.push(await this.#subgraph(table, index, reader))
    const signatures = await this.#signatures(model, subgraphs)
    const metadata: string[] = []
    for (const table of await this.#tablesOf(model, MODEL.metadata, MAX_SUBGRAPHS)) {
      metadata.push(await this.#pages.run(() => this.#charged(table.text(METADATA.name), table.at)))
    }
    return { tensors: this.#tensors, details: { version, description, subgraphs, signatures, metadata } }
  }

  async #subgraph(table: Table, index: number, reader: TensorReader): Promise<TfliteSubgraph> {
    const { name, vector, operatorCount } = await this.#pages.run(() => ({
      name: this.#charged(table.text(SUBGRAPH.name), table.at),
      vector: table.vector(SUBGRAPH.tensors, 4) ?? NOTHING,
      operatorCount: table.vector(SUBGRAPH.operators, 4)?.count ?? 0,
    }))
    this.#means.budget.demand('tensors', vector.count, table.at)
    const prefix = index === 0 ? '' : `${name === '' ? index : name}/`
    const tensors: TfliteTensor[] = []
    for (let at = 0; at < vector.count; at++) {
      const path = `subgraphs[${index}].tensors[${at}]`
      const { info, data } = await reader.read(await this.#pages.run(() => table.tableIn(vector, at)), path)
      const key = data && this.#names.of(prefix + info.name)
      tensors.push(key === undefined ? info : { ...info, key })
      if (data) this.#tensors.push({ name: key!, ...data })
    }
    const [inputs, outputs] = await this.#pages.run(() =>
      [SUBGRAPH.inputs, SUBGRAPH.outputs].map((field) => table.i32s(field) ?? []),
    )
    const nameOf = (position: number): string => nameAt(tensors, position, table.at)
    // An index of -1 is an argument that is left out.
    const named = (list: readonly number[]) =>
      list.map((position) => (position === -1 ? '' : nameOf(position)))
    return { name, tensors, inputs: named(inputs!), outputs: named(outputs!), operatorCount }
  }

  async #signatures(model: Table, subgraphs: readonly TfliteSubgraph[]): Promise<TfliteSignature[]> {
    const signatures: TfliteSignature[] = []
    for (const table of await this.#tablesOf(model, MODEL.signatures, MAX_SUBGRAPHS)) {
      const [key, index] = await this.#pages.run(
        () => [this.#charged(table.text(SIGNATURE.key), table.at), table.u32(SIGNATURE.subgraph)] as const,
      )
      const subgraph = subgraphs[index]
      if (!subgraph) {
        throw new FileFault(
          'ERR_VALUE',
          `The signature ${quote(key)} is of the subgraph ${index}, which there is not.`,
          table.at,
        )
      }
      const [inputs, outputs] = [
        await this.#arguments(table, SIGNATURE.inputs, subgraph),
        await this.#arguments(table, SIGNATURE.outputs, subgraph),
      ]
      signatures.push({ key, subgraph: index, inputs, outputs })
    }
    return signatures
  }

  async #arguments(
    table: Table,
    field: number,
    { tensors }: TfliteSubgraph,
  ): Promise<ReadonlyMap<string, string>> {
    const named = new Map<string, string>()
    for (const entry of await this.#tablesOf(table, field, tensors.length)) {
      const [name, position] = await this.#pages.run(
        () => [this.#charged(entry.text(TENSOR_MAP.name), entry.at), entry.u32(TENSOR_MAP.tensor)] as const,
      )
      named.set(name, nameAt(tensors, position, entry.at))
    }
    return named
  }

  /** The tables of a list, of which there may be `most`. */
  async #tablesOf(table: Table, field: number, most: number): Promise<Table[]> {
    const vector = await this.#pages.run(() => table.vector(field, 4) ?? NOTHING)
    if (vector.count > most) {
      throw new FileFault(
        'ERR_LIMIT',
        `The list at ${vector.at} has ${vector.count} tables; the limit is ${most}.`,
        vector.at,
      )
    }
    this.#means.budget.demand('headerBytes', TABLE_BYTES * vector.count, vector.at)
    const tables: Table[] = []
    for (let index = 0; index < vector.count; index++) {
      tables.push(await this.#pages.run(() => table.tableIn(vector, index)))
    }
    return tables
  }

  #charged(text: string, at: number): string {
    this.#means.budget.demand('headerBytes', text.length, at)
    return text
  }
}

const NOTHING: Vector = { at: 0, count: 0 }
/** Bytes of memory that a table takes here, about. */
const TABLE_BYTES = 64

function rootOf(pages: Pages): Table {
  if (pages.byteLength < IDENTIFIER_AT + IDENTIFIER.length) {
    const message = `The file has ${pages.byteLength} bytes; a TFLite file has at least ${IDENTIFIER_AT + IDENTIFIER.length}.`
    throw new FileFault('ERR_TRUNCATED', message, 0)
  }
  const identifier = Buffer.from(pages.bytes(IDENTIFIER_AT, IDENTIFIER.length)).toString('latin1')
  if (identifier !== IDENTIFIER) {
    throw new FileFault(
      'ERR_HEADER',
      `The file is named ${quote(identifier)}; it must be ${quote(IDENTIFIER)}.`,
      IDENTIFIER_AT,
    )
  }
  return new Table(pages, pages.u32(0))
}

function nameAt(tensors: readonly TfliteTensor[], position: number, at: number): string {
  const tensor = tensors[position]
  if (tensor) return tensor.name
  throw new FileFault('ERR_VALUE', `There is no tensor ${position}; the subgraph has ${tensors.length}.`, at)
}

/** Names of tensors with data: of equal ones, the second is `name#2`. */
class UniqueNames {
  /** How often a name was asked for. */
  readonly #asked = new Map<string, number>()
  readonly #taken = new Set<string>()

  of(name: string): string {
    let count = this.#asked.get(name) ?? 0
    let unique = name
    do {
      count++
      unique = count === 1 ? name : `${name}#${count}`
    } while (this.#taken.has(unique))
    this.#asked.set(name, count)
    this.#taken.add(unique)
    return unique
  }
}
