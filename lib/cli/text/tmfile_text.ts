/** The graph of a tmfile as text, a node per line, for `inspect --text`. */
import type { TmfileDump } from '../../tmfile.js'
import { formatShape } from './parse_shape.js'
import { printable, printableName } from './printable.js'

type Node = TmfileDump['nodes'][number]

/** `#3 conv1: Convolution(data, w) -> conv1 float32 [1,32,112,112], kernel_h=3`; a constant has its type and shape. */
export function* tmfileText({ nodes, tensors }: TmfileDump): Generator<string> {
  const nameOf = (at: number): string => printableName(tensors[at]?.name ?? `tensor ${at}`)
  const typeOf = (at: number): string => {
    const { dtype, shape } = tensors[at]!
    return `${dtype} [${shape === null ? '?' : formatShape(shape)}]`
  }
  const input = (at: number): string =>
    tensors[at]?.role === 'constant' ? `${nameOf(at)} ${typeOf(at)}` : nameOf(at)
  const output = (at: number): string => `${nameOf(at)} ${typeOf(at)}`
  for (const [at, node] of nodes.entries()) {
    // Constants are printed at their consumers.
    if (node.operator === 'Const') continue
    const inputs = node.inputs.map(input).join(', ')
    const outputs = node.outputs.map(output).join(', ')
    const name = node.name === null ? '' : ` ${printableName(node.name)}`
    yield `#${at}${name}: ${printable(node.operator)}(${inputs}) -> ${outputs}${parametersText(node)}`
  }
}

function parametersText({ params, meanings }: Node): string {
  return Object.entries(params)
    .map(([name, value]) => `, ${name}=${meanings[name] ?? JSON.stringify(value)}`)
    .join('')
}
