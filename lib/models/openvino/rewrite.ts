/**
 * Plans both files of a model with constants in float16. The file of weights is written anew: constants in the order of their
 * layers, equal bytes once. In the XML file such a constant gets the suffix `_compressed`, and a Convert with its old name follows it;
 * offsets and sizes change, and all else keeps its bytes.
 */
import { createHash } from 'node:crypto'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { Budget } from '../../formats/budget.js'
import type { WritePlan, WriteSegment } from '../../formats/format.js'
import type { Constant } from '../../formats/openvino/constant.js'
import { ConstantKeys } from '../../formats/openvino/constants.js'
import { CONST_TYPES, FORMAT_NAME, type IrType, TYPES } from '../../formats/openvino/schema.js'
import { type Edge, findAttribute, type Layer, walkXml } from '../../formats/openvino/walk.js'
import { append } from '../../long_lists.js'
import type { Tensor } from '../../tensor/tensor.js'
import type { OpenvinoModel } from './model.js'
import { COMPRESSED_SUFFIX } from './names.js'
import { attributeText, type Patch } from './patch.js'
import { type StoredValues, storedValues } from './stored_values.js'

/** Where the values of a constant are written. */
export interface Place {
  readonly offset: number
  readonly size: number
}

const FLOAT16 = 'f16'

/** Bytes that are compared before a hash of all is made. */
const HEAD_BYTES = 64
const HASH_WINDOW_BYTES = 2 ** 20

/** The weights of all constants in the order of their layers, and where each is. */
export async function planAllWeights(
  model: OpenvinoModel,
  source: ByteSource,
): Promise<{ readonly plan: WritePlan; readonly places: ReadonlyMap<string, Place> }> {
  const segments: WriteSegment[] = []
  const places = new Map<string, Place>()
  const stored = await Promise.all(model.files.constants.map((constant) => storedOf(model, constant, source)))
  const equals = await equalValues(stored)
  let end = 0
  for (const [index, { key }] of model.files.constants.entries()) {
    const { byteLength, segment } = stored[index]!
    const first = equals[index]!
    if (first < index) {
      places.set(key, places.get(model.files.constants[first]!.key)!)
      continue
    }
    places.set(key, { offset: end, size: byteLength })
    segments.push(segment)
    end += byteLength
  }
  return { plan: { byteLength: end, segments }, places }
}

async function storedOf(model: OpenvinoModel, constant: Constant, source: ByteSource): Promise<StoredValues> {
  const { key, offset, byteLength } = constant
  // As the reference writes a tensor without elements.
  if (byteLength === 0) return { byteLength: 1, segment: { kind: 'bytes', bytes: new Uint8Array(1) } }
  const half = model.float16.get(key)
  const tensor: Tensor | undefined = half ?? model.replaced.get(key)
  const type: IrType = half ? TYPES.get(FLOAT16)! : constant.type
  if (tensor) return storedValues(tensor, type, constant)
  return { byteLength, segment: { kind: 'range', source, start: offset, end: offset + byteLength } }
}

/** For each of the values the index of the first that has the same bytes. */
async function equalValues(all: readonly StoredValues[]): Promise<number[]> {
  const byHead = new Map<string, number[]>()
  for (const [index, values] of all.entries()) {
    const head = await bytesOf(values, 0, Math.min(HEAD_BYTES, values.byteLength))
    const key = `${values.byteLength}:${Buffer.from(head).toString('latin1')}`
    const alike = byHead.get(key)
    if (alike) alike.push(index)
    else byHead.set(key, [index])
  }
  const firsts = all.map((_, index) => index)
  for (const alike of byHead.values()) {
    if (alike.length === 1) continue
    const byHash = new Map<string, number>()
    for (const index of alike) {
      const hash = await hashOf(all[index]!)
      firsts[index] = byHash.get(hash) ?? index
      if (!byHash.has(hash)) byHash.set(hash, index)
    }
  }
  return firsts
}

async function hashOf(values: StoredValues): Promise<string> {
  const hash = createHash('sha256')
  for (let start = 0; start < values.byteLength; start += HASH_WINDOW_BYTES) {
    hash.update(await bytesOf(values, start, Math.min(values.byteLength, start + HASH_WINDOW_BYTES)))
  }
  return hash.digest('hex')
}

async function bytesOf({ segment }: StoredValues, start: number, end: number): Promise<Uint8Array> {
  switch (segment.kind) {
    case 'bytes':
      return segment.bytes.subarray(start, end)
    case 'range':
      return segment.source.read(segment.start + start, segment.start + end)
    case 'tensor':
      return segment.tensor.bytes({ start, end })
    default:
      return (await segment.compute(undefined)).subarray(start, end)
  }
}

/** A constant that becomes float16, while the XML file is read again. */
interface Halved {
  readonly layer: Layer
  /** Id of its Convert. */
  id: string
  hasEdge: boolean
}

/** The layers of a graph whose ids are known when it ends. */
interface Halves {
  /** By the id of the constant. */
  readonly byId: Map<string, Halved>
  lastId: number
}

/**
 * Changes of the XML file: places of all constants, and those that become float16.
 *
 * @throws TileworkError ERR_GRAPH for ids of layers that are no numbers, in graphs that get layers
 */
