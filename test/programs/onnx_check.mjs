/**
 * Compares a strict check of ONNX models with onnx.checker: `node test/programs/onnx_check.mjs [--schemas SHARE] [--mutants N]
 * [--seed N] [--onnxruntime] [--list] [--models FOLDER] [MODEL…]`. Requires `dist` and Python 3 with onnx; without it the program
 * prints the reason and exits with 0.
 *
 * The models are made from the schemas of all operators, and by changes of real models; `interop/onnx_check.py` writes them. A
 * difference must be of a kind that `interop/onnx_check_kinds.mjs` explains, and docs/testing.md lists. `--list` prints models and
 * messages of differences that are of no kind. `--onnxruntime` also compares with its loading, which takes five times as long.
 * `--models` compares models that the script wrote before.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { check } from '../../dist/index.js'
import { makeWorkFolder } from '../../scripts/work_folder.mjs'
import { kindOf } from './interop/onnx_check_kinds.mjs'
import { missingPython, runPython } from './interop/python.mjs'

const SCRIPT = fileURLToPath(new URL('interop/onnx_check.py', import.meta.url))
const { values: options, positionals: paths } = parseArgs({
  options: {
    schemas: { type: 'string', default: '0.02' },
    mutants: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    onnxruntime: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    models: { type: 'string' },
  },
  allowPositionals: true,
})

async function run() {
  const folder = options.models ?? writeModels()
  const bytes = readFileSync(join(folder, 'models.bin'))
  const rows = JSON.parse(readFileSync(join(folder, 'models.json'), 'utf8'))
  const counts = { models: 0, accepted: 0, refused: 0 }
  const kinds = new Map()
  for (const [name, start, length, checker, runtime] of rows) {
    if (length === 0) continue
    counts.models++
    const refusal = await refusalOf(bytes.subarray(start, start + length))
    const isRefused = checker !== null || runtime !== null
    if (isRefused === (refusal !== undefined)) counts[isRefused ? 'refused' : 'accepted']++
    else note(kinds, name, { checker, runtime, refusal })
  }
  summarize(counts, kinds)
}

function writeModels() {
  const folder = makeWorkFolder('onnx-check')
  const { schemas, mutants, seed, onnxruntime } = options
  const flags = onnxruntime ? ['--onnxruntime'] : []
  runPython([SCRIPT, folder, schemas, mutants, seed, ...flags, ...paths])
  return folder
}

/** The first error, or undefined. */
async function refusalOf(model) {
  const findings = await check(model, { level: 'strict' })
  return findings.find(({ severity }) => severity === 'error')?.message
}

function note(kinds, name, difference) {
  const kind = kindOf(name, difference)
  const key = kind?.what ?? 'none'
  kinds.set(key, [...(kinds.get(key) ?? []), [name, difference, kind?.isCounted ?? true]])
}

/**
 * Differences that have a known kind, by who refuses alone: more would hide new faults, because kinds are patterns of messages.
 * Seed 1 has 4 and 25 of 6,608. Kinds of which `isCounted` is false are left out.
 */
const MOST_ALONE = { tilework: 1 / 1000, checker: 1 / 100 }

function summarize({ models, accepted, refused }, kinds) {
  for (const [kind, found] of [...kinds].sort((one, other) => other[1].length - one[1].length))
    if (kind !== 'none' || !options.list)
      console.log(`  ${found.length}: ${kind === 'none' ? 'of no known kind' : kind}`)
  const unknown = kinds.get('none') ?? []
  for (const [name, { checker, runtime, refusal }] of options.list ? unknown : unknown.slice(0, 20))
    console.log(
      `${name}: checker: ${shortened(checker)}, onnxruntime: ${shortened(runtime)}, tilework: ${refusal ?? 'accepted'}`,
    )
  console.log(
    `strict checks of ${models} ONNX models, seed ${options.seed}: ${accepted} accepted and ${refused} refused by both, ${models - accepted - refused} different, ${unknown.length} of them of no known kind`,
  )
  const alone = { tilework: 0, checker: 0 }
  // What onnxruntime alone refuses depends on its kernels.
  for (const [, { checker, refusal }, isCounted] of [...kinds.values()].flat())
    if (isCounted && (checker !== null || refusal !== undefined))
      alone[refusal === undefined ? 'checker' : 'tilework']++
  const exceeded = Object.keys(alone).filter((by) => alone[by] > Math.ceil(models * MOST_ALONE[by]))
  for (const by of exceeded)
    console.log(`${by} refuses ${alone[by]} of ${models} models alone, which is too many`)
  if (unknown.length > 0 || exceeded.length > 0) process.exitCode = 1
}

/** The part of a message that says what is wrong. */
const shortened = (message) => (message ?? 'accepted').replace(/\s+/g, ' ').slice(0, 160)

const missing = missingPython('import onnx')
if (missing === undefined) await run()
else console.log(`strict checks of ONNX models: skipped, ${missing}`)
