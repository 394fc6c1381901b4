/** Runs a tmfile in the engine, and compares arrays of .npy files. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { open } from '../../../dist/index.js'

/** Largest difference, relative to the largest expected value, that counts as equal. */
export const TOLERANCE = 1e-4

/** A kernel that never ends is a crash. */
const TIMEOUT_MS = 60_000

const EXITS = { 3: 'load', 4: 'input', 5: 'prerun', 6: 'run' }

/** Paths of the inputs or outputs of a case, in order. */
export function arraysOf(folder, kind) {
  const names = readdirSync(folder).filter((name) => new RegExp(`^${kind}\\d+\\.npy$`).test(name))
  return names.sort((one, other) => numberOf(one) - numberOf(other)).map((name) => join(folder, name))
}

const numberOf = (name) => Number(/\d+/.exec(name)[0])

/** Runs a model on input files. Returns the paths of its outputs, or why there are none. */
export function runEngine(runner, model, inputs, target) {
  mkdirSync(target, { recursive: true })
  const { status, signal, stderr } = spawnSync(runner, ['-o', target, model, ...inputs], {
    encoding: 'utf8',
    timeout: TIMEOUT_MS,
  })
  if (status === 0) return { outputs: arraysOf(target, 'out') }
  const what = EXITS[status] ?? `crash ${signal ?? status}`
  return { problem: `${what}: ${stderr.trim().split('\n').at(-1)}` }
}

/** The largest difference relative to the largest expected value, or what differs otherwise. */
export async function difference(path, expectedPath, { exact = false } = {}) {
  const [actual, expected] = [await arrayOf(path), await arrayOf(expectedPath)]
  const isScalar = expected.shape.length === 0 && String(actual.shape) === '1'
  if (String(actual.shape) !== String(expected.shape) && !isScalar) {
    return { problem: `shape [${actual.shape}], expected [${expected.shape}]` }
  }
  const [values, wanted] = [actual.values, expected.values]
  let [largest, scale] = [0, 1]
  for (let at = 0; at < wanted.length; at++) {
    const [value, target] = [Number(values[at]), Number(wanted[at])]
    if (Object.is(value, target) || (Number.isNaN(value) && Number.isNaN(target))) continue
    const distance = Math.abs(value - target)
    if (!(distance <= largest)) largest = Number.isNaN(distance) ? Number.POSITIVE_INFINITY : distance
    if (Number.isFinite(target)) scale = Math.max(scale, Math.abs(target))
  }
  return { error: exact || !expected.isFloat ? largest : largest / scale }
}

async function arrayOf(path) {
  const file = await open(path)
  const [tensor] = file.tensors
  const values = await tensor.toTypedArray()
  const { shape, dtype } = tensor
  file.close()
  return { shape, values, isFloat: dtype.startsWith('float') }
}

/** Undefined where all outputs are equal, else what differs first. */
export async function compareOutputs(outputs, expected) {
  if (outputs.length !== expected.length) return `${outputs.length} outputs, expected ${expected.length}`
  for (const [at, path] of outputs.entries()) {
    const { problem, error } = await difference(path, expected[at])
    if (problem) return `output ${at}: ${problem}`
    if (!(error <= TOLERANCE)) return `output ${at}: relative error ${error.toExponential(1)}`
  }
  return undefined
}
