import type { Message } from '../../../formats/onnx/protobuf/message.js'
import type { Graph } from '../document/types.js'

/** Removes declared types of values that are gone. */
export function removeValueInfo({ message }: Graph, gone: ReadonlySet<string>): void {
  message.filter('value_info', (field) => !gone.has((field as Message).text('name')))
}
