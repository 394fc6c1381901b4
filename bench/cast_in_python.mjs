/** Times casts of numpy, and of ml_dtypes for types that numpy lacks, into reused memory. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { castBytes, castName } from './cast_cases.mjs'

const SCRIPT = fileURLToPath(new URL('cast_in_python.py', import.meta.url))

/** Adds `python` to each single-threaded result that they support: the rates of the cast and of their copy in GB/s. */
export function measureInPython(results, python) {
  const cases = results.filter(({ from, to, threads }) => from === to && threads === 1)
  const input = JSON.stringify(
    cases.map((each) => ({ name: castName(each), bytes: castBytes(each), ...each })),
  )
  const { status, signal, stdout, stderr, error } = spawnSync(python, [SCRIPT], {
    input,
    encoding: 'utf8',
  })
  if (status !== 0) {
    const reason = error?.code ?? signal ?? stderr.trim().split('\n').at(-1)
    console.error(`numpy and ml_dtypes are skipped: ${python} ended with ${reason}.`)
    return results
  }
  const rates = JSON.parse(stdout)
  return results.map((each) =>
    each.threads === 1 && rates[castName(each)] ? { ...each, python: rates[castName(each)] } : each,
  )
}
