/** Subgraphs whose paths once held the whole name of every node around them: a file of 1 MB took gigabytes. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { type Difference, diff, type OpenFile, open } from '../../../lib/index.js'
import { describeOnnx } from '../../../lib/models/onnx/document/description.js'
import { type Bytes, field, int, join, modelProto } from '../../formats/onnx/onnx_bytes.js'

/** What the names would take, copied into every path, is several times as much. */
const LIMIT_BYTES = 64 * 1024 * 1024
/** Of a path, whatever the names are. */
const LONGEST_PATH = 1000

const EMPTY = field(2, 's')

interface Owner {
  readonly name: string
  readonly opType?: string
  readonly attribute?: string
}

/** A node with graphs in one attribute. */
function owner(graphs: readonly Bytes[], { name, opType = 'If', attribute = 'b' }: Owner): Bytes {
  const list = join(field(1, attribute), ...graphs.map((graph) => field(11, graph)), int(20, 10))
  return field(1, join(field(3, name), field(4, opType), field(5, list)))
}

const many = (count: number): Bytes[] => Array.from({ length: count }, () => EMPTY)
const long = (length: number, letter = 'N'): string => letter.repeat(length)

/** Each node in the graph of the one before. */
function nested(depth: number, name: string, innermost: readonly Bytes[]): Bytes {
  let graphs = innermost
  for (let level = 0; level < depth; level++) graphs = [join(owner(graphs, { name }), EMPTY)]
  return graphs[0]!
}

const FILES: Readonly<Record<string, (count: number) => Bytes>> = {
  'a long name of a node': (count) => owner(many(count), { name: long(2 ** 18) }),
  'a long operator': (count) => owner(many(count), { name: '', opType: long(2 ** 18) }),
  'a long name of an attribute': (count) => owner(many(count), { name: 'n', attribute: long(2 ** 18) }),
  'long names around each other': (count) => nested(15, long(2 ** 13), many(2 * count)),
  'short names around each other': (count) => nested(15, long(150), many(2 * count)),
  'long names that differ at their ends': (count) =>
    join(...many(count).map((graph, at) => owner([graph], { name: `${long(300)}${at}` }))),
}

const collect = (() => {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
})()

async function keptBytes(make: () => unknown): Promise<number> {
  collect()
  const { heapUsed: before } = process.memoryUsage()
  const kept = await make()
  collect()
  const grown = process.memoryUsage().heapUsed - before
  return kept === undefined ? Number.NaN : grown
}

async function opened(graph: Bytes): Promise<OpenFile> {
  return open(modelProto(join(graph, field(2, 'g'))), { format: 'onnx', level: 'lenient' })
}

it.each(Object.keys(FILES))('%s: paths are short and differ', async (name) => {
  const file = await opened(FILES[name]!(2000))
  let paths: string[] = []
  const grown = await keptBytes(() => {
    const found = describeOnnx(file.onnx!)
    // A text made of parts takes its full length as soon as it is looked up.
    paths = [...new Map(found.graphs.map(({ path }) => [path, true])).keys()]
    return found
  })
  expect(paths.length).toBeGreaterThan(2000)
  expect(paths.length).toBe([...file.onnx!.graph.subgraphs()].length + 1)
  expect(Math.max(...paths.map((path) => path.length))).toBeLessThan(LONGEST_PATH)
  expect(grown).toBeLessThan(LIMIT_BYTES)
  file.close()
})

it.each(Object.keys(FILES))('%s: differences of its subgraphs', async (name) => {
  const [few, all] = [await opened(FILES[name]!(1)), await opened(FILES[name]!(2000))]
  let found: Difference | undefined
  const grown = await keptBytes(async () => {
    found = await diff(few, all)
    for (const { graph } of found.graph ?? []) Buffer.byteLength(graph)
    return found
  })
  const added = (found?.graph ?? []).filter(({ kind, what }) => kind === 'added' && what === 'graph')
  expect(added.length).toBeGreaterThanOrEqual(1999)
  expect(Math.max(...added.map(({ graph }) => graph.length))).toBeLessThan(LONGEST_PATH)
  expect(grown).toBeLessThan(LIMIT_BYTES)
  few.close()
  all.close()
})

it('keeps the path of a function short', async () => {
  const named = join(field(1, long(2 ** 18)), field(10, long(2 ** 18, 'D')))
  const file = await open(modelProto(field(2, 'g'), field(25, named)), { format: 'onnx', level: 'lenient' })
  const { graphs } = describeOnnx(file.onnx!)
  expect(graphs.at(-1)!.path.startsWith('function DDD')).toBe(true)
  expect(graphs.at(-1)!.path.length).toBeLessThan(LONGEST_PATH)
  file.close()
})

it('names the node that each subgraph belongs to', async () => {
  const name = long(300)
  const first = owner([join(owner([EMPTY], { name }), EMPTY), EMPTY], { name })
  const file = await opened(join(first, owner([EMPTY], { name: '' })))
  const { graphs } = describeOnnx(file.onnx!)
  expect(graphs.map(({ owner: place }) => place)).toEqual([
    undefined,
    { graph: 0, node: 0 },
    { graph: 1, node: 0 },
    { graph: 0, node: 0 },
    { graph: 0, node: 1 },
  ])
  const label = `${long(200)}… (node 0).b`
  expect(graphs.map(({ path }) => path)).toEqual([
    '',
    `${label}[0]`,
    `${label}[0]/${label}`,
    `${label}[1]`,
    'If 1.b',
  ])
  file.close()
})
