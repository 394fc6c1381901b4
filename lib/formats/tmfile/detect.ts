/**
 * Tells a tmfile, which has no magic number, by its version and by the chain that every reader follows: header, root,
 * vector of subgraphs, subgraph, node vector.
 */
import type { ByteSource } from '../../bytes/source.js'
import { MAIN_VERSION, OLD_SUBGRAPH_BYTES, PLACED, type STRUCTS, WORD_BYTES } from './schema.js'

export async function detect(source: ByteSource): Promise<boolean> {
  const header = await viewOf(source, 0, PLACED.header.byteLength)
  if (header?.getUint16(0, true) !== MAIN_VERSION || header.getUint16(2, true) !== 0) return false
  if (header.getUint16(4, true) !== 0) return false
  const root = await viewOf(source, word(header, 'header', 'root'), PLACED.root.byteLength)
  if (!root) return false
  const subgraphs = await viewOf(source, word(root, 'root', 'subgraphs'), 2 * WORD_BYTES)
  if (!subgraphs || subgraphs.getUint32(0, true) === 0) return false
  const graph = await viewOf(source, subgraphs.getUint32(WORD_BYTES, true), OLD_SUBGRAPH_BYTES)
  if (!graph) return false
  const nodesAt = word(graph, 'subgraph', 'nodes')
  const nodes = await viewOf(source, nodesAt, WORD_BYTES)
  return nodes !== undefined && nodes.getUint32(0, true) <= (source.byteLength - nodesAt) / WORD_BYTES - 1
}

/** Undefined for a range that is not in the file; offset 0 is the header's alone. */
async function viewOf(source: ByteSource, at: number, byteLength: number): Promise<DataView | undefined> {
  const isHeader = byteLength === PLACED.header.byteLength
  if ((at === 0 && !isHeader) || at + byteLength > source.byteLength) return undefined
  const bytes = await source.read(at, at + byteLength)
  return bytes.byteLength === byteLength
    ? new DataView(bytes.buffer, bytes.byteOffset, byteLength)
    : undefined
}

function word<S extends 'header' | 'root' | 'subgraph'>(
  view: DataView,
  struct: S,
  field: keyof (typeof STRUCTS)[S],
): number {
  const { position } = PLACED[struct].fields.find(({ name }) => name === field)!
  return view.getUint32(position, true)
}
