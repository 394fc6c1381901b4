/**
 * Checks that saves are atomic: `npm run test:kill`. Kills processes by SIGKILL at random moments while they save over an
 * existing file, save a model of several files over another (shards, external data), and convert many files. `--rounds` is
 * the number of kills over all of them; `--only` names those that share it.
 *
 * After each kill, every target must be the old or the new file, byte for byte, and every model the old or the new one.
 * The next undisturbed run must produce the new bytes and leave no other file in the folder.
 */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Command } from 'commander'
import { open, quantize, save, tensor } from '../../dist/index.js'
import { writeBtf } from '../../scripts/btf_file.mjs'
import { generator, seededBytes } from '../../scripts/seeded.mjs'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { writeCheckpoint } from './checkpoint_file.mjs'
import { DisturbedChild } from './disturb.mjs'

const execute = promisify(execFile)
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const MIB = 2 ** 20
const LAYOUT = 'b_fs_yx_fsv16'
const OLD_LAYOUT = 'byxf'
const CHANNELS = 31
/** Undisturbed runs that measure the duration. */
const MEASURED_RUNS = 3
/** Moments are chosen up to slightly after the measured end, so that the very end is hit too. */
const BEYOND_END = 1.05
/** Every other moment is in the last part of a save, in which the new file is renamed. */
const LAST_PART = 0.25
/** Maximum consecutive kills before an undisturbed run. */
const MAX_KILLS_IN_A_ROW = 3
const MANY_LARGE = 4
/** Minimum fraction of kills that must hit running work; fewer would prove little. */
const MIN_INTERRUPTED_SHARE = 0.4

const SAVES = [
  { name: 'a small file, unchanged', mib: 0.02, whole: true },
  { name: 'a small file, reordered', mib: 0.02, layout: LAYOUT },
  { name: '20 MiB, unchanged', mib: 20, whole: true },
  { name: '20 MiB, reordered', mib: 20, layout: LAYOUT },
  { name: '20 MiB, reordered over its own input', mib: 20, layout: LAYOUT, isInPlace: true },
  { name: '20 MiB in 2,000 tensors, written again', mib: 20, tensors: 2000 },
  { name: '20 MiB of a PyTorch checkpoint, as safetensors', mib: 20, tensors: 40, from: 'checkpoint' },
  { name: '20 MiB of numbers of GGUF blocks, as safetensors', mib: 20, tensors: 40, from: 'blocks' },
  { name: '20 MiB of an OpenVINO IR, as npz', mib: 20, tensors: 40, from: 'ir' },
  { name: '20 MiB of GGUF, renamed over its own input', mib: 20, tensors: 40, from: 'gguf', isInPlace: true },
  { name: '100 MiB, unchanged', mib: 100, whole: true },
  { name: '100 MiB, reordered', mib: 100, layout: LAYOUT },
]

/** What is saved, and as what. */
const SOURCES = {
  btf: { input: 'input.btf', target: 'target.btf', write: writeBtf },
  checkpoint: { input: 'input.pt', target: 'target.safetensors', write: writeMatrices },
  blocks: { input: 'input.gguf', target: 'target.safetensors', write: writeBlocks, job: { numbers: true } },
  ir: { input: 'input.xml', target: 'target.npz', write: writeIr },
  gguf: { input: 'input.gguf', target: 'target.gguf', write: writeGguf, job: { title: 'new', whole: true } },
}

/** How models of several files are saved, with `length` bytes of tensors in each file. */
const SHARDS = {
  target: 'model.safetensors.index.json',
  options: (length) => ({ maxShardBytes: length }),
}
const EXTERNAL = {
  target: 'model.onnx',
  options: (length) => ({ external: { threshold: 0, shardBytes: length } }),
}
/** Renaming many small files takes long; a kill during that time could mix two models. */
const MODELS = [
  { name: '16 MiB in 4 files, unchanged', mib: 16, shards: 4, whole: true },
  { name: '16 MiB in 4 files, written again', mib: 16, shards: 4 },
  { name: '1 MiB in 60 files, unchanged', mib: 1, shards: 60, whole: true },
  { name: '1 MiB in 60 files, written again', mib: 1, shards: 60 },
]

/** The kinds of work, each with its share of the kills. */
const PARTS = {
  save: { share: 4, kill: killEach(SAVES, killSaves) },
  shards: { share: 2, kill: killEach(MODELS, (model, count) => killModels(model, SHARDS, count)) },
  external: { share: 2, kill: killEach(MODELS, (model, count) => killModels(model, EXTERNAL, count)) },
  many: { share: 2, kill: killManyFiles },
}

