/** A graph as boxes and edges. Graph inputs and outputs are boxes too; constants are drawn inside their consumers. */
import type { GraphColumns } from '../../protocol.js'
import type { GraphToPlace, PlacedNodes } from './place_nodes.js'

export interface Edge {
  /** Indices of boxes. */
  readonly from: number
  readonly to: number
  /** Index of the value. */
  readonly value: number
}

/** Nodes of the graph come first, with their own indices; then a box for each graph input and output. */
export interface BoxGraph {
  readonly columns: GraphColumns
  readonly boxes: number
  /** The boxes that are drawn. A node that only holds a tensor, as in a tmfile, is shown at its consumers instead. */
  readonly drawn: readonly number[]
  readonly edges: readonly Edge[]
  readonly labelOf: (box: number) => string
  readonly kindOf: (box: number) => 'node' | 'input' | 'output'
  /** The value of a box that is an input or output of the graph. */
  readonly boxValue: (box: number) => number | undefined
}

/** The tmfile operator that only holds a tensor. ONNX's `Constant` is drawn like any other node. */
const CONSTANT = 'Const'

export function boxGraph(columns: GraphColumns): BoxGraph {
  const nodes = columns.operators.length
  const producers = new Map<number, number>()
  for (const [node, outputs] of columns.outputs.entries())
    for (const value of outputs) producers.set(value, node)
  // Initializers may be graph inputs too; the page shows them at their consumers.
  const inputs = columns.graphInputs.filter((value) => columns.tensors[value]! < 0 && !producers.has(value))
  for (const [at, value] of inputs.entries()) producers.set(value, nodes + at)
  const outputs = columns.graphOutputs
  const boxes = nodes + inputs.length + outputs.length
  const isHidden = (box: number): boolean => columns.operators[box] === CONSTANT
  const edges: Edge[] = []
  const connect = (value: number, to: number): void => {
    const from = producers.get(value)
    if (from !== undefined && from !== to && !isHidden(from)) edges.push({ from, to, value })
  }
  for (const [node, values] of columns.inputs.entries()) for (const value of values) connect(value, node)
  for (const [at, value] of outputs.entries()) connect(value, nodes + inputs.length + at)
  const kindOf = (box: number) => (box < nodes ? 'node' : box < nodes + inputs.length ? 'input' : 'output')
  const boxValue = (box: number): number | undefined =>
    box < nodes ? undefined : (inputs[box - nodes] ?? outputs[box - nodes - inputs.length])
  return {
    columns,
    boxes,
    drawn: Array.from({ length: boxes }, (_, box) => box).filter((box) => !isHidden(box)),
    edges,
    kindOf,
    boxValue,
    labelOf: (box) => (box < nodes ? operatorText(columns, box) : (columns.values[boxValue(box)!] ?? '')),
  }
}

/** The graph with inferred types where its file declares none. */
export function withTypes(graph: BoxGraph, inferred: Readonly<Record<string, string>>): BoxGraph {
  const { columns } = graph
  const types = columns.types.map((type, value) => type || (inferred[columns.values[value]!] ?? ''))
  return { ...graph, columns: { ...columns, types } }
}

/** The operator with its fused activation. */
function operatorText({ operators, activations }: GraphColumns, node: number): string {
  const activation = activations[node]
  return activation ? `${operators[node]} + ${activation}` : operators[node]!
}

/** What stands in a box: the operator, its weights and attributes, its name. */
export interface BoxTexts {
  readonly title: string
  /** Lines below it. */
  readonly lines: readonly string[]
}

const MOST_LETTERS = 34

/** The end of a name distinguishes it from others, the beginning of an operator. */
export function boxTexts(graph: BoxGraph, box: number): BoxTexts {
  const { columns, labelOf, kindOf } = graph
  const title = shortened(labelOf(box))
  if (kindOf(box) !== 'node') return { title, lines: [kindOf(box)] }
  const detail = [weightsText(columns, box), columns.details[box] ?? '']
    .filter((text) => text !== '')
    .join(', ')
  const name = columns.names[box]!
  const end = name.length <= MOST_LETTERS ? name : `…${name.slice(1 - MOST_LETTERS)}`
  return { title, lines: [shortened(detail), end].filter((text) => text !== '') }
}

function shortened(text: string): string {
  return text.length <= MOST_LETTERS ? text : `${text.slice(0, MOST_LETTERS - 1)}…`
}

