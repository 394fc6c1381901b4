/**
 * Walks a file from its root to every struct, and checks everything that would make it unsafe to read. Open, check,
 * rewrite and coverage share this walk; the report decides whether a broken rule throws.
 */
import type { ByteSource } from '../../../bytes/source.js'
import { rangeFault } from '../../exact_size.js'
import type { Limits } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { Location } from '../location.js'
import {
  MAIN_VERSION,
  MAX_DEVICES,
  OLD_SUBGRAPH_BYTES,
  STRUCT_LAYOUTS,
  type StructValues,
} from '../schema.js'
import { MissingBytes, PagedFile, type ReadTask } from './paged_file.js'
import { readOperator } from './read_operator.js'
import { RecordReader } from './record_reader.js'
import type {
  AttributeRecord,
  BufferRecord,
  DeviceRecord,
  FileRecords,
  ListRecord,
  NodeRecord,
  SubgraphRecord,
  TensorRecord,
  TextRecord,
  VectorRecord,
} from './records.js'

/** All records of the file; undefined where its frame cannot be read, which is reported. */
export async function walkFile(
  source: ByteSource,
  limits: Limits,
  report: Report,
): Promise<FileRecords | undefined> {
  const file = new PagedFile(source, limits, report)
  return file.run(readFile(new RecordReader(file, report), file.budget.limit('tensors')))
}

function* readFile(reader: RecordReader, maxEntries: number): ReadTask<FileRecords | undefined> {
  const { file } = reader
  const frame = yield* file.attempt(() => readFrame(reader))
  if (!frame) return undefined
  const graph = yield* new GraphWalk(reader, maxEntries).read(frame.subgraphs)
  return graph && { byteLength: file.byteLength, ...frame, graph }
}

function readFrame(reader: RecordReader): Omit<FileRecords, 'byteLength' | 'graph'> | undefined {
  const header = readHeader(reader, reader.file.byteLength)
  if (!header) return undefined
  const root = reader.struct('root', header.root, { path: 'root', offset: header.root })
  if (!root) return undefined
  const name = reader.text(root.name, { path: 'name', offset: root.name })
  const subgraphs = readSubgraphs(reader, root.subgraphs)
  return subgraphs && { header, root, name, subgraphs }
}

function readHeader(reader: RecordReader, byteLength: number): StructValues<'header'> | undefined {
  const { report, file } = reader
  const place: Place = { path: 'header', offset: 0 }
  const minBytes = STRUCT_LAYOUTS.header.byteLength
  if (byteLength < minBytes) {
    const message = `The file has ${byteLength} bytes; a tmfile has at least ${minBytes}.`
    report.broken('ERR_TRUNCATED', message, place)
    return undefined
  }
  const view = file.view(0, minBytes)
  const [ver_main, ver_sub, ver_compile] = [0, 2, 4].map((at) => view.getUint16(at, true)) as [
    number,
    number,
    number,
  ]
  if (ver_main !== MAIN_VERSION) {
    const reason = ver_main < MAIN_VERSION ? ', because files of 2018 have different structs' : ''
    const message = `The main version is ${ver_main}; only version ${MAIN_VERSION} is supported${reason}.`
    report.broken('ERR_UNSUPPORTED', message, place)
    return undefined
  }
  if (ver_sub !== 0 || ver_compile !== 0) {
    const message = `The version is ${ver_main}.${ver_sub}.${ver_compile}; known writers store ${MAIN_VERSION}.0.0.`
    report.note('ERR_HEADER', message, place)
  }
  return { ver_main, ver_sub, ver_compile, root: view.getUint32(8, true) }
}

/** The first entry is the graph. A count above 1 means that the file has device subgraphs; no further entry is stored. */
function readSubgraphs(reader: RecordReader, offset: number): VectorRecord | undefined {
  const place = { path: 'subgraphs', offset }
  const vector = reader.offsetVector(offset, place, 1)
  if (vector?.count !== 0) return vector
  reader.report.broken('ERR_HEADER', 'The file has no subgraph: the subgraph vector is empty.', place)
  return undefined
}

/** Old writers included a NUL in the size of an attribute's name without writing it; another record follows directly. */
export const UNWRITTEN_NUL_BYTES = 1

class GraphWalk {
  readonly #reader: RecordReader
  readonly #maxEntries: number

  constructor(reader: RecordReader, maxEntries: number) {
    this.#reader = reader
    this.#maxEntries = maxEntries
  }

