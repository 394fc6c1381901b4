/**
 * Runs models of every kind through every pass and every edit, and the results in onnxruntime:
 * `npm run test:models -- --python PYTHON [--model PART…] [--action NAME…]`, and `npm run test:real` with models inside packages of
 * PyPI, which are compressed to every target, too. PYTHON has onnx and onnxruntime; without them the program prints the reason and
 * exits with 0. Models of onnxscript and skl2onnx are left out where these are missing, packages where the registry lacks them.
 *
 * The outputs have to be those of the original model, bit for bit with optimizations of onnxruntime off (or, "close", with its packing of
 * constant weights off as well), and onnx.checker has to pass where it passes for the original. A compressed model has to run and be as near as its bits explain; one that is not is "far",
 * and listed with its error: weights of some models do not bear few bits. Prints a table of the actions, what was refused and what
 * failed.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { open, save } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { ACTIONS as EDITS } from './models/actions.mjs'
import { COMPRESSIONS } from './models/compressions.mjs'

const SCRIPT = fileURLToPath(new URL('interop/run_models.py', import.meta.url))
/** Models with more external data take only actions that are marked so. */
const LARGE_BYTES = 100_000_000

/** Where onnxruntime has no kernel for float16 it computes runs of nodes in float32, and rounds where a run ends. */
const HALF_TOLERANCE = 2 ** -10

/** Refusals of onnx.checker that its own shape inference makes of models which compute what they did. */
const EXPLAINED = [
  // STFT: an axis too few, so that the product behind it has other dimensions. Seen only where shapes before it are declared.
  {
    models: /^onnx-asr-.*\.(gigaam|kaldi|nemo|whisper)/,
    refusal: /op_type:MatMul.*Incompatible dimensions for matrix multiplication/,
  },
  // The original declares an output with a rank too few, which only the inference of later versions of Reshape finds.
  { models: /^ddddocr-1\.6\.1\.common$/, refusal: /op_type:Reshape.*differ in rank: \(3\) vs \(2\)/ },
]

const options = new Command('npm run test:models --')
  .option('--python <path>', 'Python with onnx and onnxruntime', 'python3')
  .option(
    '--packages',
    'models inside packages of PyPI, which TILEWORK_PACKAGES keeps, instead of built ones',
  )
  .option('--model <part...>', 'only models whose names have one of these parts')
  .option('--action <name...>', `only some of: ${Object.keys({ ...EDITS, ...COMPRESSIONS }).join(', ')}`)
  .parse()
  .opts()
// Built models are compressed by test:compress.
const ACTIONS = options.packages ? actionsOfPackages() : EDITS

const probe = spawnSync(options.python, ['-c', 'import onnx, onnxruntime'], { encoding: 'utf8' })
if (probe.error || probe.status !== 0) {
  console.log(`models: skipped, ${probe.error?.code ?? probe.stderr.trim().split('\n').at(-1)}`)
  process.exit(0)
}
await run()

async function run() {
  const folder = makeWorkFolder('models')
  const source = options.packages ? 'packages' : 'built'
  const python = spawn(options.python, [SCRIPT, folder, source], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value)
  const ask = (request) => {
    python.stdin.write(`${JSON.stringify(request)}\n`)
    return next()
  }
  const models = await madeModels(next)
  const rows = []
  for (const model of models.filter(({ name }) => isChosen(options.model, name, true)))
    for (const [action, how] of Object.entries(ACTIONS)) {
      if (!isChosen(options.action, action) || (model.isLarge && !how.takesLarge)) continue
      const result = await tryAction(model, { folder: join(folder, `${model.name}.${action}`), how, ask })
      rows.push({ action, ...result })
      if (result.reason !== undefined)
        console.log(`${result.outcome}: ${model.name}, ${action}: ${result.reason}`)
    }
  python.stdin.end()
  show(rows)
}

/** Real models have nodes that fit no other batch, and outputs that are nearly 0, which built ones have not. */
function actionsOfPackages() {
  const setBatch = { ...EDITS['set batch'], refusals: ['ERR_GRAPH', 'ERR_UNSUPPORTED'] }
  const edits = Object.entries({ ...EDITS, 'set batch': setBatch }).map(([name, how]) => [
    name,
    { ...how, readsSigmoids: how.tolerance > 0 },
  ])
  return { ...Object.fromEntries(edits), ...COMPRESSIONS }
}

