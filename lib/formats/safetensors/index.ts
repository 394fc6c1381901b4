/** The safetensors format, loaded when the first file of it is read or written. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { planCopy } from './copy_shards.js'
import { read } from './read.js'
import { namingIndexes } from './shard_folder.js'
import { plan, type SafetensorsWriteOptions } from './write.js'

export type { SafetensorsWriteOptions } from './write.js'

export const safetensors: Format<SafetensorsWriteOptions> = {
  read,
  check,
  plan,
  planCopy,
  naming: namingIndexes,
}
