/** Counts and progress of a run over many files. */
import { expect, it } from 'vitest'
import { TileworkError } from '../../../lib/index.js'
import { Tally } from '../../../lib/pipeline/many/tally.js'

const pair = (input: string, byteLength: number) => ({ input, output: `out/${input}`, byteLength })

it('counts the fraction done of files in progress, whatever length their outputs have', () => {
  const [one, other] = [pair('a', 100), pair('b', 300)]
  const tally = new Tally([one, other])
  tally.start(one)
  tally.start(other)
  tally.advance(other, { bytesDone: 500, bytesTotal: 1000 })
  expect(tally.progress()).toMatchObject({ files: 2, written: 0, bytesDone: 150, bytesTotal: 400 })
  tally.written(one, 7)
  expect(tally.progress()).toMatchObject({ written: 1, byteLength: 7, bytesDone: 250, bytesTotal: 400 })
  tally.skipped(other)
  expect(tally.progress()).toMatchObject({ written: 1, skipped: 1, bytesDone: 400, bytesTotal: 400 })
  expect(tally.done).toBe(2)
})

it('groups failures by code, the most frequent first, each with its first input', () => {
  const pairs = ['a', 'b', 'c', 'd', 'e'].map((input) => pair(input, 1))
  const tally = new Tally(pairs)
  const errors = [
    new TileworkError('ERR_TRUNCATED', 'A test.'),
    new TileworkError('ERR_IO', 'A test.'),
    new TileworkError('ERR_IO', 'A test.'),
    new Error('A test.'),
  ]
  for (const [index, error] of errors.entries()) tally.failed(pairs[index]!, error)
  expect(tally.summary()).toEqual({
    ...{ files: 5, written: 0, skipped: 0, failed: 4, byteLength: 0 },
    failures: [
      { code: 'ERR_IO', count: 2, first: 'b' },
      { code: 'ERR_TRUNCATED', count: 1, first: 'a' },
      { code: 'ERR_INTERNAL', count: 1, first: 'd' },
    ],
  })
})