async function madeModels(next) {
  const models = []
  for (let line = await next(); line.done === undefined; line = await next()) {
    if (line.left_out !== undefined) console.log(`left out: ${line.left_out}`)
    else models.push({ ...line, isLarge: isLarge(line) })
  }
  console.log(`${models.length} models`)
  return models
}

function isLarge({ path }) {
  const data = path.replace(/\.onnx$/, '.data')
  const bytesOf = (each) => statSync(each, { throwIfNoEntry: false })?.size ?? 0
  return bytesOf(path) + bytesOf(data) > LARGE_BYTES
}

function isChosen(chosen, name, isPart = false) {
  return chosen === undefined || chosen.some((each) => (isPart ? name.includes(each) : name === each))
}

/** @returns {Promise<{outcome: string, reason?: string}>} */
async function tryAction(model, { folder, how, ask }) {
  mkdirSync(folder)
  const path = join(folder, 'changed.onnx')
  const file = await open(model.path)
  try {
    const plan = await how.run({ file, onnx: file.onnx, model, ask })
    if (plan === undefined) return { outcome: 'not for it' }
    await save(path, plan.onnx ?? file.onnx, plan.saving)
    if (plan.isPass && isUnchanged(model, path)) return { outcome: 'unchanged' }
    const { readsSigmoids = false } = how
    const request = { name: model.name, path, ...sameNames(model), readsSigmoids, ...plan.request }
    if (plan.text !== undefined) {
      request.text = join(folder, 'text')
      writeFileSync(request.text, plan.text)
    }
    return outcomeOf(await ask(request), model.name, how)
  } catch (error) {
    if (error.name !== 'TileworkError') throw new Error(folder, { cause: error })
    const isRefused = how.refusals?.includes(error.code) === true
    return { outcome: isRefused ? 'refused' : 'failed', reason: `${error.code}: ${error.message}` }
  } finally {
    file.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Inputs and outputs that keep their names. */
function sameNames({ inputs, outputs }) {
  const same = (values) => Object.fromEntries(Object.keys(values).map((name) => [name, name]))
  return { inputs: same(inputs), outputs: same(outputs) }
}

function isUnchanged(model, path) {
  return !model.isLarge && readFileSync(model.path).equals(readFileSync(path))
}

function outcomeOf({ failure, refusal, missing, difference, packed }, name, { tolerance = 0, isLossy }) {
  if (failure !== undefined) return { outcome: 'failed', reason: failure }
  if (refusal !== undefined && !isExplained(refusal, name)) return { outcome: 'failed', reason: refusal }
  if (missing !== undefined) return { outcome: 'no kernel', reason: missing }
  if (difference === undefined) return { outcome: 'equal' }
  const reason = `the largest difference is ${difference}`
  const most = name === 'half' ? HALF_TOLERANCE : tolerance
  if (packed) return { outcome: 'close', reason: `${reason}, none where weights are not packed` }
  if (difference <= most) return isLossy ? { outcome: 'close' } : { outcome: 'close', reason }
  return { outcome: isLossy ? 'far' : 'failed', reason }
}

function isExplained(refusal, name) {
  return EXPLAINED.some((each) => each.models.test(name) && each.refusal.test(refusal))
}

function show(rows) {
  const outcomes = ['equal', 'close', 'far', 'unchanged', 'refused', 'not for it', 'no kernel', 'failed']
  const count = (list, outcome) => list.filter((each) => each.outcome === outcome).length
  const line = (action, list) => ({
    action,
    ...Object.fromEntries(outcomes.map((each) => [each, count(list, each)])),
  })
  const byAction = Object.keys(ACTIONS).map((action) =>
    line(
      action,
      rows.filter((each) => each.action === action),
    ),
  )
  const used = byAction.filter((row) => outcomes.some((outcome) => row[outcome] > 0))
  console.table([...used, line('all', rows)])
  if (rows.some(({ outcome }) => outcome === 'failed')) process.exitCode = 1
}
