/** Shapes of products of matrices, of attention and of recurrent layers. */
import {
  broadcast,
  type Dim,
  type Dims,
  extent,
  isKnown,
  merged,
  quotientOf,
  sumOf,
} from '../evaluate/dims.js'
import type { NodeView } from './node_view.js'

export function matmul(left: Dims | undefined, right: Dims | undefined): Dims | undefined {
  if (!left || !right || left.length === 0 || right.length === 0) return undefined
  const [one, other] = [left.length === 1 ? [1, ...left] : left, right.length === 1 ? [...right, 1] : right]
  if (merged(one.at(-1)!, other.at(-2)!) === undefined) return undefined
  const outer = broadcast([one.slice(0, -2), other.slice(0, -2)])
  if (!outer) return undefined
  const rows = left.length === 1 ? [] : [one.at(-2)!]
  return [...outer, ...rows, ...(right.length === 1 ? [] : [other.at(-1)!])]
}

export function gemm(node: NodeView): Dims | undefined {
  const [left, right] = [node.dims(0), node.dims(1)]
  if (left?.length !== 2 || right?.length !== 2) return undefined
  const rows = left[node.int('transA', 0) !== 0 ? 1 : 0]!
  return [rows, right[node.int('transB', 0) !== 0 ? 0 : 1]!]
}

/** One letter per axis; an ellipsis stands for the axes that are broadcast. */
export function einsum(node: NodeView): Dims | undefined {
  const [left, right] = (node.text('equation') ?? '').replaceAll(' ', '').split('->') as [string, string?]
  const terms = left.split(',')
  const shapes = node.inputs.map((_, input) => node.dims(input))
  if (terms.length !== shapes.length) return undefined
  const extents = new Map<string, Dim>()
  const outer: Dims[] = []
  for (const [at, term] of terms.entries()) {
    const shape = shapes[at]
    if (!shape) return undefined
    const [first, last] = term.split('...') as [string, string?]
    const count = shape.length - first.length - (last?.length ?? 0)
    if (last === undefined ? count !== 0 : count < 0) return undefined
    if (last !== undefined) outer.push(shape.slice(first.length, first.length + count))
    const own = [...shape.slice(0, first.length), ...shape.slice(first.length + count)]
    for (const [axis, letter] of [...first, ...(last ?? '')].entries()) {
      const known = extents.get(letter)
      // An extent of 1 is broadcast.
      if (known === undefined || known === 1) extents.set(letter, own[axis]!)
    }
  }
  const shared = broadcast(outer)
  return shared && termDims(right ?? implicitOutput(left), extents, shared)
}

/** Letters that occur once, in alphabetical order, after the ellipsis. */
function implicitOutput(left: string): string {
  const letters = [...left].filter((letter) => /[A-Za-z]/.test(letter))
  const once = letters.filter((letter) => letters.indexOf(letter) === letters.lastIndexOf(letter)).sort()
  return (left.includes('...') ? '...' : '') + once.join('')
}

function termDims(term: string, extents: ReadonlyMap<string, Dim>, shared: Dims): Dims | undefined {
  const [first, last] = term.split('...') as [string, string?]
  const dimsOf = (letters: string): (Dim | undefined)[] => [...letters].map((letter) => extents.get(letter))
  const dims = [...dimsOf(first), ...(last === undefined ? [] : [...shared, ...dimsOf(last)])]
  return dims.includes(undefined) ? undefined : (dims as Dims)
}

/** Outputs are all states and the last ones; with `layout` 1 the batch comes first. */
export function recurrent(node: NodeView): readonly (Dims | undefined)[] {
  const input = node.dims(0)
  const size = node.int('hidden_size')
  const hidden = size === undefined ? (node.dims(2)?.[2] ?? null) : extent(size)
  const direction = node.text('direction') ?? 'forward'
  if (input?.length !== 3) return []
  const count = direction === 'bidirectional' ? 2 : 1
  const isBatchFirst = node.opset >= 14 && node.int('layout', 0) !== 0
  const [length, batch] = isBatchFirst ? [input[1]!, input[0]!] : [input[0]!, input[1]!]
  if (isBatchFirst) {
    const last = [batch, count, hidden]
    return [[batch, length, count, hidden], last, last]
  }
  const last = [count, batch, hidden]
  return [[length, count, batch, hidden], last, last]
}

/** Outputs are the result, keys and values with those of the past, and scores. */
export function attention(node: NodeView): readonly (Dims | undefined)[] {
  const [query, key, value] = [
    heads(node, 0, 'q_num_heads'),
    heads(node, 1, 'kv_num_heads'),
    heads(node, 2, 'kv_num_heads'),
  ]
  if (!query || !key || !value) return []
  const [batch, count, length] = query as [Dim, Dim, Dim, Dim]
  const size = value[3]!
  const isFlat = node.dims(0)!.length === 3
  const flat = isKnown(count) && isKnown(size) ? extent(count * size) : null
  const past = node.has(4) ? (node.dims(4)?.[2] ?? null) : 0
  const total = sumOf(merged(key[2]!, value[2]!) ?? null, past)
  const hasPast = node.has(4) && node.has(5)
  const present = (input: number): Dims | undefined => {
    const dims = hasPast ? node.dims(input) : undefined
    return dims?.length === 4 ? dims.with(2, total) : undefined
  }
  return [
    isFlat ? [batch, length, flat] : [batch, count, length, size],
    present(4),
    present(5),
    [batch, count, length, total],
  ]
}

/** Batch, heads, length, size of a head. */
function heads(node: NodeView, input: number, countName: string): Dims | undefined {
  const dims = node.dims(input)
  if (dims?.length === 4) return dims
  const count = node.int(countName)
  if (dims?.length !== 3 || count === undefined || count < 1) return undefined
  return [dims[0]!, extent(count), dims[1]!, quotientOf(dims[2]!, count)]
}
