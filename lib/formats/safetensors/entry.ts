/** safetensors for the registry. */
import type { FormatEntry } from '../format.js'
import { detect, isDamaged } from './detect.js'
import { FORMAT_NAME } from './schema.js'
import type { SafetensorsWriteOptions } from './write.js'

export const safetensorsEntry = {
  name: FORMAT_NAME,
  extensions: ['.safetensors', '.safetensors.index.json'],
  writeOptions: { metadata: true, maxShardBytes: true, alignment: true },
  namesFiles: true,
  detect,
  isDamaged,
  // The metadata of a file contain the layout and the logical shape of every blocked tensor.
  keepsLayout: () => true,
  addsLayoutEntries: true,
  load: async () => (await import('./index.js')).safetensors,
} as const satisfies FormatEntry<SafetensorsWriteOptions>
