/** Changes of the graph: nodes in and out, other ends, and what nobody needs any more. */
import { TileworkError } from '../../../errors.js'
import { valueText } from '../../../value_text.js'
import { isConstant } from '../enums.js'
import { FORMAT_NAME } from '../schema.js'
import { checkGraphTensor, checkKeys, checkNode } from './check_arguments.js'
import { producerNode } from './create_node.js'
import { checkNewName, refuseTakenName } from './edit_names.js'
import { findNode, findTensor, linksOf, refuseEdit } from './lookup.js'
import type { TmfileBuffer, TmfileGraph, TmfileNode, TmfileTensor } from './types.js'

/**
 * Takes a node out. Its consumers get its first input that is no constant; where it is an output of the graph, the
 * node that makes this input becomes one. Constants that nobody takes any more go with it.
 *
 * @throws TileworkError ERR_GRAPH for a node with several outputs, or with none of its inputs to go on with, that
 * somebody needs
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
        `Node ${JSON.stringify(node.name)} has ${node.outputs.length} outputs that are needed, and nothing takes their place.`,
      )
    }
    replaceUses(graph, node.outputs[0]!, input)
    const producer = links.get(input)?.producer
    if (isEnd && producer) graph.outputs = graph.outputs.map((end) => (end === node ? producer : end))
  }
  dropNodes(graph, new Set([node]))
  dropUnused(graph, new Set(node.inputs.filter(isConstant)))
}

/** Every consumer of one tensor takes the other. */
function replaceUses(graph: TmfileGraph, from: TmfileTensor, to: TmfileTensor): void {
  const replaced = (tensors: readonly TmfileTensor[]) =>
    tensors.map((tensor) => (tensor === from ? to : tensor))
  for (const node of graph.nodes) if (node.inputs.includes(from)) node.inputs = replaced(node.inputs)
  for (const device of graph.devices ?? []) {
    device.inputs = replaced(device.inputs)
    device.outputs = replaced(device.outputs)
  }
}

/** Removes nodes with the tensors they make. */
function dropNodes(graph: TmfileGraph, nodes: ReadonlySet<TmfileNode>): void {
  const made = new Set([...nodes].flatMap(({ outputs }) => outputs))
  graph.nodes = graph.nodes.filter((node) => !nodes.has(node))
  graph.inputs = graph.inputs.filter((node) => !nodes.has(node))
  graph.outputs = graph.outputs.filter((node) => !nodes.has(node))
  dropTensors(graph, made)
  for (const device of graph.devices ?? []) device.nodes = device.nodes.filter((node) => !nodes.has(node))
}

/** Removes tensors, and the buffers that only they had. */
function dropTensors(graph: TmfileGraph, gone: ReadonlySet<TmfileTensor>): void {
  graph.tensors = graph.tensors.filter((tensor) => !gone.has(tensor))
  const kept = new Set<TmfileBuffer | null>(graph.tensors.map(({ buffer }) => buffer))
  const freed = new Set([...gone].map(({ buffer }) => buffer).filter((buffer) => !kept.has(buffer)))
  graph.buffers = graph.buffers.filter((buffer) => !freed.has(buffer))
  for (const device of graph.devices ?? []) {
    device.inputs = device.inputs.filter((tensor) => !gone.has(tensor))
    device.outputs = device.outputs.filter((tensor) => !gone.has(tensor))
  }
}

/** Removes constants, and the nodes that give them, where nobody takes them. */
function dropUnused(graph: TmfileGraph, constants: ReadonlySet<TmfileTensor>): void {
  const links = linksOf(graph)
  const unused = [...constants].filter((tensor) => links.get(tensor)?.consumers.length === 0)
  const producers = unused.map((tensor) => links.get(tensor)?.producer)
  dropNodes(graph, new Set(producers.filter((node) => node !== undefined)))
  dropTensors(graph, new Set(unused))
}

/**
 * Puts a node where its inputs are made: behind the last node that makes one, or at `index`. Tensors and buffers of it
 * that the graph does not have yet are added.
 *
 * @throws TileworkError ERR_ARGUMENT for what is no node or no index; ERR_GRAPH where an output is made by another node,
 * the node would run before its inputs or after its consumers, or the graph has one of its names already
 */
