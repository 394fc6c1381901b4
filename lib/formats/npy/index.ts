/** The formats npy and npz for the registry. They share a folder because an npz archive is a list of npy files. */
import type { Format } from '../format.js'
import { check } from './check.js'
import { detect } from './detect.js'
import { read } from './read.js'
import { FORMAT_NAME } from './schema.js'
import { type NpyWriteOptions, plan } from './write.js'

export type { NpyWriteOptions } from './write.js'

export const npy: Format<NpyWriteOptions> = {
  name: FORMAT_NAME,
  extensions: ['.npy'],
  detect,
  read,
  check,
  plan,
}