  *read(subgraphs: VectorRecord): ReadTask<SubgraphRecord | undefined> {
    const reader = this.#reader
    const offset = subgraphs.entries[0]!
    // Every writer puts the vector directly after the subgraph, so the distance is the size of the subgraph's form.
    const byteLength =
      subgraphs.offset - offset === OLD_SUBGRAPH_BYTES
        ? OLD_SUBGRAPH_BYTES
        : STRUCT_LAYOUTS.subgraph.byteLength
    const location = new Location(offset, 'subgraphs[0]')
    const values = yield* reader.file.attempt(() => reader.struct('subgraph', offset, location, byteLength))
    if (!values) return undefined
    const name = yield* reader.file.attempt(() =>
      reader.text(values.name, location.child('name', values.name)),
    )
    const nodes = yield* this.#list(values.nodes, 'nodes', (entry) => this.#node(entry))
    const tensors = yield* this.#list(values.tensors, 'tensors', (entry) => this.#tensor(entry))
    if (!nodes || !tensors) return undefined
    const buffers =
      values.buffers === 0
        ? undefined
        : yield* this.#list(values.buffers, 'buffers', (entry) => this.#buffer(entry))
    const inputs = yield* reader.file.attempt(() => this.#indices(new Location(values.inputs, 'inputs')))
    const outputs = yield* reader.file.attempt(() => this.#indices(new Location(values.outputs, 'outputs')))
    const devices = yield* this.#devices(subgraphs, byteLength, values)
    return { offset, byteLength, values, name, nodes, tensors, buffers, inputs, outputs, devices }
  }

  *#list<T>(
    offset: number,
    path: string,
    readEntry: (location: Location) => T | undefined,
    maxCount = this.#maxEntries,
  ): ReadTask<ListRecord<T> | undefined> {
    const location = new Location(offset, path)
    const { file } = this.#reader
    const vector = yield* file.attempt(() => this.#reader.vector(offset, 'offset', location, { maxCount }))
    if (!vector) return undefined
    file.expect(vector.entries)
    const list: (T | undefined)[] = []
    for (const [index, entry] of vector.entries.entries()) {
      const place = location.child(index, entry)
      let record = file.tryDecode(readEntry, place)
      while (record instanceof MissingBytes) {
        yield record.range
        record = file.tryDecode(readEntry, place)
      }
      list.push(record)
    }
    return { vector, list }
  }

  /** An optional vector of indices. */
  #indices(location: Location): VectorRecord | undefined {
    return location.offset === 0 ? undefined : this.#reader.offsetVector(location.offset, location)
  }

  #name(offset: number, owner: Location): TextRecord | undefined {
    return this.#reader.text(offset, owner.child('name', offset))
  }

  #node(location: Location): NodeRecord | undefined {
    const { offset } = location
    const values = this.#reader.struct('node', offset, location)
    if (!values) return undefined
    const operator = readOperator(this.#reader, values.operator, location)
    const name = this.#name(values.name, location)
    const inputs = this.#indices(location.child('inputs', values.inputs))
    const outputs = this.#indices(location.child('outputs', values.outputs))
    const attributes = this.#attributes(location.child('attributes', values.attributes))
    return operator && { offset, values, name, inputs, outputs, attributes, operator }
  }

  #attributes(location: Location): NodeRecord['attributes'] {
    const vector = this.#indices(location)
    if (!vector) return undefined
    const list: AttributeRecord[] = []
    for (const [index, entry] of vector.entries.entries()) {
      const attribute = this.#attribute(location.child(index, entry))
      if (attribute) list.push(attribute)
    }
    return { vector, list }
  }

  #attribute(location: Location): AttributeRecord | undefined {
    const { offset } = location
    const values = this.#reader.struct('attribute', offset, location)
    if (!values) return undefined
    const nameLocation = location.child('name', values.name)
    const name = this.#reader.text(values.name, nameLocation, UNWRITTEN_NUL_BYTES)
    const value = this.#reader.rawText(values.value, location.child('value', values.value))
    return { offset, type: values.type, name, value }
  }

  #tensor(location: Location): TensorRecord | undefined {
    const reader = this.#reader
    const { offset } = location
    const values = reader.struct('tensor', offset, location)
    if (!values) return undefined
    const name = this.#name(values.name, location)
    const dims =
      values.dims === 0 ? undefined : reader.vector(values.dims, 'i32', location.child('dims', values.dims))
    const quantizationLocation = location.child('quantization', values.quantization)
    const quantization = reader.quantization(values.quantization, quantizationLocation)
    return { offset, values, name, dims, quantization }
  }

  #buffer(location: Location): BufferRecord | undefined {
    const { report, file } = this.#reader
    const values = this.#reader.struct('buffer', location.offset, location)
    if (!values) return undefined
    const { size, data } = values
    // Without a data offset the file holds no data, and the size is the size the data would have.
    const fault = data === 0 ? undefined : rangeFault(data, size, file.byteLength)
    if (fault !== undefined) {
      report.broken('ERR_TRUNCATED', `${location.path} ${fault}.`, location)
      return undefined
    }
    return { offset: location.offset, values }
  }

  /** Only files with several subgraphs have device subgraphs; in other files the field is uninitialised. */
  *#devices(
    subgraphs: VectorRecord,
    byteLength: number,
    values: StructValues<'subgraph'>,
  ): ReadTask<ListRecord<DeviceRecord> | undefined> {
    const isStored = subgraphs.count > 1 && byteLength > OLD_SUBGRAPH_BYTES
    if (!isStored) return undefined
    return yield* this.#list(values.devices, 'devices', (entry) => this.#device(entry), MAX_DEVICES)
  }

  #device(location: Location): DeviceRecord | undefined {
    const values = this.#reader.struct('device', location.offset, location)
    if (!values) return undefined
    const name = this.#name(values.name, location)
    const nodes = this.#indices(location.child('nodes', values.nodes))
    const inputs = this.#indices(location.child('inputs', values.inputs))
    const outputs = this.#indices(location.child('outputs', values.outputs))
    return { offset: location.offset, values, name, nodes, inputs, outputs }
  }
}
