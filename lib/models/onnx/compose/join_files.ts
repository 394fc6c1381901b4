/** Joins the external data of two models: a data file of the second gets another name where the first has a file of that name. */
import { isAbsolute, posix } from 'node:path'
import type { ByteSource } from '../../../bytes/source.js'
import { nameOfLocation } from '../../../formats/onnx/external/files.js'
import type { MessageFile } from '../../../formats/onnx/protobuf/edited_bytes.js'
import type { Message } from '../../../formats/onnx/protobuf/message.js'
import { LOCATION_EXTERNAL } from '../../../formats/onnx/schema.js'
import { denseFields } from '../../../formats/onnx/tensor/fields.js'

/**
 * The data files of both models by location. Tensors of the second model get the new names of files; they are written with
 * these, and read from the files as they are.
 *
 * @param added - the second model, a copy
 */
export function joinFiles(
  first: MessageFile,
  second: MessageFile,
  added: Message,
): ReadonlyMap<string, ByteSource> {
  const files = new Map(first.files)
  const taken = new Map([...files].map(([location, source]) => [keyOf(location), source]))
  const moved = new Map<string, string>()
  for (const [location, source] of second.files) {
    const other = taken.get(keyOf(location))
    const free = !other || isSame(other, source) ? location : freeLocation(location, taken)
    if (free !== location) moved.set(location, free)
    files.set(free, source)
    taken.set(keyOf(free), source)
  }
  if (moved.size > 0) moveLocations(added, moved)
  return files
}

/** File systems may ignore case. */
function keyOf(location: string): string {
  return nameOfLocation(location).toLowerCase()
}

/** Two opened files are the same where their paths are; other sources have no unique label. */
function isSame(one: ByteSource, other: ByteSource): boolean {
  if (one === other) return true
  return (
    one.label !== undefined &&
    isAbsolute(one.label) &&
    one.label === other.label &&
    one.byteLength === other.byteLength
  )
}

function freeLocation(location: string, taken: ReadonlyMap<string, unknown>): string {
  const extension = posix.extname(location)
  const stem = location.slice(0, location.length - extension.length)
  let number = 1
  while (taken.has(keyOf(`${stem}-${number}${extension}`))) number += 1
  return `${stem}-${number}${extension}`
}

function moveLocations(model: Message, moved: ReadonlyMap<string, string>): void {
  for (const { field } of denseFields(model)) {
    if (field.kind === 'tensor' || field.int('data_location') !== LOCATION_EXTERNAL) continue
    for (const entry of field.messages('external_data')) {
      const other = moved.get(entry.text('value'))
      if (other !== undefined && entry.text('key') === 'location') entry.setText('value', other)
    }
  }
}
