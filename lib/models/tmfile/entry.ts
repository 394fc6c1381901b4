/**
 * tmfile for the registry. The format has no magic number, so detection checks the version and follows the chain that
 * every reader follows: header, root, subgraph vector, subgraph, node vector.
 */
import type { FileHead } from '../../formats/file_head.js'
import type { ModelFormatEntry } from '../../formats/format.js'
import {
  FORMAT_NAME,
  MAIN_VERSION,
  OLD_SUBGRAPH_BYTES,
  STRUCT_LAYOUTS,
  type STRUCTS,
  WORD_BYTES,
} from '../../formats/tmfile/schema.js'
import type { TmfileModel } from './document/model.js'
import type { TmfileWriteOptions } from './document/write.js'

export const tmfileEntry = {
  name: FORMAT_NAME,
  extensions: ['.tmfile'],
  writeOptions: { mode: true },
  modelProperty: 'tmfile',
  detect,
  isDamaged,
  load: async () => (await import('./index.js')).tmfile,
} as const satisfies ModelFormatEntry<TmfileModel, TmfileWriteOptions>

async function detect(head: FileHead): Promise<boolean> {
  const header = await versionedHeader(head)
  if (!header) return false
  const root = await structAt(head, readOffset(header, 'header', 'root'), STRUCT_LAYOUTS.root.byteLength)
  if (!root) return false
  const subgraphs = await structAt(head, readOffset(root, 'root', 'subgraphs'), 2 * WORD_BYTES)
  if (!subgraphs || subgraphs.getUint32(0, true) === 0) return false
  const graph = await structAt(head, subgraphs.getUint32(WORD_BYTES, true), OLD_SUBGRAPH_BYTES)
  if (!graph) return false
  const nodesOffset = readOffset(graph, 'subgraph', 'nodes')
  const nodes = await structAt(head, nodesOffset, WORD_BYTES)
  return nodes !== undefined && nodes.getUint32(0, true) <= (head.byteLength - nodesOffset) / WORD_BYTES - 1
}

/** The header; undefined where its versions are others. */
async function versionedHeader(head: FileHead): Promise<DataView | undefined> {
  const header = await head.range(0, STRUCT_LAYOUTS.header.byteLength)
  const isKnown =
    header?.getUint16(0, true) === MAIN_VERSION &&
    header.getUint16(2, true) === 0 &&
    header.getUint16(4, true) === 0
  return isKnown ? header : undefined
}

/** A BTF file of two tensors starts with the same numbers: its count, and where its offset table ends. */
const END_OF_BTF_TABLE = 24

/** The root is the last struct that writers write, so a file that was cut has no root, or a part of it. */
async function isDamaged(head: FileHead): Promise<boolean> {
  const header = await versionedHeader(head)
  const root = header && readOffset(header, 'header', 'root')
  if (root === undefined || root === END_OF_BTF_TABLE) return false
  return root + STRUCT_LAYOUTS.root.byteLength > head.byteLength
}

/** Undefined for a range outside the file, and for offset 0, which means "not set". */
async function structAt(head: FileHead, offset: number, byteLength: number): Promise<DataView | undefined> {
  return offset === 0 ? undefined : head.range(offset, offset + byteLength)
}

function readOffset<S extends 'header' | 'root' | 'subgraph'>(
  view: DataView,
  struct: S,
  field: keyof (typeof STRUCTS)[S],
): number {
  const { offset } = STRUCT_LAYOUTS[struct].fields.find(({ name }) => name === field)!
  return view.getUint32(offset, true)
}
