/** The BTF format, loaded when the first BTF file is read or written. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { read } from './read.js'
import { type BtfWriteOptions, plan } from './write.js'

export type { BtfWriteOptions } from './write.js'

export const btf: Format<BtfWriteOptions> = { read, check, plan }