const { rounds, seed, only, files } = new Command('npm run test:kill --')
  .description('Kills saves and conversions at random moments, and checks that no file is half written.')
  .option('--rounds <n>', 'number of kills', Number, 200)
  .option('--seed <n>', 'seed of the moments', Number, 1)
  .option('--only <part...>', Object.keys(PARTS).join(', '), Object.keys(PARTS))
  .option('--files <n>', 'small files of a run over many files', Number, 200)
  .parse()
  .opts()

const random = generator(seed)
const folder = makeWorkFolder('kill')
let failures = 0
const shares = only.reduce((sum, part) => sum + PARTS[part].share, 0)
let kills = 0
for (const [index, part] of only.entries()) {
  const isLast = index === only.length - 1
  const count = isLast ? rounds - kills : Math.floor((rounds * PARTS[part].share) / shares)
  await PARTS[part].kill(count)
  kills += count
}
console.log(`kill: ${rounds} kills, ${failures} failed (seed ${seed})`)
process.exitCode = failures === 0 ? 0 : 1

/** Printed at once, so that a run that is ended early has said it. */
function fail(what) {
  failures++
  console.log(`FAILED  ${what}`)
}

/** Divides a number of kills evenly over a list of cases. */
function killEach(cases, kill) {
  return async (count) => {
    for (const [index, each] of cases.entries()) await kill(each, Math.floor((count + index) / cases.length))
  }
}

async function killSaves(save, count) {
  if (count === 0) return
  const setup = await prepareSave(save)
  const undisturbed = new DisturbedChild()
  const times = await measureSave(setup)
  const tally = { interrupted: 0, old: 0, new: 0, stray: 0 }
  for (let round = 0; round < count; round++) {
    copyFileSync(setup.oldFile, setup.target)
    const afterMs = momentOfSave(lately(times), round % 2 === 1)
    const child = new DisturbedChild()
    const { isInterrupted, error, milliseconds } = await child.run(setup.job, () => child.kill(), afterMs)
    await child.close()
    if (!isInterrupted) times.push(milliseconds)
    const where = `${save.name}, killed after ${afterMs.toFixed(2)} ms`
    if (error) fail(`${where}: ${error.message}`)
    const state = setup.states.get(digest(setup.target))
    if (state === undefined) fail(`${where}: the target is neither old nor new`)
    else tally[state]++
    tally.interrupted += isInterrupted ? 1 : 0
    tally.stray += strayFiles(setup.folder, setup.expected).length
    await saveUndisturbed(setup, undisturbed, where)
  }
  await undisturbed.close()
  rmSync(setup.folder, { recursive: true })
  reportTally(`save of ${save.name} (${lately(times).toFixed(0)} ms)`, count, tally)
}

/**
 * Duration by the last runs that no kill ended. On a busy machine it changes during a test, and kills by the first
 * measurement would all come too late or too early.
 */
function lately(times) {
  return median(times.slice(-MEASURED_RUNS))
}

function momentOfSave(milliseconds, isLate) {
  const begin = isLate ? 1 - LAST_PART : 0
  return (begin + random() * (BEYOND_END - begin)) * milliseconds
}

/** Old and new files differ in every block, so that a mixture equals neither. */
async function prepareSave(save) {
  const from = SOURCES[save.from ?? 'btf']
  const setup = { folder: join(folder, 'save'), oldFile: join(folder, `old-${from.target}`) }
  mkdirSync(setup.folder)
  setup.target = join(setup.folder, from.target)
  const input = save.isInPlace ? setup.target : join(folder, from.input)
  // The old file need not be one of the target's format: it only differs in every block.
  const old = seededBytes(Math.round(save.mib * MIB), 2)
  if (save.isInPlace) await writeTensors(setup.oldFile, save, 1)
  else {
    await writeTensors(input, save, 1)
    writeFileSync(setup.oldFile, old)
  }
  setup.expected = [basename(setup.target)]
  const { whole, layout } = save
  setup.job = { kind: 'save', input, target: setup.target, whole, layout, ...from.job }
  return setup
}

