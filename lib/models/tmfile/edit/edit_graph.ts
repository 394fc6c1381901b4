/** Edits of the graph: insert, remove and replace nodes, change inputs and outputs, remove unused parts. */
import { TileworkError } from '../../../errors.js'
import { isConstant } from '../../../formats/tmfile/enums.js'
import { FORMAT_NAME } from '../../../formats/tmfile/schema.js'
import type { TmfileBuffer, TmfileGraph, TmfileNode, TmfileTensor } from '../../../formats/tmfile/types.js'
import { greatest, least } from '../../../long_lists.js'
import { valueText } from '../../../value_text.js'
import { checkGraphTensor, checkKeys, checkNode } from '../document/check_arguments.js'
import { findNode, findTensor, linksOf, refuseEdit } from '../document/lookup.js'
import { producerNode } from '../document/operator_node.js'
import { checkNewName, refuseTakenName } from './edit_names.js'
import { deadNodes, protectOutputs } from './protect_outputs.js'

/**
 * Removes a node. Its consumers take its first non-constant input instead; where the node is a graph output, the producer
 * of that input becomes one. Constants that become unused are removed too.
 *
 * @throws TileworkError ERR_GRAPH for a used node with several outputs, or without a non-constant input
 */
export function removeNode(graph: TmfileGraph, key: TmfileNode | string): void {
  const node = findNode(graph, key)
  const links = linksOf(graph)
  const used = node.outputs.filter((tensor) => (links.get(tensor)?.consumers.length ?? 0) > 0)
  const isEnd = graph.outputs.includes(node)
  if (used.length > 0 || isEnd) {
    const input = node.inputs.find((tensor) => !isConstant(tensor))
    if (!input || node.outputs.length !== 1) {
      refuseEdit(
        `Node ${JSON.stringify(node.name)} cannot be removed: it has ${node.outputs.length} outputs, they are used, and no input can replace them.`,
      )
    }
    replaceUses(graph, node.outputs[0]!, input)
    const producer = links.get(input)?.producer
    if (isEnd && producer) graph.outputs = graph.outputs.map((end) => (end === node ? producer : end))
  }
  dropNodes(graph, new Set([node]))
  dropUnused(graph, new Set(node.inputs.filter(isConstant)))
  if (isEnd) protectOutputs(graph, nodesBetween(graph.outputs, new Set(), linksOf(graph)))
}

/** Makes the nodes and devices that use one tensor use another. */
function replaceUses(
  { nodes, devices }: Pick<TmfileGraph, 'nodes' | 'devices'>,
  from: TmfileTensor,
  to: TmfileTensor,
): void {
  const replaced = (tensors: readonly TmfileTensor[]) =>
    tensors.map((tensor) => (tensor === from ? to : tensor))
  for (const node of nodes) if (node.inputs.includes(from)) node.inputs = replaced(node.inputs)
  for (const device of devices ?? []) {
    device.inputs = replaced(device.inputs)
    device.outputs = replaced(device.outputs)
  }
}

/** Removes nodes and the tensors that they produce. */
function dropNodes(graph: TmfileGraph, nodes: ReadonlySet<TmfileNode>): void {
  const produced = new Set([...nodes].flatMap(({ outputs }) => outputs))
  graph.nodes = graph.nodes.filter((node) => !nodes.has(node))
  graph.inputs = graph.inputs.filter((node) => !nodes.has(node))
  graph.outputs = graph.outputs.filter((node) => !nodes.has(node))
  dropTensors(graph, produced)
  for (const device of graph.devices ?? []) device.nodes = device.nodes.filter((node) => !nodes.has(node))
}

/** Removes tensors, and the buffers that only they used. */
function dropTensors(graph: TmfileGraph, removed: ReadonlySet<TmfileTensor>): void {
  graph.tensors = graph.tensors.filter((tensor) => !removed.has(tensor))
  const kept = new Set<TmfileBuffer | null>(graph.tensors.map(({ buffer }) => buffer))
  const freed = new Set([...removed].map(({ buffer }) => buffer).filter((buffer) => !kept.has(buffer)))
  graph.buffers = graph.buffers.filter((buffer) => !freed.has(buffer))
  for (const device of graph.devices ?? []) {
    device.inputs = device.inputs.filter((tensor) => !removed.has(tensor))
    device.outputs = device.outputs.filter((tensor) => !removed.has(tensor))
  }
}