/** Shape of the first constant input of two axes and more. */
function weightsText({ inputs, tensors, types }: GraphColumns, node: number): string {
  for (const value of inputs[node]!) {
    if (value < 0 || tensors[value]! < 0) continue
    const shape = shapeOfType(types[value]!)
    if (shape?.includes('×')) return shape
  }
  return ''
}

/** Longest size of an axis in a drawing: those of shape inference are whole formulas. */
const MOST_SIZE_LETTERS = 12

/** Types are `float32 [1, 3, 8, 8]`; undefined for a type without a shape. */
export function shapeOfType(type: string): string | undefined {
  const sizes = /\[(.*?)\]/.exec(type)?.[1]?.split(', ')
  return sizes?.map((size) => (size.length <= MOST_SIZE_LETTERS ? size : '…')).join('×')
}

/** Kinds of operators that a drawing distinguishes; the first that matches. */
const OPERATOR_KINDS: readonly (readonly [kind: string, operators: RegExp])[] = [
  ['quantization', /quant/i],
  ['layer', /conv|gemm|matmul|fullyconnected|innerproduct|lstm|gru|rnn|attention|embed|einsum/i],
  ['normalization', /norm|^lrn$|^mvn$/i],
  ['activation', /relu|sigmoid|tanh|softmax|elu|swish|mish|clip|erf|softplus|hardswish|^silu$/i],
  ['pool', /pool|reduce|argmax|topk/i],
  [
    'shape',
    /reshape|flatten|transpose|permute|squeeze|shape|expand|^cast$|^convert$|identity|size$|^range$|constantofshape/i,
  ],
  ['data', /concat|split|slice|gather|scatter|^pad$|^tile$|resize|interp|upsample|depthtospace|crop/i],
]

/** Empty for the others, arithmetic for example. */
export function operatorKind(operator: string): string {
  return OPERATOR_KINDS.find(([, operators]) => operators.test(operator))?.[0] ?? ''
}

/** Pixels of a letter in the title and in the lines. */
const LETTER = 8
const SMALL_LETTER = 6.3

export function widthsOf(graph: BoxGraph): Float64Array {
  return Float64Array.from({ length: graph.boxes }, (_, box) => {
    const { title, lines } = boxTexts(graph, box)
    const longest = lines.reduce((most, { length }) => Math.max(most, length), 0)
    return 34 + Math.max(LETTER * Math.max(5, title.length), SMALL_LETTER * longest)
  })
}

interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL: () => string },
  ): { createScriptURL(text: string): string }
}

/** The only script URL that the page loads itself; the server's headers name the trusted-types policy that allows it. */
function workerAddress(): string {
  const address = new URL('graph_worker.js', document.baseURI).href
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  return (
    trustedTypes?.createPolicy('tilework', { createScriptURL: () => address }).createScriptURL('') ?? address
  )
}

let address: string | undefined

/** Computes the positions of the boxes in a worker, which the signal terminates. */
export function placeBoxes(graph: BoxGraph, signal: AbortSignal): Promise<PlacedNodes> {
  address ??= workerAddress()
  const worker = new Worker(address, { type: 'module' })
  signal.addEventListener('abort', () => worker.terminate())
  const { drawn, boxes } = graph
  const placeOf = new Uint32Array(boxes)
  for (const [place, box] of drawn.entries()) placeOf[box] = place
  const edges = Uint32Array.from(graph.edges.flatMap(({ from, to }) => [placeOf[from]!, placeOf[to]!]))
  const widths = widthsOf(graph)
  const message: GraphToPlace = {
    nodes: drawn.length,
    widths: Float64Array.from(drawn, (box) => widths[box]!),
    edges,
  }
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<PlacedNodes>) => {
      worker.terminate()
      resolve({ ...data, x: spread(data.x, drawn, boxes), y: spread(data.y, drawn, boxes) })
    }
    worker.onerror = ({ message: text }) => reject(new Error(text || 'The graph could not be placed.'))
    worker.postMessage(message)
  })
}

/** Expands a list over the drawn boxes to all boxes; NaN for boxes that are not drawn. */
function spread(numbers: Float64Array, drawn: readonly number[], boxes: number): Float64Array {
  const all = new Float64Array(boxes).fill(Number.NaN)
  for (const [place, box] of drawn.entries()) all[box] = numbers[place]!
  return all
}