async function writeTensors(path, { mib, tensors = 1, from = 'btf' }, seed) {
  const plane = Math.max(1, Math.round((mib * MIB) / tensors / CHANNELS / 4))
  const bytes = seededBytes(4 * CHANNELS * plane, seed)
  const each = { dtype: 'float32', shape: [1, CHANNELS, plane, 1], bytes }
  await SOURCES[from].write(path, Array(tensors).fill(each))
}

function writeMatrices(path, tensors) {
  const matrix = ({ shape: [, rows, columns], bytes }) => ({ rows, columns, bytes })
  writeCheckpoint(path, tensors.map(matrix))
}

/** The same bytes as small integers, so that blocks of them are finite. */
async function writeBlocks(path, tensors) {
  const made = tensors.map(({ bytes }, at) => {
    const rows = Math.floor(bytes.length / 4 / 32)
    const numbers = new Float32Array(new Int8Array(bytes.subarray(0, rows * 32)))
    return quantize(tensor(numbers, { shape: [rows, 32], name: `t${at}` }), 'q8_0')
  })
  await save(path, made)
}

async function writeGguf(path, tensors) {
  const made = tensors.map(({ bytes }, at) => {
    return tensor(new Float32Array(new Int8Array(bytes.subarray(0, bytes.length / 4))), { name: `t${at}` })
  })
  const metadata = { 'general.name': 'old' }
  await save(path, made, { gguf: { metadata } })
}

/** An IR of constants alone. */
function writeIr(path, tensors) {
  const layers = tensors.map(({ shape, bytes }, at) => {
    const data = `element_type="f32" shape="${shape}" offset="${at * bytes.length}" size="${bytes.length}"`
    return `<layer id="${at}" name="t${at}" type="Const" version="opset1"><data ${data} /></layer>`
  })
  const xml = `<?xml version="1.0"?>\n<net name="m" version="11"><layers>${layers.join('')}</layers><edges></edges></net>\n`
  writeFileSync(path, xml)
  writeFileSync(path.replace(/xml$/, 'bin'), Buffer.concat(tensors.map(({ bytes }) => bytes)))
}

/** Each run has a process of its own, like the killed ones: a second save in one process is faster. */
async function measureSave(setup) {
  const times = []
  for (let run = 0; run < MEASURED_RUNS; run++) {
    copyFileSync(setup.oldFile, setup.target)
    const child = new DisturbedChild()
    const { milliseconds, error } = await child.run(setup.job)
    await child.close()
    if (error) throw new Error(`An undisturbed save failed: ${error.message}`)
    times.push(milliseconds)
  }
  setup.newDigest = digest(setup.target)
  setup.states = new Map([
    [digest(setup.oldFile), 'old'],
    [setup.newDigest, 'new'],
  ])
  return times
}

async function saveUndisturbed(setup, child, where) {
  copyFileSync(setup.oldFile, setup.target)
  const { error } = await child.run(setup.job)
  if (error) fail(`${where}: the next save failed: ${error.message}`)
  else if (digest(setup.target) !== setup.newDigest) fail(`${where}: the next save wrote other bytes`)
  const stray = strayFiles(setup.folder, setup.expected)
  if (stray.length > 0) fail(`${where}: still there after the next save: ${stray.join(', ')}`)
  for (const name of stray) rmSync(join(setup.folder, name))
}

async function killModels(model, kind, count) {
  if (count === 0) return
  const setup = await prepareModel(model, kind)
  const undisturbed = new DisturbedChild()
  const times = await measureModel(setup)
  const tally = { interrupted: 0, old: 0, new: 0, stray: 0 }
  for (let done = 0; done < count; ) {
    startFromOldModel(setup)
    const kills = Math.min(count - done, 1 + Math.floor(random() * MAX_KILLS_IN_A_ROW))
    let where = ''
    for (let kill = 0; kill < kills; kill++) {
      const afterMs = momentOfSave(lately(times), (done + kill) % 2 === 1)
      where = `${model.name}, kill ${done + kill + 1} after ${afterMs.toFixed(2)} ms`
      const child = new DisturbedChild()
      const { isInterrupted, error, milliseconds } = await child.run(setup.job, () => child.kill(), afterMs)
      await child.close()
      if (!isInterrupted) times.push(milliseconds)
      if (error) fail(`${where}: ${error.message}`)
      const state = await stateOfModel(setup)
      if (state in tally) tally[state]++
      else fail(`${where}: the model is neither old nor new: ${state}`)
      tally.interrupted += isInterrupted ? 1 : 0
      tally.stray += strayFiles(setup.target, await filesOfModel(setup)).length
    }
    done += kills
    await saveModelUndisturbed(setup, undisturbed, where)
  }
  await undisturbed.close()
  for (const path of [setup.input, setup.old, setup.target]) rmSync(path, { recursive: true })
  reportTally(`${kind.target} of ${model.name} (${lately(times).toFixed(0)} ms)`, count, tally)
}