/** Removes constants without a consumer, and their Const nodes. */
function dropUnused(graph: TmfileGraph, constants: ReadonlySet<TmfileTensor>): void {
  const links = linksOf(graph)
  const unused = [...constants].filter((tensor) => links.get(tensor)?.consumers.length === 0)
  const producers = unused.map((tensor) => links.get(tensor)?.producer)
  dropNodes(graph, new Set(producers.filter((node) => node !== undefined)))
  dropTensors(graph, new Set(unused))
}

/**
 * Inserts a node at `index`, by default directly after the last producer of its inputs. Tensors and buffers that are not
 * in the graph yet are added.
 *
 * @throws TileworkError ERR_ARGUMENT for an invalid node or index; ERR_GRAPH where another node produces one of its
 * outputs, the node would run before its inputs or after its consumers, or one of its names is taken
 */
export function insertNode(graph: TmfileGraph, node: TmfileNode, index?: number): void {
  checkNewNode(node)
  if (index !== undefined && !Number.isInteger(index)) {
    const message = `index is ${valueText(index)}; it must be an integer.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const links = linksOf(graph)
  const produced = node.outputs.find((tensor) => links.get(tensor)?.producer)
  if (produced) refuseEdit(`Tensor ${JSON.stringify(produced.name)} already has a producer.`)
  const producers = node.inputs.map((tensor) => links.get(tensor)?.producer)
  const earliest =
    1 + Math.max(-1, greatest(producers.map((each) => (each ? graph.nodes.indexOf(each) : -1))))
  const consumers = node.outputs.flatMap((tensor) => links.get(tensor)?.consumers ?? [])
  const latest = Math.min(graph.nodes.length, least(consumers.map((each) => graph.nodes.indexOf(each))))
  const position = index ?? earliest
  if (position < earliest || position > latest) {
    refuseEdit(
      `Node ${JSON.stringify(node.name)} cannot be inserted at ${position}: its inputs are produced before ${earliest}, and its first consumer is at ${latest}.`,
    )
  }
  checkNewNames(node, graph)
  graph.nodes.splice(position, 0, node)
  addTensors(graph, [...node.inputs, ...node.outputs])
}

/** @throws TileworkError ERR_ARGUMENT for an invalid node or tensor */
function checkNewNode(node: TmfileNode): void {
  checkNode(node, 'node')
  for (const list of ['inputs', 'outputs'] as const) {
    for (const [index, tensor] of node[list].entries()) checkGraphTensor(tensor, `node.${list}[${index}]`)
  }
}

/** Checks that the names of a new node and its new tensors are unique. */
function checkNewNames(node: TmfileNode, { nodes, tensors }: Pick<TmfileGraph, 'nodes' | 'tensors'>): void {
  if (node.name !== null) checkNewName(node.name, 'The name of a node')
  refuseTakenName('node', node, nodes)
  const known = new Set(tensors)
  for (const tensor of [...node.inputs, ...node.outputs]) {
    if (known.has(tensor)) continue
    if (tensor.name !== null) checkNewName(tensor.name, 'The name of a tensor')
    refuseTakenName('tensor', tensor, [...known])
    known.add(tensor)
  }
}

function addTensors(graph: TmfileGraph, tensors: readonly TmfileTensor[]): void {
  for (const tensor of tensors) {
    if (!graph.tensors.includes(tensor)) graph.tensors.push(tensor)
    if (tensor.buffer && !graph.buffers.includes(tensor.buffer)) graph.buffers.push(tensor.buffer)
  }
}

/**
 * Replaces a node by another. Constants that only the old node used are removed. Old outputs that the new node does not
 * produce must be unused.
 *
 * @throws TileworkError ERR_ARGUMENT for an invalid node; ERR_GRAPH where an old output is still used, an input is
 * produced too late, or a name is taken
 */
export function replaceNode(graph: TmfileGraph, key: TmfileNode | string, node: TmfileNode): void {
  const old = findNode(graph, key)
  checkNewNode(node)
  const links = linksOf(graph)
  checkProducers(graph, old, node, links)
  const lost = old.outputs.filter((tensor) => !node.outputs.includes(tensor))
  const used = lost.find((tensor) => (links.get(tensor)?.consumers.length ?? 0) > 0)
  if (used) {
    refuseEdit(`Tensor ${JSON.stringify(used.name)} has consumers, and the new node does not produce it.`)
  }
  const freed = old.inputs.filter(
    (tensor) =>
      isConstant(tensor) &&
      !node.inputs.includes(tensor) &&
      links.get(tensor)!.consumers.every((consumer) => consumer === old),
  )
  const removed = new Set<unknown>([
    old,
    ...lost,
    ...freed,
    ...freed.map((tensor) => links.get(tensor)!.producer),
  ])
  checkNewNames(node, {
    nodes: graph.nodes.filter((each) => !removed.has(each)),
    tensors: graph.tensors.filter((each) => !removed.has(each)),
  })
  const replaced = (list: readonly TmfileNode[]) => list.map((each) => (each === old ? node : each))
  graph.nodes = replaced(graph.nodes)
  graph.inputs = replaced(graph.inputs)
  graph.outputs = replaced(graph.outputs)
  for (const device of graph.devices ?? []) device.nodes = replaced(device.nodes)
  addTensors(graph, [...node.inputs, ...node.outputs])
  dropTensors(graph, new Set(lost))
  dropUnused(graph, new Set(freed))
}

/** Refuses a node in place of `old` whose outputs have another producer, or whose inputs are produced later. */
function checkProducers(
  graph: TmfileGraph,
  old: TmfileNode,
  node: TmfileNode,
  links: ReturnType<typeof linksOf>,
): void {
  const produced = node.outputs.find((tensor) => (links.get(tensor)?.producer ?? old) !== old)
  if (produced) refuseEdit(`Tensor ${JSON.stringify(produced.name)} already has a producer.`)
  const position = graph.nodes.indexOf(old)
  const late = node.inputs.find((tensor) => {
    const producer = links.get(tensor)?.producer
    return producer !== undefined && graph.nodes.indexOf(producer) >= position
  })
  if (late)
    refuseEdit(
      `Tensor ${JSON.stringify(late.name)} is produced after the position of the new node, ${position}.`,
    )
}

/**
 * Makes every consumer of `from`, except the producer of `to`, take `to`. Where the producer of `from` is a graph output,
 * the producer of `to` replaces it.
 *
 * @throws TileworkError ERR_ARGUMENT for tensors that are not in the graph, ERR_GRAPH where a consumer runs before `to` is
 * produced
 */
export function replaceAllUses(
  graph: TmfileGraph,
  from: TmfileTensor | string,
  to: TmfileTensor | string,
): void {
  const [old, replacement] = [findTensor(graph, from), findTensor(graph, to)]
  const links = linksOf(graph)
  const producer = links.get(replacement)?.producer
  const consumers = (links.get(old)?.consumers ?? []).filter((node) => node !== producer)
  const early =
    producer && consumers.find((node) => graph.nodes.indexOf(node) < graph.nodes.indexOf(producer))
  if (early) {
    refuseEdit(
      `Node ${JSON.stringify(early.name)} runs before tensor ${JSON.stringify(replacement.name)} is produced.`,
    )
  }
  replaceUses({ nodes: consumers, devices: graph.devices }, old, replacement)
  const oldProducer = links.get(old)?.producer
  if (producer && oldProducer && oldProducer.operator !== 'InputOp') {
    graph.outputs = [...new Set(graph.outputs.map((node) => (node === oldProducer ? producer : node)))]
  }
}

/**
 * Makes the producers of these tensors the graph outputs. Nodes behind them that no output needs are removed; an output that another
 * output needs is copied.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_GRAPH
 */
export function setOutputs(graph: TmfileGraph, keys: readonly (TmfileTensor | string)[]): void {
  graph.outputs = producersOf(graph, keys)
  const needed = nodesBetween(graph.outputs, new Set(), linksOf(graph))
  const dead = deadNodes(graph, needed)
  const constants = [...dead].flatMap(({ inputs }) => inputs.filter(isConstant))
  dropNodes(graph, dead)
  dropUnused(graph, new Set(constants))
  protectOutputs(graph, needed)
}

function producersOf(graph: TmfileGraph, keys: readonly (TmfileTensor | string)[]): TmfileNode[] {
  const links = linksOf(graph)
  const nodes = checkKeys(keys, 'outputs').map((key) => {
    const tensor = findTensor(graph, key)
    return links.get(tensor)?.producer ?? refuseEdit(`Tensor ${JSON.stringify(tensor.name)} has no producer.`)
  })
  if (nodes.length === 0) refuseEdit('outputs is empty; a graph has at least one output.')
  return [...new Set(nodes)]
}

/**
 * Keeps only the nodes between the given inputs and outputs. The inputs become graph inputs, and the producers of the
 * outputs become graph outputs; an output that another output needs is copied.
 *
 * @param inputs - none for the graph inputs that the outputs depend on
 * @throws TileworkError ERR_GRAPH where an output depends on another graph input, or a kept node also produces one of the
 * inputs
 */
export function cut(
  graph: TmfileGraph,
  inputs: readonly (TmfileTensor | string)[],
  outputs: readonly (TmfileTensor | string)[],
): void {
  const given = [...new Set(checkKeys(inputs, 'inputs').map((key) => findTensor(graph, key)))]
  const ends = producersOf(graph, outputs)
  const links = linksOf(graph)
  const starts = given.length > 0 ? given : neededInputs(graph, ends)
  const constant = starts.find(isConstant)
  if (constant)
    refuseEdit(`Tensor ${JSON.stringify(constant.name)} is a constant; a constant cannot be an input.`)
  const inputNodes = starts.map((tensor) => {
    const producer = links.get(tensor)?.producer
    return producer?.operator === 'InputOp' ? producer : producerNode('InputOp', tensor)
  })
  const between = nodesBetween(ends, new Set(starts), links)
  const kept = keptNodes(graph, between, { starts, inputNodes })
  for (const tensor of starts) tensor.role = 'input'
  graph.nodes = [...inputNodes, ...kept]
  graph.inputs = inputNodes
  graph.outputs = ends.map((node) => inputNodes.find((input) => input.outputs[0] === node.outputs[0]) ?? node)
  graph.devices = null
  const used = new Set(graph.nodes.flatMap((node) => [...node.inputs, ...node.outputs]))
  dropTensors(graph, new Set(graph.tensors.filter((tensor) => !used.has(tensor))))
  protectOutputs(graph, new Set(graph.nodes))
}

/** The tensors of the graph inputs that some nodes depend on. */
function neededInputs(graph: TmfileGraph, ends: readonly TmfileNode[]): TmfileTensor[] {
  const needed = nodesBetween(ends, new Set(), linksOf(graph))
  return graph.inputs.filter((node) => needed.has(node)).flatMap((node) => node.outputs)
}

interface CutInputs {
  readonly starts: readonly TmfileTensor[]
  /** The node of each start. */
  readonly inputNodes: readonly TmfileNode[]
}

/** The nodes of the part without its inputs. Refuses a part that needs other inputs, or produces one of its own. */
function keptNodes(
  graph: TmfileGraph,
  between: ReadonlySet<TmfileNode>,
  { starts, inputNodes }: CutInputs,
): TmfileNode[] {
  const missing = graph.inputs.find((node) => between.has(node) && !inputNodes.includes(node))
  if (missing) {
    refuseEdit(
      `The outputs also depend on the graph input ${JSON.stringify(missing.name)}; add it to the inputs.`,
    )
  }
  const kept = graph.nodes.filter((node) => between.has(node) && !inputNodes.includes(node))
  const produced = kept.flatMap((node) => node.outputs).find((tensor) => starts.includes(tensor))
  if (produced) {
    refuseEdit(`Tensor ${JSON.stringify(produced.name)} cannot be an input: a kept node produces it.`)
  }
  for (const node of inputNodes) {
    if (!graph.nodes.includes(node)) refuseTakenName('node', node, kept)
  }
  return kept
}

/** Nodes that `ends` depend on, up to the tensors `starts`; producers of `starts` are not visited. */
function nodesBetween(
  ends: readonly TmfileNode[],
  starts: ReadonlySet<TmfileTensor>,
  links: ReturnType<typeof linksOf>,
): Set<TmfileNode> {
  const found = new Set<TmfileNode>()
  const open = ends.filter(({ outputs }) => !outputs.every((tensor) => starts.has(tensor)))
  for (let node = open.pop(); node; node = open.pop()) {
    if (found.has(node)) continue
    found.add(node)
    for (const tensor of node.inputs) {
      const producer = starts.has(tensor) ? undefined : links.get(tensor)?.producer
      if (producer) open.push(producer)
    }
  }
  return found
}

/** Removes nodes that no output depends on, and tensors and buffers without a user. Keeps the graph inputs. */
export function removeUnused(graph: TmfileGraph): void {
  const needed = nodesBetween(graph.outputs, new Set(), linksOf(graph))
  const unused = graph.nodes.filter((node) => !needed.has(node) && !graph.inputs.includes(node))
  dropNodes(graph, new Set(unused))
  const used = new Set(graph.nodes.flatMap((node) => [...node.inputs, ...node.outputs]))
  dropTensors(graph, new Set(graph.tensors.filter((tensor) => !used.has(tensor))))
  const buffers = new Set<TmfileBuffer | null>(graph.tensors.map(({ buffer }) => buffer))
  graph.buffers = graph.buffers.filter((buffer) => buffers.has(buffer))
}
