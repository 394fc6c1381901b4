/**
 * Truncates a file with many headers while it is opened: `open` must succeed, or throw a TileworkError that reports a
 * changed or truncated file.
 */
import { rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { writeManyScalars } from '../../../scripts/btf_file.mjs'
import { DisturbedChild } from '../disturb.mjs'
import { describeOutcome, restore } from './inputs.mjs'

const RECORDS = 200_000
/** Always ends the file before its last record. */
const FILE_BYTES = 8 + RECORDS * 32
const OPEN = { map: {}, 'map with guard': { guard: true }, read: { mode: 'read' } }

export async function testOpening({ folder, rounds, random, fail, note }) {
  const [kept, input] = ['kept.btf', 'input.btf'].map((name) => join(folder, name))
  writeManyScalars(kept, RECORDS)
  for (const [name, openOptions] of Object.entries(OPEN)) {
    let child = new DisturbedChild()
    restore(kept, input)
    const job = { kind: 'open', input, openOptions }
    const { milliseconds } = await child.run(job)
    const tally = {}
    for (let round = 0; round < rounds; round++) {
      restore(kept, input)
      const afterMs = random() * milliseconds
      const inject = () => truncateSync(input, Math.floor(random() * FILE_BYTES))
      const outcome = await child.run(job, inject, afterMs)
      const end = outcome.error?.code ?? outcome.signal ?? 'opened'
      tally[end] = (tally[end] ?? 0) + 1
      if (!['ERR_FILE_CHANGED', 'ERR_TRUNCATED', 'ERR_OFFSET_RANGE', 'opened'].includes(end)) {
        fail(`open, ${name}, truncated after ${afterMs.toFixed(1)} ms: ${describeOutcome(outcome)}`)
      }
      if (!child.isAlive) child = new DisturbedChild()
    }
    await child.close()
    const ends = Object.entries(tally).map(([end, count]) => `${count} ${end}`)
    note(`open, ${name}, ${RECORDS.toLocaleString('en')} tensors: ${rounds} truncations, ${ends.join(', ')}`)
  }
  for (const path of [kept, input]) rmSync(path)
}