async function prepareModel(model, kind) {
  const [input, old, target] = ['model-in', 'model-old', 'model'].map((name) => join(folder, name))
  await writeModel(input, model, kind, 1)
  await writeModel(old, model, kind, 2)
  const states = new Map([
    [await digestOfModel(join(input, kind.target)), 'new'],
    [await digestOfModel(join(old, kind.target)), 'old'],
  ])
  const main = join(target, kind.target)
  const job = { kind: 'save', input: join(input, kind.target), target: main, whole: model.whole }
  // A model over another that has data files of the same names is refused, unless it is given new ones.
  if (!model.whole || kind === EXTERNAL) job.saveOptions = kind.options(shardBytes(model))
  return { input, old, target, main, states, job }
}

/** Old and new models have the same names of files and different bytes. */
async function writeModel(path, model, kind, seed) {
  mkdirSync(path)
  const length = shardBytes(model)
  const tensors = Array.from({ length: model.shards }, (_, at) => {
    const bytes = seededBytes(length, seed * model.shards + at)
    return tensor(new Uint8Array(bytes), { dtype: 'uint8', shape: [length], name: `t${at}` })
  })
  await save(join(path, kind.target), tensors, kind.options(length))
}

function shardBytes({ mib, shards }) {
  return Math.floor((mib * MIB) / shards)
}

function startFromOldModel({ old, target }) {
  rmSync(target, { recursive: true, force: true })
  cpSync(old, target, { recursive: true })
}

async function measureModel(setup) {
  const times = []
  for (let run = 0; run < MEASURED_RUNS; run++) {
    startFromOldModel(setup)
    const child = new DisturbedChild()
    const { milliseconds, error } = await child.run(setup.job)
    await child.close()
    if (error) throw new Error(`An undisturbed save of a model failed: ${error.message}`)
    times.push(milliseconds)
  }
  return times
}

/** Saves over the files that the kills left. */
async function saveModelUndisturbed(setup, child, where) {
  const { error } = await child.run(setup.job)
  const state = await stateOfModel(setup)
  if (error) fail(`${where}: the next save failed: ${error.message}`)
  else if (state !== 'new') fail(`${where}: the next save left another model: ${state}`)
  const stray = strayFiles(setup.target, await filesOfModel(setup))
  if (stray.length > 0) fail(`${where}: still there after the next save: ${stray.join(', ')}`)
}

/** @returns {Promise<string>} `old`, `new`, or a description of the fault */
async function stateOfModel({ main, states }) {
  try {
    return states.get(await digestOfModel(main)) ?? 'a mixture'
  } catch (error) {
    return error.message
  }
}

async function digestOfModel(path) {
  const hash = createHash('sha256')
  const file = await open(path, { level: 'strict', mode: 'read' })
  try {
    for (const each of file.tensors) {
      if (!each.hasData) throw new Error(`tensor ${each.name} has no data`)
      hash.update(each.name).update(await each.bytes())
    }
  } finally {
    file.close()
  }
  return hash.digest('hex')
}

/** The main file and the files that it names. */
async function filesOfModel({ main }) {
  const file = await open(main, { mode: 'read' })
  try {
    return [basename(main), ...file.parts.map(({ name }) => name)]
  } finally {
    file.close()
  }
}

