/** The memory of plans is freed early enough, and never while it is in use. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseLayout } from '../../lib/layout/parse_layout.js'
import type { NativePlanDescription } from '../../lib/native/types.js'
import { ADDON, runScript } from './run_script.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-held-plans-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A plan whose offset tables take 60 KiB, independent of the tensor size. */
function scattered(shape: readonly number[]): NativePlanDescription {
  const side = (layout: string, lower: readonly number[]) =>
    parseLayout(layout).storage(shape, { dtype: 'float32', lower }).side
  return {
    elementBits: 32,
    shape,
    from: side('b_fs_yx_fsv24', [0, 5, 0, 0]),
    to: side('b_fs_yx_fsv7', [0, 1, 0, 0]),
  }
}

const HEAD = `const small = ${JSON.stringify(scattered([2, 700, 7, 5]))}
  const large = ${JSON.stringify(scattered([2, 4000, 7, 50]))}
  const counted = (length) => {
    const bytes = new Uint8Array(length)
    for (let i = 0; i < length; i++) bytes[i] = i * 7 + (i >> 8)
    return bytes
  }
  const same = (a, b) => Buffer.compare(a, b) === 0
  const makeMany = (count) => { for (let i = 0; i < count; i++) addon.planReorder(small) }
  const MIB = 2 ** 20
  `

/** A worker that exits with many plans, or creates plans until it is terminated. */
const IN_WORKER = `const { parentPort, workerData } = require('node:worker_threads')
  const addon = require(${JSON.stringify(ADDON)})
  const kept = Array.from({ length: 1000 }, () => addon.planReorder(workerData.small))
  parentPort.postMessage(kept.length)
  while (!workerData.ends) addon.planReorder(workerData.small)`

function printed(script: string, flags: string[] = []): unknown {
  const { status, stdout, stderr } = runScript(folder, HEAD + script, flags)
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return JSON.parse(stdout)
}

describe('plans', () => {
  test('take bounded memory in a loop that never yields to the event loop', () => {
    // Without freeing, the plans take 600 MiB; otherwise most of them wait for the next garbage collection.
    const grown = printed(`makeMany(100)
      const before = process.memoryUsage.rss()
      makeMany(10_000)
      console.log((process.memoryUsage.rss() - before) / MIB)`)
    expect(grown).toBeLessThan(350)
  })

  test('are freed when the next plan is created or the event loop runs', () => {
    const counts = printed(
      `const held = () => addon.heldPlanBytes() / one.footprint
      const one = addon.planReorder(small)
      // A separate stack frame, so that no register keeps the list alive.
      const whileAllAreHeld = () => {
        const all = Array.from({ length: 3000 }, () => addon.planReorder(small))
        return held() - (all.length + 1)
      }
      const counts = [whileAllAreHeld()]
      gc()
      makeMany(1)
      counts.push(held())
      const look = () => { counts.push(held()); console.log(JSON.stringify(counts)) }
      setImmediate(() => { gc(); setImmediate(look) })`,
      ['--expose-gc'],
    ) as number[]
    expect(counts[0]).toBe(0)
    // The plan still in use, the last one created, and a margin for what a collection misses.
    expect(counts[1]).toBeLessThan(10)
    expect(counts[2]).toBeLessThan(10)
  })

  test('stay valid while they are referenced and while runs use them', () => {
    const result = printed(
      `const kept = addon.planReorder(small)
      const source = counted(kept.sourceBytes), expected = new Uint8Array(kept.destinationBytes)
      kept.runSync(source, expected)
      const whole = counted(addon.planReorder(large).sourceBytes)
      const wanted = new Uint8Array(addon.planReorder(large).destinationBytes)
      addon.planReorder(large).runSync(whole, wanted)
      const target = new Uint8Array(wanted.length)
      const run = addon.planReorder(large).run(whole, target, 0, target.length)
      for (let i = 0; i < 5; i++) { gc(); makeMany(10) }
      const again = new Uint8Array(expected.length)
      kept.runSync(source, again)
      run.then(() => console.log(JSON.stringify([same(expected, again), same(wanted, target)])))`,
      ['--expose-gc'],
    )
    expect(result).toEqual([true, true])
  })

  test('of a worker are freed when it ends', () => {
    const result = printed(
      `const { Worker } = require('node:worker_threads')
      const ended = (ends) => new Promise((resume) => {
        const worker = new Worker(${JSON.stringify(IN_WORKER)}, { eval: true, workerData: { small, ends } })
        worker.once('message', () => ends || worker.terminate())
        worker.once('exit', resume)
      })
      makeMany(1)
      const before = addon.heldPlanBytes()
      Promise.all([ended(true), ended(false)]).then(([code]) => {
        console.log(JSON.stringify([code, addon.heldPlanBytes() === before]))
      })`,
    )
    expect(result).toEqual([0, true])
  })
})
