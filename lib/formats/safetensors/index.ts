/** The safetensors format for the registry. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { planCopy } from './copy_shards.js'
import { detect } from './detect.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { plan, type SafetensorsWriteOptions } from './write.js'

export type { SafetensorsWriteOptions } from './write.js'

export const safetensors: Format<SafetensorsWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.safetensors', '.safetensors.index.json'],
  writeOptions: ['metadata', 'maxShardBytes', 'alignment'],
  detect,
  read,
  check,
  // Layout entries of the metadata have everything in them.
  keepsLayout: () => true,
  plan,
  planCopy,
}