export function insertNode(graph: TmfileGraph, node: TmfileNode, index?: number): void {
  checkNewNode(node)
  if (index !== undefined && !Number.isInteger(index)) {
    const message = `index must be a whole number; it is ${valueText(index)}.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME })
  }
  const links = linksOf(graph)
  const taken = node.outputs.find((tensor) => links.get(tensor)?.producer)
  if (taken) refuseEdit(`Tensor ${JSON.stringify(taken.name)} is made by another node already.`)
  const producers = node.inputs.map((tensor) => links.get(tensor)?.producer)
  const earliest = 1 + Math.max(-1, ...producers.map((each) => (each ? graph.nodes.indexOf(each) : -1)))
  const consumers = node.outputs.flatMap((tensor) => links.get(tensor)?.consumers ?? [])
  const latest = Math.min(graph.nodes.length, ...consumers.map((each) => graph.nodes.indexOf(each)))
  const at = index ?? earliest
  if (at < earliest || at > latest) {
    refuseEdit(
      `Node ${JSON.stringify(node.name)} cannot stand at ${at}: its inputs are made before ${earliest}, and it is needed at ${latest}.`,
    )
  }
  checkNewNames(node, graph)
  graph.nodes.splice(at, 0, node)
  addTensors(graph, [...node.inputs, ...node.outputs])
}

/** A node as it must be for a graph to hold it, with its tensors. */
function checkNewNode(node: TmfileNode): void {
  checkNode(node, 'node')
  for (const list of ['inputs', 'outputs'] as const) {
    for (const [at, tensor] of node[list].entries()) checkGraphTensor(tensor, `node.${list}[${at}]`)
  }
}

/** The node and the tensors that come with it have names of their own among those that stay. */
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
 * Puts a node in the place of another one, whose constants go where nobody else takes them. What the new one does not
 * make of the old outputs must not be needed.
 *
 * @throws TileworkError ERR_ARGUMENT for what is no node, ERR_GRAPH also where what stays has one of its names
 */
export function replaceNode(graph: TmfileGraph, key: TmfileNode | string, node: TmfileNode): void {
  const old = findNode(graph, key)
  checkNewNode(node)
  const links = linksOf(graph)
  const twice = node.outputs.find((tensor) => (links.get(tensor)?.producer ?? old) !== old)
  if (twice) refuseEdit(`Tensor ${JSON.stringify(twice.name)} is made by another node already.`)
  const place = graph.nodes.indexOf(old)
  const late = node.inputs.find((tensor) => {
    const producer = links.get(tensor)?.producer
    return producer !== undefined && graph.nodes.indexOf(producer) >= place
  })
  if (late) refuseEdit(`Tensor ${JSON.stringify(late.name)} is made behind the place of the new node.`)
  const lost = old.outputs.filter((tensor) => !node.outputs.includes(tensor))
  const needed = lost.find((tensor) => (links.get(tensor)?.consumers.length ?? 0) > 0)
  if (needed)
    refuseEdit(`Tensor ${JSON.stringify(needed.name)} is needed, and the new node does not make it.`)
  const freed = old.inputs.filter(
    (tensor) =>
      isConstant(tensor) &&
      !node.inputs.includes(tensor) &&
      links.get(tensor)!.consumers.every((consumer) => consumer === old),
  )
  const gone = new Set<unknown>([
    old,
    ...lost,
    ...freed,
    ...freed.map((tensor) => links.get(tensor)!.producer),
  ])
  checkNewNames(node, {
    nodes: graph.nodes.filter((each) => !gone.has(each)),
    tensors: graph.tensors.filter((each) => !gone.has(each)),
  })
  const put = (list: readonly TmfileNode[]) => list.map((each) => (each === old ? node : each))
  graph.nodes = put(graph.nodes)
  graph.inputs = put(graph.inputs)
  graph.outputs = put(graph.outputs)
  for (const device of graph.devices ?? []) device.nodes = put(device.nodes)
  addTensors(graph, [...node.inputs, ...node.outputs])
  dropTensors(graph, new Set(lost))
  dropUnused(graph, new Set(freed))
}

/**
 * Lets every node but the maker of `to` take one tensor in place of another; where the maker of `from` is an output of the
 * graph, the maker of `to` becomes one in its place.
 *
 * @throws TileworkError ERR_ARGUMENT for tensors that the graph does not have, ERR_GRAPH where a node would run before its
 * input is made
 */
export function replaceAllUses(
  graph: TmfileGraph,
  from: TmfileTensor | string,
  to: TmfileTensor | string,
): void {
  const [old, put] = [findTensor(graph, from), findTensor(graph, to)]
  const links = linksOf(graph)
  const maker = links.get(put)?.producer
  const users = (links.get(old)?.consumers ?? []).filter((node) => node !== maker)
  const early = maker && users.find((node) => graph.nodes.indexOf(node) < graph.nodes.indexOf(maker))
  if (early) {
    refuseEdit(`Node ${JSON.stringify(early.name)} runs before tensor ${JSON.stringify(put.name)} is made.`)
  }
  const replaced = (tensors: readonly TmfileTensor[]) => tensors.map((each) => (each === old ? put : each))
  for (const node of users) node.inputs = replaced(node.inputs)
  for (const device of graph.devices ?? []) {
    Object.assign(device, { inputs: replaced(device.inputs), outputs: replaced(device.outputs) })
  }
  const end = links.get(old)?.producer
  if (maker && end && end.operator !== 'InputOp') {
    graph.outputs = [...new Set(graph.outputs.map((node) => (node === end ? maker : node)))]
  }
}

/** Makes other tensors the results: the nodes that make them. @throws TileworkError ERR_ARGUMENT, ERR_GRAPH */
export function setOutputs(graph: TmfileGraph, keys: readonly (TmfileTensor | string)[]): void {
  graph.outputs = makersOf(graph, keys)
}

function makersOf(graph: TmfileGraph, keys: readonly (TmfileTensor | string)[]): TmfileNode[] {
  const links = linksOf(graph)
  const nodes = checkKeys(keys, 'outputs').map((key) => {
    const tensor = findTensor(graph, key)
    return links.get(tensor)?.producer ?? refuseEdit(`No node makes tensor ${JSON.stringify(tensor.name)}.`)
  })
  if (nodes.length === 0) refuseEdit('A graph has at least one output.')
  return [...new Set(nodes)]
}

/**
 * Keeps what leads from some tensors to others: the first become inputs of the graph, the nodes that make the second its
 * outputs, and whatever is not between them goes.
 *
 * @throws TileworkError ERR_GRAPH where an output does not depend on the inputs alone, or what is needed of a node makes
 * one of the inputs as well
 */
export function cut(
  graph: TmfileGraph,
  inputs: readonly (TmfileTensor | string)[],
  outputs: readonly (TmfileTensor | string)[],
): void {
  const starts = [...new Set(checkKeys(inputs, 'inputs').map((key) => findTensor(graph, key)))]
  const ends = makersOf(graph, outputs)
  const links = linksOf(graph)
  const constant = starts.find(isConstant)
  if (constant) refuseEdit(`Tensor ${JSON.stringify(constant.name)} is a constant, and no input.`)
  const inputNodes = starts.map((tensor) => {
    const producer = links.get(tensor)?.producer
    return producer?.operator === 'InputOp' ? producer : producerNode('InputOp', tensor)
  })
  const between = nodesBetween(ends, new Set(starts), links)
  const old = graph.inputs.find((node) => between.has(node) && !inputNodes.includes(node))
  if (old)
    refuseEdit(`The outputs also need the input ${JSON.stringify(old.name)}; name it among the inputs.`)
  const kept = graph.nodes.filter((node) => between.has(node) && !inputNodes.includes(node))
  const again = kept.flatMap(({ outputs: made }) => made).find((tensor) => starts.includes(tensor))
  if (again) {
    refuseEdit(`Tensor ${JSON.stringify(again.name)} cannot be an input: a node that is needed makes it.`)
  }
  for (const node of inputNodes) {
    if (!graph.nodes.includes(node)) refuseTakenName('node', node, kept)
  }
  for (const tensor of starts) tensor.role = 'input'
  graph.nodes = [...inputNodes, ...kept]
  graph.inputs = inputNodes
  graph.outputs = ends.map(
    (node) => inputNodes.find(({ outputs: made }) => made[0] === node.outputs[0]) ?? node,
  )
  graph.devices = null
  const used = new Set(graph.nodes.flatMap((node) => [...node.inputs, ...node.outputs]))
  dropTensors(graph, new Set(graph.tensors.filter((tensor) => !used.has(tensor))))
}

/** Nodes that the ends need, as far as the starts; nodes that make a start are not followed. */
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

/** Removes nodes that no output needs, and tensors and buffers that no node has. Inputs of the graph stay. */
export function removeUnused(graph: TmfileGraph): void {
  const needed = nodesBetween(graph.outputs, new Set(), linksOf(graph))
  const unused = graph.nodes.filter((node) => !needed.has(node) && !graph.inputs.includes(node))
  dropNodes(graph, new Set(unused))
  const used = new Set(graph.nodes.flatMap((node) => [...node.inputs, ...node.outputs]))
  dropTensors(graph, new Set(graph.tensors.filter((tensor) => !used.has(tensor))))
  const buffers = new Set<TmfileBuffer | null>(graph.tensors.map(({ buffer }) => buffer))
  graph.buffers = graph.buffers.filter((buffer) => buffers.has(buffer))
}
