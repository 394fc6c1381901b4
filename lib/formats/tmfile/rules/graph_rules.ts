/**
 * Rules that the runtime relies on without checking them: it loads a graph that breaks one, and then crashes or computes
 * wrong results.
 */
import type { Report } from '../../report.js'
import type {
  FileRecords,
  ListRecord,
  NodeRecord,
  SubgraphRecord,
  TensorRecord,
  TextRecord,
} from '../decode/records.js'
import { NHWC, TENSOR_TYPE } from '../enums.js'
import { RUNTIME_LIMITS } from '../schema.js'
import { quote, tensorTitle } from './link_rules.js'

export function checkGraph(records: FileRecords, report: Report): void {
  const { graph, subgraphs } = records
  checkText(records.name, 'name', report)
  checkCounts(records, report)
  checkInputsAndOutputs(graph, report)
  checkOrder(graph, report)
  checkReadOutputs(graph, report)
  checkNames(graph, report)
  checkLayouts(graph, report)
  if (subgraphs.count > 1 && !graph.devices) {
    const message = `The file states ${subgraphs.count} subgraphs and has no device subgraphs; the reference follows an uninitialised offset.`
    report.deviation('ERR_HEADER', message, { path: 'subgraphs', offset: subgraphs.offset })
  }
}

function checkCounts({ graph, byteLength }: FileRecords, report: Report): void {
  const deviate = (what: string, count: number, limit: number, offset: number, path: string): void => {
    if (count <= limit) return
    const message = `${what}: ${count}; the runtime wraps or rejects values above ${limit}.`
    report.deviation('ERR_LIMIT', message, { path, offset })
  }
  deviate('Bytes of the file', byteLength, RUNTIME_LIMITS.fileBytes - 1, 0, '')
  deviate('Nodes', graph.nodes.list.length, RUNTIME_LIMITS.nodes, graph.nodes.vector.offset, 'nodes')
  deviate(
    'Tensors',
    graph.tensors.list.length,
    RUNTIME_LIMITS.tensors,
    graph.tensors.vector.offset,
    'tensors',
  )
  for (const list of ['inputs', 'outputs'] as const) {
    const largest = graph[list]?.entries.reduce((max, index) => Math.max(max, index), 0) ?? 0
    deviate(
      `Node index in ${list}`,
      largest,
      RUNTIME_LIMITS.graphNodeIndex,
      graph[list]?.offset ?? graph.offset,
      list,
    )
  }
  for (const [index, node] of graph.nodes.list.entries()) {
    for (const list of ['inputs', 'outputs'] as const) {
      const count = node?.[list]?.entries.length ?? 0
      if (count <= RUNTIME_LIMITS.nodeTensors) continue
      const path = `nodes[${index}].${list}`
      deviate(path, count, RUNTIME_LIMITS.nodeTensors, node!.offset, path)
    }
  }
}

/** Without inputs or outputs the reference crashes while it loads or prepares the graph. */
function checkInputsAndOutputs(graph: SubgraphRecord, report: Report): void {
  for (const list of ['inputs', 'outputs'] as const) {
    const place = { path: list, offset: graph[list]?.offset ?? graph.offset }
    const isMissing = graph.values[list] === 0
    if (isMissing) report.deviation('ERR_OFFSET_RANGE', `The vector of graph ${list} is not set.`, place)
    else if (graph[list]?.entries.length === 0) {
      report.deviation('ERR_GRAPH', `The graph has no ${list}: the vector is empty.`, place)
    }
  }
  if (graph.values.buffers !== 0) return
  report.deviation('ERR_OFFSET_RANGE', 'The vector of buffers is not set.', {
    path: 'buffers',
    offset: graph.offset,
  })
}

/** One note for all outputs that nodes read: real detection models have several. */
function checkReadOutputs(graph: SubgraphRecord, report: Report): void {
  const ends = (graph.outputs?.entries ?? []).flatMap(
    (index) => graph.nodes.list[index]?.outputs?.entries ?? [],
  )
  const outputs = new Set(ends)
  const read = new Set<number>()
  for (const node of graph.nodes.list) {
    for (const index of node?.inputs?.entries ?? []) if (outputs.has(index)) read.add(index)
  }
  if (read.size === 0) return
  const titles = [...read].flatMap((index) => {
    const tensor = graph.tensors.list[index]
    return tensor ? [tensorTitle(tensor, index)] : []
  })
  const shown = titles.slice(0, MAX_SHOWN_OUTPUTS).join(', ')
  const end = titles.length > MAX_SHOWN_OUTPUTS ? ', …' : ''
  const message = `Nodes read ${read.size} of the graph outputs: ${shown}${end}. The runtime reuses their memory, so the caller may see overwritten values.`
  report.note('OUTPUT_READ', message, { path: 'outputs', offset: graph.outputs!.offset })
}

/** Outputs that a finding names. */
const MAX_SHOWN_OUTPUTS = 4

