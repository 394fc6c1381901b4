/**
 * Compresses built models in every way and runs the results in onnxruntime: `npm run test:compress -- --python PYTHON`. PYTHON
 * has onnx and onnxruntime; without them the program prints the reason and exits with 0.
 *
 * Prints, for each way, the number of models, the errors against float32 relative to the largest output, and every model that
 * was refused, with the reason. A result that onnxruntime does not load or run, or that is further from float32 than the bits
 * explain, is a failure. On processors whose products of uint8 and int8 saturate (x86-64 without VNNI), a result of int8 weights that
 * is too far counts as saturated instead, if the same with `reduceRange` is as near as it should be.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { check, open, save, TileworkError } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { TARGETS } from './models/targets.mjs'

const SCRIPT = fileURLToPath(new URL('interop/compress_models.py', import.meta.url))

const { python } = new Command('npm run test:compress --')
  .option('--python <path>', 'Python with onnx and onnxruntime', 'python3')
  .parse()
  .opts()

function runScript(step, folder) {
  const { status, stdout, stderr, error } = spawnSync(python, [SCRIPT, step, folder], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (error) return { missing: `${python} cannot be run (${error.code})` }
  if (status !== 0 && stderr.includes('ModuleNotFoundError'))
    return { missing: stderr.trim().split('\n').at(-1) }
  if (status !== 0) throw new Error(stderr)
  return { output: stdout }
}

/** @returns the reason of a refusal; undefined where the model was written */
async function compress(folder, name, target) {
  const path = join(folder, name)
  const file = await open(`${path}.onnx`)
  try {
    const ranges = JSON.parse(readFileSync(`${path}.json`, 'utf8'))
    await TARGETS[target].run(file.onnx, ranges)
    const result = `${path}.${target}.onnx`
    await save(result, file.onnx)
    const wrong = (await check(result)).filter(({ severity }) => severity === 'error')
    if (wrong.length > 0) throw new Error(`${name} as ${target}: ${wrong[0].message}`)
    return undefined
  } catch (error) {
    if (error instanceof TileworkError) return error.message
    throw error
  } finally {
    file.close()
  }
}

const folder = makeWorkFolder('compress')
const { missing, output } = runScript('make', folder)
if (missing) {
  console.log(`left out: ${missing}`)
  process.exit(0)
}
const { saturates } = JSON.parse(output)
const names = readdirSync(folder)
  .filter((name) => name.endsWith('.npz'))
  .map((name) => name.slice(0, -4))
const refusals = []
for (const name of names) {
  for (const target of Object.keys(TARGETS)) {
    const reason = await compress(folder, name, target)
    if (reason !== undefined) refusals.push({ name, target, reason })
  }
}
const results = JSON.parse(runScript('compare', folder).output)

function isRight({ target, failure, error }) {
  return failure === undefined && error <= TARGETS[target].most
}

/** Whether the processor, not the codes, explains that a result which runs is too far from float32. */
function isSaturated(result) {
  const { reduced } = TARGETS[result.target]
  if (!saturates || reduced === undefined || result.failure !== undefined || isRight(result)) return false
  return results.some((each) => each.name === result.name && each.target === reduced && isRight(each))
}

const isFailed = (result) => !isRight(result) && !isSaturated(result)
const rows = Object.keys(TARGETS).map((target) => {
  const own = results.filter((each) => each.target === target)
  const errors = own
    .flatMap(({ error }) => (Number.isFinite(error) ? [error] : []))
    .sort((one, other) => one - other)
  return {
    target,
    models: own.length,
    refused: refusals.filter((each) => each.target === target).length,
    saturated: own.filter(isSaturated).length,
    failed: own.filter(isFailed).length,
    'median error': errors[Math.floor(errors.length / 2)]?.toPrecision(2),
    'largest error': errors.at(-1)?.toPrecision(2),
  }
})
console.log(`${names.length} models, ${results.length} results, ${results.filter(isFailed).length} failed`)
console.table(rows)
for (const { name, target, reason } of refusals) console.log(`refused: ${name} as ${target}: ${reason}`)
for (const { name, target, error } of results.filter(isSaturated)) {
  console.log(`saturated: ${name} as ${target}: error ${error.toPrecision(3)}`)
}
const failures = results.filter(isFailed)
for (const { name, target, failure, error } of failures) {
  console.error(`failed: ${name} as ${target}: ${failure ?? `error ${error.toPrecision(3)}`}`)
}
if (failures.length > 0) process.exitCode = 1