export function rewritePatches(model: OpenvinoModel, places: ReadonlyMap<string, Place>): Patch[] {
  const { bytes } = model.files
  const patches: Patch[] = []
  const graphs: Halves[] = []
  const edges: Edge[] = []
  const keys = new ConstantKeys(new Budget({}, {}))
  walkXml(bytes, new Budget({}, {}), {
    layer: (layer) => {
      const halves = graphs[layer.graph.index] ?? { byId: new Map(), lastId: -1 }
      graphs[layer.graph.index] = halves
      halves.lastId = Math.max(halves.lastId, Number(layer.id))
      if (!CONST_TYPES.has(layer.type)) return
      const key = keys.of(layer)
      append(patches, placePatch(layer, places.get(key)!))
      if (model.float16.has(key)) halves.byId.set(layer.id, { layer, id: '', hasEdge: false })
    },
    edge: (edge) => edges.push(edge),
  })
  for (const halves of graphs) if (halves) numberConverts(halves)
  for (const edge of edges) append(patches, edgePatches(edge, graphs, bytes))
  for (const halves of graphs) {
    for (const half of halves?.byId.values() ?? []) append(patches, halfPatches(half, bytes))
  }
  return patches
}

export function placePatch({ data }: Layer, { offset, size }: Place): Patch[] {
  return [
    { ...findAttribute(data, 'offset')!, text: String(offset) },
    { ...findAttribute(data, 'size')!, text: String(size) },
  ]
}

function numberConverts({ byId, lastId }: Halves): void {
  if (byId.size > 0 && !Number.isSafeInteger(lastId + byId.size)) {
    const message = `The ids of the layers are not numbers to which ${byId.size} can be added.`
    throw new TileworkError('ERR_GRAPH', message, { format: FORMAT_NAME })
  }
  let id = lastId
  for (const half of byId.values()) {
    id += 1
    half.id = String(id)
  }
}

/** An edge from a constant leaves its Convert; before the first of them stands the edge to the Convert. */
function edgePatches(
  { graph, fromLayer, fromPort, start }: Edge,
  graphs: readonly Halves[],
  bytes: Uint8Array,
): Patch[] {
  const half = graphs[graph.index]?.byId.get(fromLayer.text)
  if (!half) return []
  const patches: Patch[] = [
    { ...fromLayer, text: half.id },
    { ...fromPort, text: CONVERT_PORT },
  ]
  if (half.hasEdge) return patches
  half.hasEdge = true
  const text = `<edge from-layer="${half.layer.id}" from-port="${attributeText(fromPort.text)}" to-layer="${half.id}" to-port="0" />`
  return [{ start, end: start, text: text + spaceBefore(start, bytes) }, ...patches]
}

/** Output port of a Convert. */
const CONVERT_PORT = '1'

function halfPatches({ layer, id }: Halved, bytes: Uint8Array): Patch[] {
  const [port] = layer.outputs
  const name = findAttribute(layer.attributes, 'name')!
  const patches: Patch[] = [
    { start: name.end, end: name.end, text: COMPRESSED_SUFFIX },
    { ...findAttribute(layer.data, 'element_type')!, text: FLOAT16 },
    {
      start: layer.end,
      end: layer.end,
      text: spaceBefore(layer.start, bytes) + convertText(layer, id, bytes),
    },
  ]
  if (port?.precision) patches.push({ ...port.precision, text: TYPES.get(FLOAT16)!.precision })
  // The names of the value go to the Convert.
  if (port?.names) patches.push({ start: port.names.at, end: port.names.end + 1, text: '' })
  return patches
}

/** The layer that gives float32 or float64 again, as the reference writes it. */
function convertText({ name, data, outputs: [port], start }: Layer, id: string, bytes: Uint8Array): string {
  const type = findAttribute(data, 'element_type')!.text
  const dims = port?.dims ?? []
  const portText = (portId: string, typeName: string, names: string): string[] => {
    const head = `<port id="${portId}" precision="${TYPES.get(typeName)!.precision}"${names}`
    if (dims.length === 0) return [`\t\t${head} />`]
    return [`\t\t${head}>`, ...dims.map((dim) => `\t\t\t<dim>${attributeText(dim)}</dim>`), '\t\t</port>']
  }
  const names = port?.names ? ` names="${attributeText(port.names.text)}"` : ''
  const lines = [
    `<layer id="${id}" name="${attributeText(name)}" type="Convert" version="opset1">`,
    `\t<data destination_type="${type}" />`,
    '\t<rt_info>',
    '\t\t<attribute name="decompression" version="0" />',
    '\t</rt_info>',
    '\t<input>',
    ...portText('0', FLOAT16, ''),
    '\t</input>',
    '\t<output>',
    ...portText(CONVERT_PORT, type, names),
    '\t</output>',
    '</layer>',
  ]
  return lines.join(spaceBefore(start, bytes))
}

/** The line end and indentation before an element; empty where it follows another one directly. */
function spaceBefore(start: number, bytes: Uint8Array): string {
  let from = start
  while (from > 0 && SPACES.has(bytes[from - 1]!)) from -= 1
  return Buffer.from(bytes.subarray(from, start)).toString('latin1')
}

const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d, 0x0a])
