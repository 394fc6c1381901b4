/** Times candidates in interleaved rounds, so that a slow moment of the machine affects all, and keeps each one's best. */
import { cpus, release, type as systemType } from 'node:os'
import { collectGarbage } from '../scripts/collect_garbage.mjs'

/**
 * Collects garbage before each run: freeing half a gigabyte of one candidate takes about 40 ms, which would count for the
 * next one.
 *
 * @param {Record<string, () => unknown>} candidates
 * @param {number} rounds
 * @param {{ warm?: boolean, repeatSeconds?: number }} [options] - warm: an untimed call before each timed one, because a collection evicts the caches;
 *   repeatSeconds: calls of a round are repeated for that time, each timed
 * @returns {Promise<Record<string, number>>} minimum seconds of each candidate
 */
export async function bestOfRounds(candidates, rounds, { warm = false, repeatSeconds = 0 } = {}) {
  const best = Object.fromEntries(Object.keys(candidates).map((name) => [name, Number.POSITIVE_INFINITY]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of Object.entries(candidates)) {
      collectGarbage()
      if (warm) await run()
      let elapsed = 0
      do {
        const started = process.hrtime.bigint()
        const pending = run()
        // Waiting for a result that is there takes as long as a small call.
        if (pending instanceof Promise) await pending
        const seconds = Number(process.hrtime.bigint() - started) / 1e9
        best[name] = Math.min(best[name], seconds)
        elapsed += seconds
      } while (elapsed < repeatSeconds)
    }
  }
  return best
}

/** CPU seconds of a call: the mean of calls that take `least` seconds together, after one that is not counted. */
export async function cpuSeconds(run, least) {
  await run()
  const started = process.cpuUsage()
  for (let calls = 1; ; calls++) {
    await run()
    const { user, system } = process.cpuUsage(started)
    const spent = (user + system) / 1e6
    if (spent >= least) return spent / calls
  }
}

/** The machine, which a reader needs to interpret results. */
export function machine() {
  const [first] = cpus()
  return {
    cpu: first?.model ?? 'unknown',
    cores: cpus().length,
    system: `${systemType()} ${release()}`,
    node: process.version,
  }
}

/** Prints rows as JSON, or as a table with the machine below it. */
export function report(rows, { json }) {
  if (json) {
    console.log(JSON.stringify({ machine: machine(), rows }, null, 2))
    return
  }
  console.table(rows)
  printMachine(machine())
}

/** One line below a table. */
export function printMachine({ cpu, cores, system, node, onednn, onnxruntime }) {
  const peers = `${onednn ? `, oneDNN ${onednn}` : ''}${onnxruntime ? `, onnxruntime ${onnxruntime}` : ''}`
  console.log(`${cores} × ${cpu}, ${system}, Node ${node}${peers}`)
}
