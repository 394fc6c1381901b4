/** Creates the input files of the fault tests, and inspects files after a fault. */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, utimesSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { writeBtf } from '../../../scripts/btf_file.mjs'
import { seededBytes } from '../../../scripts/seeded.mjs'

const MIB = 2 ** 20
const CHANNELS = 31
export const LAYOUT = 'b_fs_yx_fsv16'

/** Kinds of input. Small tensors are read and computed in one step, on another code path. */
export const INPUTS = { 'one tensor': 1, '1,000 tensors': 1000 }

export function writeInput(path, tensors = 1, seed = 1, byteLength = 12 * MIB) {
  const plane = Math.max(1, Math.round(byteLength / tensors / CHANNELS / 4))
  const shape = [1, CHANNELS, plane, 1]
  const bytes = seededBytes(4 * CHANNELS * plane, seed)
  writeBtf(
    path,
    Array.from({ length: tensors }, () => ({ dtype: 'float32', shape, bytes })),
  )
}

/** Restores a file with an old modification time, so that every later write changes the time. */
export function restore(from, to) {
  copyFileSync(from, to)
  utimesSync(to, 1e9, 1e9)
}

/** Undefined for a missing file. */
export function digest(path) {
  return existsSync(path) ? createHash('sha256').update(readFileSync(path)).digest('hex') : undefined
}

/** Names of unexpected files in the folder of `target`. */
export function strayFiles(target, others = []) {
  const expected = [basename(target), ...others]
  return readdirSync(dirname(target)).filter((name) => !expected.includes(name))
}

export function pathsIn(folder) {
  return { input: join(folder, 'input.btf'), target: join(folder, 'target.btf') }
}

/** Describes the outcome of a job in one line. */
export function describeOutcome({ error, signal, exitCode, value }) {
  if (signal) return `the process was killed by ${signal}`
  if (exitCode !== undefined && exitCode !== null) return `the process ended with ${exitCode}`
  if (!error) return `no error, but ${JSON.stringify(value)}`
  return `${error.code ?? 'no code'}: ${error.message}${error.stack ? `\n${error.stack}` : ''}`
}
