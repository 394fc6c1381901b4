/** GGUF for the registry. */
import type { ModelFormatEntry } from '../format.js'
import type { GgufModel } from './model.js'
import type { GgufWriteOptions } from './write.js'

/** The same as `FORMAT_NAME` and `MAGIC` of the schema, which is loaded with the format. */
const NAME = 'gguf'
const MAGIC = [0x47, 0x47, 0x55, 0x46]

export const ggufEntry = {
  name: NAME,
  extensions: ['.gguf'],
  writeOptions: { gguf: true },
  modelProperty: 'gguf',
  keepsBlocks: true,
  detect: ({ bytes }) => MAGIC.every((byte, at) => bytes[at] === byte),
  isDamaged: ({ bytes }) => bytes.length > 0 && bytes.every((byte, at) => byte === MAGIC[at]),
  load: async () => (await import('./index.js')).gguf,
} as const satisfies ModelFormatEntry<GgufModel, GgufWriteOptions>
