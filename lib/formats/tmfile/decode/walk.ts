/**
 * Walks a file from its root to every struct, and checks on the way what would make it unsafe to read. One walk serves
 * open, check, rewrite and coverage; the report decides what something broken does.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Limits } from '../../format.js'
import type { Place, Report } from '../../report.js'
import { Spot } from '../location.js'
import {
  DEFAULT_TENSORS_LIMIT,
  MAIN_VERSION,
  MAX_DEVICES,
  OLD_SUBGRAPH_BYTES,
  PLACED,
  type StructValues,
} from '../schema.js'
import { FileBytes, type Reading } from './file_bytes.js'
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

/** Everything the file holds; undefined when its frame cannot be read, which is then reported. */
export async function walkFile(
  source: ByteSource,
  limits: Limits,
  report: Report,
): Promise<FileRecords | undefined> {
  const file = new FileBytes(source, limits, report)
  return file.run(readFile(new RecordReader(file, report), limits.tensors ?? DEFAULT_TENSORS_LIMIT))
}

function* readFile(reader: RecordReader, tensorsLimit: number): Reading<FileRecords | undefined> {
  const { byteLength } = reader.file
  const header = yield* readHeader(reader, byteLength)
  if (!header) return undefined
  const root = yield* reader.struct('root', header.root, { path: 'root', offset: header.root })
  if (!root) return undefined
  const name = yield* reader.text(root.name, { path: 'name', offset: root.name })
  const subgraphs = yield* readSubgraphs(reader, root.subgraphs)
  if (!subgraphs) return undefined
  const graph = yield* new GraphWalk(reader, tensorsLimit).read(subgraphs)
  return graph && { byteLength, header, root, name, subgraphs, graph }
}

function* readHeader(reader: RecordReader, byteLength: number): Reading<StructValues<'header'> | undefined> {
  const { report, file } = reader
  const place: Place = { path: 'header', offset: 0 }
  const least = PLACED.header.byteLength
  if (byteLength < least) {
    report.broken('ERR_TRUNCATED', `The file has ${byteLength} bytes; a tmfile has at least ${least}.`, place)
    return undefined
  }
  const view = yield* file.read(0, least)
  const [ver_main, ver_sub, ver_compile] = [0, 2, 4].map((at) => view.getUint16(at, true)) as [
    number,
    number,
    number,
  ]
  if (ver_main !== MAIN_VERSION) {
    const message =
      ver_main < MAIN_VERSION
        ? `The main version is ${ver_main}; files of 2018 have other structs, and only version ${MAIN_VERSION} can be read.`
        : `The main version is ${ver_main}; only version ${MAIN_VERSION} can be read.`
    report.broken('ERR_UNSUPPORTED', message, place)
    return undefined
  }
  if (ver_sub !== 0 || ver_compile !== 0) {
    const message = `The version is ${ver_main}.${ver_sub}.${ver_compile}; no writer of another than ${MAIN_VERSION}.0.0 is known.`
    report.note('ERR_HEADER', message, place)
  }
  return { ver_main, ver_sub, ver_compile, root: view.getUint32(8, true) }
}

/** The first entry is the graph; with a count above 1 the file has device subgraphs, and no further entry is stored. */
function* readSubgraphs(reader: RecordReader, at: number): Reading<VectorRecord | undefined> {
  const place = { path: 'subgraphs', offset: at }
  const vector = yield* reader.words(at, place, 1)
  if (vector?.count !== 0) return vector
  reader.report.broken('ERR_HEADER', 'The file has no subgraph: their vector is empty.', place)
  return undefined
}

/** Old writers counted a NUL at the end of an attribute's name, and what lies there is of something else. */
export const UNWRITTEN_NUL = 1

class GraphWalk {
  readonly #reader: RecordReader
  readonly #limit: number

  constructor(reader: RecordReader, limit: number) {
    this.#reader = reader
    this.#limit = limit
  }

  *read(subgraphs: VectorRecord): Reading<SubgraphRecord | undefined> {
    const reader = this.#reader
    const at = subgraphs.entries[0]!
    // Every writer puts the vector right behind the subgraph, which is how old ones, a field shorter, are told.
    const byteLength =
      subgraphs.at - at === OLD_SUBGRAPH_BYTES ? OLD_SUBGRAPH_BYTES : PLACED.subgraph.byteLength
    const spot = new Spot(at, 'subgraphs[0]')
    const values = yield* reader.struct('subgraph', at, spot, byteLength)
    if (!values) return undefined
    const name = yield* reader.text(values.name, spot.at('name', values.name))
    const nodes = yield* this.#list(values.nodes, 'nodes', (spot) => this.#node(spot))
    const tensors = yield* this.#list(values.tensors, 'tensors', (spot) => this.#tensor(spot))
    if (!nodes || !tensors) return undefined
    const buffers =
      values.buffers === 0
        ? undefined
        : yield* this.#list(values.buffers, 'buffers', (spot) => this.#buffer(spot))
    const inputs = yield* this.#indices(new Spot(values.inputs, 'inputs'))
    const outputs = yield* this.#indices(new Spot(values.outputs, 'outputs'))
    const devices = yield* this.#devices(subgraphs, byteLength, values)
    return { at, byteLength, values, name, nodes, tensors, buffers, inputs, outputs, devices }
  }

