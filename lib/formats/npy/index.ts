/** The formats npy and npz, loaded when the first file of either is read or written. */
import type { Format } from '../format.js'
import * as npyCheck from './check.js'
import * as npyRead from './read.js'
import * as npyWrite from './write.js'
import * as npzCheck from './zip/npz_check.js'
import * as npzRead from './zip/npz_read.js'
import * as npzWrite from './zip/npz_write.js'

export type { NpyWriteOptions } from './write.js'
export type { NpzWriteOptions } from './zip/npz_write.js'

export const npy: Format<npyWrite.NpyWriteOptions> = {
  read: npyRead.read,
  check: npyCheck.check,
  plan: npyWrite.plan,
}

export const npz: Format<npzWrite.NpzWriteOptions> = {
  read: npzRead.read,
  check: npzCheck.check,
  plan: npzWrite.plan,
}
