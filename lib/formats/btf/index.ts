/** The BTF format for the registry. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { detect } from './detect.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { type BtfWriteOptions, plan } from './write.js'

export type { BtfWriteOptions } from './write.js'

export const btf: Format<BtfWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.btf'],
  writeOptions: ['cooLayoutCode'],
  detect,
  read,
  check,
  plan,
}