  *#list<T>(
    at: number,
    path: string,
    read: (spot: Spot) => Reading<T | undefined>,
  ): Reading<ListRecord<T> | undefined> {
    const spot = new Spot(at, path)
    const vector = yield* this.#reader.vector(at, 'offset', spot, { most: this.#limit })
    if (!vector) return undefined
    const list: (T | undefined)[] = []
    for (const [index, offset] of vector.entries.entries()) list.push(yield* read(spot.at(index, offset)))
    return { vector, list }
  }

  /** A vector of indices that may be absent. */
  *#indices(spot: Spot): Reading<VectorRecord | undefined> {
    return spot.offset === 0 ? undefined : yield* this.#reader.words(spot.offset, spot)
  }

  #name(at: number, owner: Spot): Reading<TextRecord | undefined> {
    return this.#reader.text(at, owner.at('name', at))
  }

  *#node(spot: Spot): Reading<NodeRecord | undefined> {
    const values = yield* this.#reader.struct('node', spot.offset, spot)
    if (!values) return undefined
    const operator = yield* readOperator(this.#reader, values.operator, spot)
    const name = yield* this.#name(values.name, spot)
    const inputs = yield* this.#indices(spot.at('inputs', values.inputs))
    const outputs = yield* this.#indices(spot.at('outputs', values.outputs))
    const attributes = yield* this.#attributes(spot.at('attributes', values.attributes))
    return operator && { at: spot.offset, values, name, inputs, outputs, attributes, operator }
  }

  *#attributes(spot: Spot): Reading<NodeRecord['attributes']> {
    const vector = yield* this.#indices(spot)
    if (!vector) return undefined
    const list: AttributeRecord[] = []
    for (const [index, offset] of vector.entries.entries()) {
      const attribute = yield* this.#attribute(spot.at(index, offset))
      if (attribute) list.push(attribute)
    }
    return { vector, list }
  }

  *#attribute(spot: Spot): Reading<AttributeRecord | undefined> {
    const values = yield* this.#reader.struct('attribute', spot.offset, spot)
    if (!values) return undefined
    const name = yield* this.#reader.text(values.name, spot.at('name', values.name), UNWRITTEN_NUL)
    const value = yield* this.#reader.rawText(values.value, spot.at('value', values.value))
    return { at: spot.offset, type: values.type, name, value }
  }

  *#tensor(spot: Spot): Reading<TensorRecord | undefined> {
    const reader = this.#reader
    const values = yield* reader.struct('tensor', spot.offset, spot)
    if (!values) return undefined
    const name = yield* this.#name(values.name, spot)
    const hasDims = values.dims !== 0
    const dims = hasDims ? yield* reader.vector(values.dims, 'i32', spot.at('dims', values.dims)) : undefined
    const quantizationAt = values.quantization
    const quantization = yield* reader.quantization(quantizationAt, spot.at('quantization', quantizationAt))
    return { at: spot.offset, values, name, dims, quantization }
  }

  *#buffer(spot: Spot): Reading<BufferRecord | undefined> {
    const { report, file } = this.#reader
    const values = yield* this.#reader.struct('buffer', spot.offset, spot)
    if (!values) return undefined
    const { size, data } = values
    // Without an offset the file has no data, and the size says how many there would be.
    if (data !== 0 && size > file.byteLength - data) {
      const message = `${spot.path} has ${size} bytes at ${data} and the file ends at ${file.byteLength}.`
      report.broken('ERR_TRUNCATED', message, spot)
      return undefined
    }
    return { at: spot.offset, values }
  }

  /** Only files with several subgraphs have device subgraphs; in others the offset is what memory held. */
  *#devices(
    subgraphs: VectorRecord,
    byteLength: number,
    values: StructValues<'subgraph'>,
  ): Reading<ListRecord<DeviceRecord> | undefined> {
    const isStored = subgraphs.count > 1 && byteLength > OLD_SUBGRAPH_BYTES
    if (!isStored) return undefined
    const spot = new Spot(values.devices, 'devices')
    const vector = yield* this.#reader.vector(values.devices, 'offset', spot, { most: MAX_DEVICES })
    if (!vector) return undefined
    const list: (DeviceRecord | undefined)[] = []
    for (const [index, at] of vector.entries.entries()) list.push(yield* this.#device(spot.at(index, at)))
    return { vector, list }
  }

  *#device(spot: Spot): Reading<DeviceRecord | undefined> {
    const values = yield* this.#reader.struct('device', spot.offset, spot)
    if (!values) return undefined
    const name = yield* this.#name(values.name, spot)
    const nodes = yield* this.#indices(spot.at('nodes', values.nodes))
    const inputs = yield* this.#indices(spot.at('inputs', values.inputs))
    const outputs = yield* this.#indices(spot.at('outputs', values.outputs))
    return { at: spot.offset, values, name, nodes, inputs, outputs }
  }
}
