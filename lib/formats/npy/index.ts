/** The formats npy and npz for the registry. They share a folder because an npz archive is a list of npy files. */
import type { Format } from '../format.js'
import * as npyCheck from './check.js'
import * as npyDetect from './detect.js'
import { isFortranOrder } from './fortran_order.js'
import * as npyRead from './read.js'
import { FORMAT_NAME as NPY } from './schema.js'
import * as npyWrite from './write.js'
import * as npzCheck from './zip/npz_check.js'
import * as npzDetect from './zip/npz_detect.js'
import * as npzRead from './zip/npz_read.js'
import * as npzWrite from './zip/npz_write.js'
import { FORMAT_NAME as NPZ } from './zip/zip_schema.js'

export type { NpyWriteOptions } from './write.js'
export type { NpzWriteOptions } from './zip/npz_write.js'

export const npy: Format<npyWrite.NpyWriteOptions> = {
  name: NPY,
  extensions: ['.npy'],
  writeOptions: [],
  detect: npyDetect.detect,
  read: npyRead.read,
  check: npyCheck.check,
  keepsLayout: isFortranOrder,
  plan: npyWrite.plan,
}

export const npz: Format<npzWrite.NpzWriteOptions> = {
  name: NPZ,
  extensions: ['.npz'],
  writeOptions: ['zip64'],
  detect: npzDetect.detect,
  read: npzRead.read,
  check: npzCheck.check,
  keepsLayout: isFortranOrder,
  plan: npzWrite.plan,
}
