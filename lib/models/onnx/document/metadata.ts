/** `metadata_props` of models, graphs, nodes and functions, and texts that may be absent. */
import { checkText } from '../../../formats/onnx/protobuf/field_input.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'

/** Metadata by key; the last of equal keys wins. */
export function metadataOf(message: Message): ReadonlyMap<string, string> {
  return new Map(message.messages('metadata_props').map((each) => [each.text('key'), each.text('value')]))
}

/** Removes all entries of a key. @returns false where there is none */
export function removeMetadata(message: Message, key: string): boolean {
  checkText('The key of a property', key)
  return message.filter('metadata_props', (field) => (field as Message).text('key') !== key) > 0
}

/** Sets a text; an empty one removes the field. @throws TileworkError ERR_ARGUMENT for anything but text */
export function setOptionalText(message: Message, field: string, text: string): void {
  if (checkText(`${message.type}.${field}`, text) === '') message.clear(field)
  else message.setText(field, text)
}

/** Sets one entry. @throws TileworkError ERR_ARGUMENT unless key and value are strings */
export function setMetadata(message: Message, key: string, value: string): void {
  checkText('The key of a property', key)
  checkText('The value of a property', value)
  const known = message.messages('metadata_props').findLast((each) => each.text('key') === key)
  const property = known ?? message.insert('metadata_props')
  if (!known) property.setText('key', key)
  property.setText('value', value)
}
