/** TFLite for the registry. */
import type { FormatEntry } from '../format.js'
import { FORMAT_NAME, IDENTIFIER, IDENTIFIER_AT } from './schema.js'

export const tfliteEntry = {
  name: FORMAT_NAME,
  extensions: ['.tflite'],
  isReadOnly: true,
  writeOptions: {},
  detailsProperty: 'tflite',
  detect: ({ bytes }) =>
    [...IDENTIFIER].every((letter, at) => bytes[IDENTIFIER_AT + at] === letter.charCodeAt(0)),
  load: async () => (await import('./index.js')).tflite,
} as const satisfies FormatEntry<Record<never, never>>
