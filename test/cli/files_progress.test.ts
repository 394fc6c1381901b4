/** Progress and sums over many files. */
import { describe, expect, it } from 'vitest'
import { FilesTally } from '../../lib/cli/files/files_tally.js'
import { InputError } from '../../lib/cli/files/open_input.js'
import { FilesProgress } from '../../lib/cli/text/files_progress.js'
import type { ProgressState } from '../../lib/cli/text/progress.js'
import { TileworkError } from '../../lib/index.js'

const pair = (input: string, byteLength: number) => ({ input, output: `out/${input}`, byteLength })

describe('progress over files', () => {
  it('counts the part that is done of files under way, whatever length their outputs have', () => {
    const told: (readonly [ProgressState, string | undefined])[] = []
    const bar = {
      update: (state: ProgressState, what?: string) => void told.push([state, what]),
      aside: () => undefined,
      stop: () => undefined,
    }
    const [one, other] = [pair('a', 100), pair('b', 300)]
    const progress = new FilesProgress(bar, [one, other])
    progress.begin(one)
    progress.begin(other)
    progress.advance(other, { bytesDone: 500, bytesTotal: 1000 })
    progress.end(one)
    progress.end(other)
    expect(told).toEqual([
      [{ bytesDone: 150, bytesTotal: 400 }, '0 of 2 files'],
      [{ bytesDone: 250, bytesTotal: 400 }, '1 of 2 files'],
      [{ bytesDone: 400, bytesTotal: 400 }, '2 of 2 files'],
    ])
  })
})

describe('sums over files', () => {
  it('groups failures by code, and keeps the highest exit code', () => {
    const tally = new FilesTally()
    const fail = (input: string, error: unknown): void =>
      tally.add({ status: 'failed', pair: pair(input, 1), error })
    fail('a', new InputError(new TileworkError('ERR_TRUNCATED', 'A test.'), 'a'))
    expect(tally.exitCode).toBe(2)
    fail('b', new TileworkError('ERR_IO', 'A test.'))
    fail('c', new TileworkError('ERR_IO', 'A test.'))
    fail('d', new TileworkError('ERR_LAYOUT_SHAPE', 'A test.'))
    tally.add({
      status: 'written',
      pair: pair('e', 1),
      written: { format: 'btf', byteLength: 7, undo: [], findings: ['one'] },
    })
    tally.add({ status: 'skipped', pair: pair('f', 1), written: { format: 'btf', byteLength: 9, undo: [] } })
    expect(tally.exitCode).toBe(74)
    expect(tally.failures[0]).toEqual({ code: 'ERR_IO', count: 2, first: 'b' })
    expect(tally.summary(false)).toEqual({
      ...{ written: 1, skipped: 1, failed: 4, bytes: 7, seconds: expect.any(Number) },
      byCode: { ERR_IO: 2, ERR_TRUNCATED: 1, ERR_LAYOUT_SHAPE: 1 },
    })
    expect(tally.withFindings).toBe(1)
  })
})
