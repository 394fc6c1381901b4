/** Jobs: never more at a time than asked, nothing begun after a stop, nothing left running at the end. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { runJobs } from '../../../lib/pipeline/many/run_jobs.js'

const yieldOnce = (): Promise<void> => new Promise((resume) => setImmediate(resume))

describe('jobs', () => {
  it('take each item once and in order, at most the requested number at a time', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 5 }),
        async (yields, jobs) => {
          const begun: number[] = []
          let running = 0
          let most = 0
          await runJobs(yields.entries(), jobs, async ([index, count]) => {
            begun.push(index)
            most = Math.max(most, ++running)
            for (let i = 0; i < count; i++) await yieldOnce()
            running--
            return 'continue'
          })
          expect(begun).toEqual(yields.map((_, index) => index))
          expect(most).toBeLessThanOrEqual(jobs)
          expect(running).toBe(0)
        },
      ),
      { numRuns: 50 },
    ))

  it.each(['stop', 'throw'])('begin nothing after a %s, and wait for what is running', async (how) => {
    let begun = 0
    let ended = 0
    const all = runJobs(Array.from({ length: 100 }).keys(), 3, async (index) => {
      begun++
      await yieldOnce()
      if (index === 5 && how === 'throw') throw new Error('A test.')
      if (index !== 5) await yieldOnce()
      ended++
      return index === 5 ? 'stop' : 'continue'
    })
    if (how === 'throw') await expect(all).rejects.toThrow('A test.')
    else await all
    expect(begun).toBeLessThan(12)
    expect(ended).toBe(how === 'throw' ? begun - 1 : begun)
  })

  it('draw an endless list only as far as they come', async () => {
    let drawn = 0
    function* endless(): Generator<number> {
      for (;;) yield drawn++
    }
    await runJobs(endless(), 2, async (index) => (index === 10 ? 'stop' : 'continue'))
    expect(drawn).toBeLessThan(14)
  })
})
