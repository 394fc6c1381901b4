/** Properties of a model, a graph, a node or a function: texts by name. */
import { checkText } from '../protobuf/field_input.js'
import type { Message } from '../protobuf/message.js'

/** Where a key occurs twice the last one counts. */
export function metadataOf(message: Message): ReadonlyMap<string, string> {
  return new Map(message.messages('metadata_props').map((each) => [each.text('key'), each.text('value')]))
}

/** @throws TileworkError ERR_ARGUMENT for what is no text; for bytes that are no fields */
export function setMetadata(message: Message, key: string, value: string): void {
  checkText('The key of a property', key)
  checkText('The value of a property', value)
  const known = message.messages('metadata_props').findLast((each) => each.text('key') === key)
  const property = known ?? message.insert('metadata_props')
  if (!known) property.setText('key', key)
  property.setText('value', value)
}
