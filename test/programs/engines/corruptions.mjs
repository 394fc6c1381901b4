/**
 * Seeded corruptions of real tmfiles: what crashes the engine while it loads must be an error of a strict check, and so must crashes
 * at run of the classes below. Files that the engine refuses or runs are counted. A corruption changes one word of the structures, or one
 * parameter, type or role.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { check, open, save, tensor } from '../../../dist/index.js'
import { dumpTmfile } from '../../../dist/tmfile.js'
import { generator } from '../../../scripts/seeded.mjs'
import { realModels, shapesOf } from './real_models.mjs'

export const name = 'corruptions'

/** Default of `--count`. */
const COUNT = 1700
const SEED = 25
const TIMEOUT_MS = 120_000

/** Values that break sizes, offsets and counts. */
const WORDS = [
  0, 1, 2, 3, 4, 5, 7, 9, 255, 0x7fff, 0xffff, 0x10000, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000,
  0xc0000000, 0xffffffff, 0xfffffffe,
]

/** Changes of a model that kill the engine at run. Each returns what it changed, or nothing where the model has no place for it. */
const CLASSES = {
  'type of a weight': ({ graph }, pick) => {
    const node = pick(
      graph.nodes.filter(
        ({ operator, inputs }) => operator === 'Convolution' && inputs[1]?.dtype === 'float32',
      ),
    )
    if (!node) return undefined
    const [, weight] = node.inputs
    const dtype = pick(['float16', 'int8'])
    const size = weight.shape.reduce((product, extent) => product * extent, 1)
    const buffer = { byteLength: dtype === 'int8' ? size : 2 * size, data: null }
    graph.buffers[graph.buffers.indexOf(weight.buffer)] = buffer
    Object.assign(weight, { dtype, buffer })
    return `${weight.name}: ${dtype}`
  },
  'role of a constant': ({ graph }, pick) => {
    const weight = pick(graph.tensors.filter(({ role }) => role === 'constant'))
    weight.role = pick(['unknown', 'variable', 'input', 'dependency'])
    return `${weight.name}: ${weight.role}`
  },
  'stride of a Pooling': (model, pick) =>
    param(
      model,
      pick,
      ['Pooling'],
      ['stride_h', 'stride_w'],
      () => 0,
      ({ global }) => global === 0,
    ),
  'kernel or pad': (model, pick) =>
    param(model, pick, ['Convolution', 'Pooling'], ['kernel_h', 'kernel_w', 'pad_h0', 'pad_w0'], () =>
      pick([2 ** 30, -(2 ** 30), 2 ** 31 - 1]),
    ),
  'axis of a Concat': (model, pick) =>
    param(model, pick, ['Concat'], ['axis'], () => pick([4, 5, 7, 64, -5, -64])),
  'kernel of other weights': (model, pick) =>
    param(model, pick, ['Convolution'], ['kernel_h', 'kernel_w'], () => pick([2, 4, 5, 7, 11])),
}

function param({ graph }, pick, operators, fields, value, filter = () => true) {
  const node = pick(
    graph.nodes.filter(({ operator, params }) => operators.includes(operator) && filter(params)),
  )
  if (!node) return undefined
  const field = pick(fields)
  const before = node.params[field]
  node.params[field] = value()
  return before === node.params[field] ? undefined : `${node.name}.${field}: ${node.params[field]}`
}

export async function run({ fixtures, folder, runner, only, count = COUNT, first = 0, load, verbose }) {
  const files = realModels(join(fixtures, '../tmfile'), only)
  const counts = {
    corruptions: 0,
    'crashes at load': 0,
    'crashes at run': 0,
    'crashes at run without an error': 0,
    refused: 0,
    loaded: 0,
    run: 0,
  }
  const failures = []
  for (let at = Number(first); at < Number(first) + Number(count); at += 1) {
    const original = files[at % files.length]
    const path = join(folder, 'corrupt.tmfile')
    const change = await corrupt(original, path, at)
    if (!change) continue
    counts.corruptions += 1
    const inputs = await inputsOf(original, folder)
    const outcome = crashOf(runner, path, load ? undefined : inputs)
    const hasError = (await check(path, { level: 'strict' })).some(({ severity }) => severity === 'error')
    counts[outcome] += 1
    const isCrash = outcome.startsWith('crashes')
    const line = `${at} ${basename(original)} ${change.what}: ${outcome}${hasError ? ', an error' : ''}`
    if (verbose) console.log(line)
    if (!isCrash || hasError) continue
    if (outcome === 'crashes at load' || change.isListed) failures.push(line)
    else counts['crashes at run without an error'] += 1
  }
  return { counts, failures }
}

/** Writes a corrupted file. Every second one is a class of its own, the others change a word. */
async function corrupt(original, target, at) {
  const random = generator(SEED * 100_003 + at)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const file = await open(original)
  try {
    if (at % 16 < 8) return corruptWord(original, target, file.tmfile, random)
    const kind = pick(Object.keys(CLASSES))
    const what = CLASSES[kind](file.tmfile, pick)
    if (what === undefined) return undefined
    await save(target, file.tmfile, { mode: 'upgrade' })
    return { what: `${kind}, ${what}`, isListed: true }
  } finally {
    file.close()
  }
}

/** One word outside the data of constants, or the length. */
function corruptWord(original, target, model, random) {
  const bytes = readFileSync(original)
  const data = dumpTmfile(model).buffers.filter(({ offset }) => offset !== null)
  const isData = (word) => data.some(({ offset, byteLength }) => word >= offset && word < offset + byteLength)
  if (random() < 0.03) {
    const length = Math.floor(random() * bytes.length)
    writeFileSync(target, bytes.subarray(0, length))
    return { what: `cut at ${length}` }
  }
  let word
  do word = 4 * Math.floor((random() * bytes.length) / 4)
  while (isData(word) || word + 4 > bytes.length)
  const old = bytes.readUInt32LE(word)
  const choices = [
    ...WORDS,
    bytes.length,
    bytes.length - 4,
    old + 4,
    old ^ 1,
    4 * Math.floor((random() * bytes.length) / 4),
  ]
  const value = choices[Math.floor(random() * choices.length)] >>> 0
  bytes.writeUInt32LE(value, word)
  writeFileSync(target, bytes)
  return { what: `word at ${word}: ${old} to ${value}` }
}

async function inputsOf(path, folder) {
  return Promise.all(
    Object.entries(shapesOf(path)).map(async ([input, shape]) => {
      const array = join(folder, `${basename(path)}-${input}.npy`)
      const size = shape.reduce((product, extent) => product * extent, 1)
      if (!existsSync(array)) await save(array, tensor(new Float32Array(size), { shape }))
      return `${input}=${array}`
    }),
  )
}

/** Whether the engine is killed by a signal on a file. Without inputs it is only loaded. */
function crashOf(runner, path, inputs) {
  const loaded = spawnSync(runner, ['-l', path], { timeout: TIMEOUT_MS, encoding: 'utf8' })
  if (loaded.signal) return 'crashes at load'
  if (loaded.status !== 0) return 'refused'
  if (!inputs) return 'loaded'
  const ran = spawnSync(runner, [path, ...inputs], { timeout: TIMEOUT_MS, encoding: 'utf8' })
  if (ran.signal) return 'crashes at run'
  return ran.status === 0 ? 'run' : 'refused'
}
