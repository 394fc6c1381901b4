/** Models that a Python program of this folder builds, from ONNX to tmfile on the engine. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fail } from '../../../scripts/toolchain.mjs'
import { convertAndRun } from './to_tmfile.mjs'

/** Python with numpy, onnx and onnxruntime. */
const PYTHON = 'python3'

/** A direction for the models of one program. */
export function generated(name, program) {
  return { name, run: (context) => runAll(name, program, context) }
}

async function runAll(name, program, { folder, runner, only, python = PYTHON, verbose }) {
  const cases = join(folder, name)
  mkdirSync(cases)
  const { status, stdout, stderr } = spawnSync(python, [join(import.meta.dirname, program), cases], {
    encoding: 'utf8',
  })
  if (status !== 0)
    fail(
      `${program} needs numpy, onnx and onnxruntime; name a Python that has them with --python.\n${stderr}`,
    )
  if (verbose) console.log(stdout)
  const counts = { equal: 0, refused: 0 }
  const failures = []
  for (const caseName of readdirSync(cases)) {
    if (only !== undefined && caseName !== only) continue
    const { refused, problem, operators } = await convertAndRun(
      join(cases, caseName),
      join(cases, caseName, 'made'),
      runner,
    )
    if (verbose) console.log(`${caseName}: ${refused ?? problem ?? operators}`)
    if (refused) counts.refused += 1
    else if (problem) failures.push(`${caseName}: ${problem}`)
    else counts.equal += 1
  }
  return { counts, failures }
}
