/** Casts of numpy and of ml_dtypes, which brings numpy the types it has not, over memory that is used again. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { castBytes, castName } from './cast_cases.mjs'

const SCRIPT = fileURLToPath(new URL('cast_in_python.py', import.meta.url))

/** Adds to each result that they have, on one thread, `python`: their rate in GB/s and their own copy's. */
export function measureInPython(results, python) {
  const cases = results.filter(({ from, to, threads }) => from === to && threads === 1)
  const input = JSON.stringify(
    cases.map((each) => ({ name: castName(each), bytes: castBytes(each), ...each })),
  )
  const { status, stdout, stderr, error } = spawnSync(python, [SCRIPT], { input, encoding: 'utf8' })
  if (status !== 0) {
    const reason = error?.code ?? stderr.trim().split('\n').at(-1)
    console.error(`numpy and ml_dtypes are left out: ${python} ended with ${reason}.`)
    return results
  }
  const rates = JSON.parse(stdout)
  return results.map((each) =>
    each.threads === 1 && rates[castName(each)] ? { ...each, python: rates[castName(each)] } : each,
  )
}