/** Nodes run in file order: inputs must be produced before they are used, and every tensor has one producer. */
function checkOrder(graph: SubgraphRecord, report: Report): void {
  const tensors = graph.tensors.list
  const producers = new Int32Array(tensors.length).fill(-1)
  for (const [index, node] of graph.nodes.list.entries()) {
    for (const tensor of node?.outputs?.entries ?? []) {
      if (producers[tensor] === undefined) continue
      if (producers[tensor] === -1) producers[tensor] = index
      else reportSecondProducer(graph, tensor, [producers[tensor], index], report)
    }
  }
  for (const [index, node] of graph.nodes.list.entries()) {
    for (const [position, tensor] of node?.inputs?.entries.entries() ?? []) {
      const producer = producers[tensor]
      if (producer === undefined) continue
      if (producer !== -1 && producer < index) continue
      // A constant has data without a producer; only the current writer adds Const nodes.
      if (producer === -1 && tensors[tensor]?.values.type === TENSOR_TYPE.constant) continue
      const place = { path: `nodes[${index}].inputs[${position}]`, offset: node!.offset }
      const title = tensors[tensor] ? tensorTitle(tensors[tensor], tensor) : `tensors[${tensor}]`
      if (producer === -1) {
        report.deviation('ERR_GRAPH', `${place.path} is ${title}, which no node produces.`, place)
      } else {
        const message = `nodes[${index}] uses ${title} before nodes[${producer}] produces it; nodes run in file order.`
        report.deviation('ERR_GRAPH', message, place)
      }
    }
  }
  checkMissingOutputs(graph, report)
}

function reportSecondProducer(
  { tensors, nodes }: SubgraphRecord,
  tensor: number,
  [first, second]: readonly [number, number],
  report: Report,
): void {
  const title = tensors.list[tensor] ? tensorTitle(tensors.list[tensor], tensor) : `tensors[${tensor}]`
  const message = `${title} is an output of nodes[${first}] and of nodes[${second}]; a tensor has one producer.`
  const place = { path: `nodes[${second}].outputs`, offset: nodes.list[second]!.offset }
  report.deviation('ERR_GRAPH', message, place)
}

function checkMissingOutputs({ nodes }: SubgraphRecord, report: Report): void {
  for (const [index, node] of nodes.list.entries()) {
    if (!node || (node.outputs && node.outputs.entries.length > 0)) continue
    const message = `nodes[${index}] has no output; the reference rejects a node without an output vector.`
    report.deviation('ERR_GRAPH', message, { path: `nodes[${index}].outputs`, offset: node.offset })
  }
}

/** The reference saves tensors by name: it saves one of two with the same name, and aborts without names. */
function checkNames(graph: SubgraphRecord, report: Report): void {
  checkText(graph.name, 'subgraphs[0].name', report)
  for (const [index, device] of graph.devices?.list.entries() ?? []) {
    checkText(device?.name, `devices[${index}].name`, report)
  }
  checkNamesOf(graph.tensors, 'tensors', report)
  checkNamesOf(graph.nodes, 'nodes', report)
  const unnamed = graph.tensors.list.filter((tensor) => tensor && !tensor.name).length
  if (unnamed === 0) return
  const message = `${unnamed} tensors have no name; the reference runs such a model and aborts when it saves it.`
  report.note('NAMES_ABSENT', message, { path: 'tensors', offset: graph.tensors.vector.offset })
}

/** Names are keys, and end at a NUL in C. */
function checkText(record: TextRecord | undefined, path: string, report: Report): void {
  if (!record || record.isWellFormed) return
  const message = `${path} is ${quote(record.text)}; a text must be UTF-8 without an inner NUL.`
  report.deviation('ERR_HEADER', message, { path, offset: record.offset })
}

function checkNamesOf(
  { list }: ListRecord<NodeRecord | TensorRecord>,
  path: 'nodes' | 'tensors',
  report: Report,
): void {
  const first = new Map<string, number>()
  for (const [index, entry] of list.entries()) {
    if (!entry?.name) continue
    const { text, isWellFormed, offset } = entry.name
    const place = () => ({ path: `${path}[${index}].name`, offset: offset })
    if (!isWellFormed) checkText(entry.name, place().path, report)
    const other = first.get(text)
    if (other === undefined) first.set(text, index)
    else if (path === 'tensors') {
      const message = `${path}[${other}] and ${path}[${index}] have the same name ${quote(text)}; the reference treats them as one.`
      report.deviation('ERR_DUPLICATE', message, place())
    }
  }
}

/** The runtime converts NHWC models to NCHW when it loads them; these rules find where that fails. */
function checkLayouts(graph: SubgraphRecord, report: Report): void {
  const { graph_layout, model_layout } = graph.values
  const place = { path: 'subgraphs[0]', offset: graph.offset }
  for (const [name, value] of Object.entries({ graph_layout, model_layout })) {
    if (value === 0 || value === NHWC) continue
    report.deviation('ERR_VALUE', `${name} is ${value}; it must be 0 (NCHW) or 1 (NHWC).`, {
      ...place,
      path: name,
    })
  }
  if (graph_layout === 0 && model_layout === NHWC) {
    const message =
      'The graph is NCHW and the model NHWC, as in a file that the reference loaded and saved: loading it again converts the shapes twice.'
    report.note('NHWC_SAVED_AGAIN', message, place)
  }
  if (model_layout === NHWC) checkSharedBuffers(graph, report)
}

function checkSharedBuffers(graph: SubgraphRecord, report: Report): void {
  const users = new Map<number, number>()
  for (const [index, tensor] of graph.tensors.list.entries()) {
    if (!tensor || tensor.values.type !== TENSOR_TYPE.constant || tensor.dims?.entries.length !== 4) continue
    const data = graph.buffers?.list[tensor.values.buffer_id]?.values.data ?? 0
    if (data === 0) continue
    const other = users.get(data)
    users.set(data, index)
    if (other === undefined) continue
    const message = `tensors[${other}] and tensors[${index}] share a buffer; the reference converts it to NCHW once for each of them.`
    report.deviation('ERR_OVERLAP', message, { path: `tensors[${index}]`, offset: tensor.offset })
  }
}
