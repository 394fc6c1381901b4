/** Reads outputs of `npm run bench` that were saved with --json. */
import { readFileSync } from 'node:fs'

/**
 * Results of saved runs; the last run of a case counts.
 *
 * @param {readonly string[]} files
 * @param {(result: object) => string} nameOf - name of the case of a result
 * @param {(earlier: object | undefined, later: object) => object} joined - the result of a case that runs again
 */
export function savedResults(files, nameOf, joined = (_, later) => later) {
  const runs = files.map((file) => JSON.parse(readFileSync(file, 'utf8')))
  const results = new Map()
  for (const result of runs.flatMap((each) => each.results)) {
    const key = `${nameOf(result)} ${result.threads}`
    results.set(key, joined(results.get(key), result))
  }
  return { machine: runs[0].machine, results: [...results.values()] }
}
