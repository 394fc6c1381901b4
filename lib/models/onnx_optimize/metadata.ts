/** Removes what exporters note beside a graph: doc strings and metadata, which no output depends on. */
import type { Message } from '../../formats/onnx/protobuf/message.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { withInner } from '../onnx/edit/function_edits.js'

const FIELDS = ['doc_string', 'metadata_props'] as const

/** Of graphs, functions and nodes, as ClearMetadataAndDocString of onnx_ir. @returns number of them that had any */
export function clearMetadata(model: OnnxModel): number {
  let count = 0
  const clear = (message: Message): void => {
    const present = FIELDS.filter((field) => message.has(field))
    for (const field of present) message.clear(field)
    if (present.length > 0) count += 1
  }
  for (const graph of model.graphs()) {
    clear(graph.message)
    for (const { message } of graph.nodes) clear(message)
  }
  for (const { message, nodes } of model.functions) {
    clear(message)
    for (const node of withInner(nodes)) {
      clear(node.message)
      for (const graph of node.subgraphs) clear(graph.message)
    }
  }
  return count
}