async function killManyFiles(count) {
  if (count === 0) return
  const many = await prepareMany()
  await execute(process.execPath, [COMMAND, ...many.args(many.undisturbed, LAYOUT)])
  const newDigests = digests(many.undisturbed)
  await execute(process.execPath, [COMMAND, ...many.args(many.old, OLD_LAYOUT)])
  const old = digests(many.old)
  const times = await measureMany(many)
  const tally = { interrupted: 0, old: 0, new: 0, absent: 0, stray: 0 }
  for (let done = 0, begun = 0; done < count; begun++) {
    rmSync(many.out, { recursive: true, force: true })
    // Every other run starts with the outputs of an earlier run with other options.
    if (begun % 2 === 1) await execute(process.execPath, [COMMAND, ...many.args(many.out, OLD_LAYOUT)])
    const kills = Math.min(count - done, 1 + Math.floor(random() * MAX_KILLS_IN_A_ROW))
    let where = ''
    for (let kill = 0; kill < kills; kill++) {
      const afterMs = random() * lately(times) * BEYOND_END
      where = `many files, run ${begun + 1}, kill ${kill + 1} after ${afterMs.toFixed(0)} ms`
      const { isInterrupted, milliseconds } = await killMany(many, afterMs)
      // After a kill, a run finds files that are done and is shorter.
      if (!isInterrupted && kill === 0) times.push(milliseconds)
      tally.interrupted += isInterrupted ? 1 : 0
      tally.stray += strayFiles(many.out, many.expected).length
      countStates(many, { old: begun % 2 === 1 ? old : new Map(), newDigests, tally, where })
    }
    done += kills
    await finishMany(many, newDigests, where)
  }
  reportTally(`run over ${many.names.length} files (${lately(times).toFixed(0)} ms)`, count, tally)
}

async function prepareMany() {
  const input = join(folder, 'in')
  mkdirSync(input)
  for (let i = 0; i < files + MANY_LARGE; i++) {
    const mib = i < files ? 0.01 : 5
    await writeTensors(join(input, `${String(i).padStart(4, '0')}.btf`), { mib }, i + 1)
  }
  const names = readdirSync(input)
  const args = (out, layout) => [
    'convert',
    ...names.map((name) => join(input, name)),
    '--out-dir',
    out,
    '--layout',
    layout,
    '--jobs',
    '2',
    '--keep-going',
    '--json',
  ]
  const [out, old, undisturbed] = ['out', 'out-old', 'out-undisturbed'].map((name) => join(folder, name))
  return { names, expected: [...names, '.tilework-manifest.jsonl'], args, out, old, undisturbed }
}

async function measureMany(many) {
  const times = []
  for (let run = 0; run < MEASURED_RUNS; run++) {
    rmSync(many.out, { recursive: true, force: true })
    const child = new DisturbedChild()
    times.push((await child.run({ kind: 'command', args: many.args(many.out, LAYOUT) })).milliseconds)
    await child.close()
  }
  return times
}

async function killMany(many, afterMs) {
  const child = new DisturbedChild()
  const job = { kind: 'command', args: many.args(many.out, LAYOUT) }
  const outcome = await child.run(job, () => child.kill(), afterMs)
  await child.close()
  return outcome
}

function countStates(many, { old, newDigests, tally, where }) {
  for (const name of many.names) {
    const path = join(many.out, name)
    if (!existsSync(path)) {
      tally.absent++
      // An existing output must not disappear.
      if (old.has(name)) fail(`${where}: ${name} was there and is gone`)
      continue
    }
    const now = digest(path)
    if (now === newDigests.get(name)) tally.new++
    else if (now === old.get(name)) tally.old++
    else fail(`${where}: ${name} is neither old nor new`)
  }
}

async function finishMany(many, newDigests, where) {
  try {
    await execute(process.execPath, [COMMAND, ...many.args(many.out, LAYOUT)])
  } catch (error) {
    fail(`${where}: the run after it failed: ${error.message}`)
    return
  }
  const after = digests(many.out)
  const wrong = many.names.filter((name) => after.get(name) !== newDigests.get(name))
  if (wrong.length > 0) fail(`${where}: the run after it left other bytes in ${wrong.join(', ')}`)
  const stray = strayFiles(many.out, many.expected)
  if (stray.length > 0) fail(`${where}: still there after the next run: ${stray.join(', ')}`)
}

function reportTally(name, count, tally) {
  const states = Object.entries(tally).filter(([state]) => state !== 'interrupted')
  const counts = states.map(([state, number]) => `${number} ${state}`).join(', ')
  console.log(`${name}: ${count} kills, ${tally.interrupted} of them before the end; found ${counts}`)
  if (tally.interrupted < count * MIN_INTERRUPTED_SHARE - 1) {
    fail(`${name}: only ${tally.interrupted} of ${count} kills came before the end`)
  }
}

function strayFiles(path, expected) {
  if (!existsSync(path)) return []
  return readdirSync(path).filter((name) => !expected.includes(name))
}

function digests(path) {
  return new Map(readdirSync(path).map((name) => [name, digest(join(path, name))]))
}

function digest(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

function median(numbers) {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]
}
