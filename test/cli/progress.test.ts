/** Progress: nothing for quick work or a pipe, a bar for work that lasts. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { formatBytes } from '../../lib/cli/text/byte_count.js'
import { formatSeconds, startProgress } from '../../lib/cli/text/progress.js'
import { createTerminal } from '../../lib/cli/text/terminal.js'

let written = ''
/** What the bar needs of a terminal: it moves the cursor by escape sequences. */
const stream = {
  isTTY: true,
  columns: 100,
  write: (text: string) => {
    written += text
    return true
  },
}

beforeEach(() => {
  written = ''
  vi.useFakeTimers()
})
afterEach(() => void vi.useRealTimers())

describe('progress', () => {
  it('shows nothing for short work', () => {
    const progress = startProgress('Writing', createTerminal({ stdout: stream, stderr: stream }))
    progress.update({ bytesDone: 1, bytesTotal: 2 })
    vi.advanceTimersByTime(400)
    progress.update({ bytesDone: 2, bytesTotal: 2 })
    progress.stop()
    expect(written).toBe('')
  })

  it('shows a bar for long work, and removes it', () => {
    const progress = startProgress('Writing', createTerminal({ stdout: stream, stderr: stream }))
    vi.advanceTimersByTime(600)
    progress.update({
      bytesDone: 512 * 1024,
      bytesTotal: 2 * 1024 * 1024,
      bytesPerSecond: 1024 ** 2,
      secondsLeft: 1.5,
    })
    vi.advanceTimersByTime(200)
    expect(written).toContain('Writing')
    expect(written).toContain('25% 512 KiB of 2 MiB, 1 MiB/s, 2 s left')
    progress.stop()
    progress.stop()
    const end = written.length
    vi.advanceTimersByTime(1000)
    expect(written.length).toBe(end)
  })

  const shown = (columns: number, what?: string): string => {
    const narrow = { ...stream, columns }
    const progress = startProgress('Converting', createTerminal({ stdout: narrow, stderr: narrow }))
    vi.advanceTimersByTime(600)
    const rates = { bytesPerSecond: 1024 ** 2, secondsLeft: 1.5 }
    progress.update({ bytesDone: 512 * 1024, bytesTotal: 2 * 1024 * 1024, ...rates }, what)
    return written.replace('\r', '').replace('\u001b[K', '')
  }

  it.each([
    [100, 'Converting ████████░░░░░░░░░░░░░░░░░░░░░░ 25% 3 of 9 files, 512 KiB of 2 MiB, 1 MiB/s, 2 s left'],
    [80, 'Converting ███░░░░░░░ 25% 3 of 9 files, 512 KiB of 2 MiB, 1 MiB/s, 2 s left'],
    [66, 'Converting 25% 3 of 9 files, 512 KiB of 2 MiB, 1 MiB/s, 2 s left'],
    [60, 'Converting ███░░░░░░░ 25% 3 of 9 files, 2 s left'],
    [40, 'Converting 25% 3 of 9 files, 2 s left'],
    [28, '25% 3 of 9 files, 2 s left'],
  ])('fits %i columns and one less', (columns, line) => {
    expect(shown(columns, '3 of 9 files')).toBe(line)
    expect([...line].length).toBeLessThan(columns)
    written = ''
    expect([...shown([...line].length + 1, '3 of 9 files')].length).toBe([...line].length)
    written = ''
    expect([...shown([...line].length, '3 of 9 files')].length).toBeLessThan([...line].length)
  })

  it('keeps the percentage on the narrowest terminal', () => {
    expect(shown(10, '3 of 9 files')).toBe('25%')
  })

  it('stands below messages, and moves the cursor by no other sequence', () => {
    const progress = startProgress('Writing', createTerminal({ stdout: stream, stderr: stream }))
    vi.advanceTimersByTime(600)
    progress.update({ bytesDone: 1, bytesTotal: 2, bytesPerSecond: 1, secondsLeft: 1 })
    const line = 'Writing ███████████████░░░░░░░░░░░░░░░ 50% 1 B of 2 B, 1 B/s, 1 s left'
    progress.aside(() => stream.write('a.npy failed\n'))
    progress.stop()
    progress.aside(() => stream.write('done\n'))
    expect(written).toBe(`\r${line}\u001b[K\r\u001b[Ka.npy failed\n${line}\r\u001b[Kdone\n`)
  })

  it('is drawn ten times a second', () => {
    const progress = startProgress('Writing', createTerminal({ stdout: stream, stderr: stream }))
    for (let at = 0; at < 2000; at += 10) {
      progress.update({ bytesDone: at, bytesTotal: 2000 })
      vi.advanceTimersByTime(10)
    }
    expect(written.match(/\r/g)?.length).toBe(15)
  })

  it('shows nothing when stderr is piped', () => {
    const piped = { write: stream.write }
    const progress = startProgress('Writing', createTerminal({ stdout: piped, stderr: piped }))
    vi.advanceTimersByTime(600)
    progress.update({ bytesDone: 1, bytesTotal: 2 })
    progress.stop()
    expect(written).toBe('')
  })
})

describe('byte counts', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1024, '1 KiB'],
    [1536, '1.50 KiB'],
    [16 * 1024 ** 2, '16 MiB'],
    [1000 * 1024, '0.98 MiB'],
    [5 * 1024 ** 4, '5 TiB'],
  ])('%d is %s', (count, text) => expect(formatBytes(count)).toBe(text))
})

describe('times', () => {
  it.each([
    [0, '0 s'],
    [0.2, '1 s'],
    [59.5, '1 min 0 s'],
    [3599, '59 min 59 s'],
    [7500, '2 h 5 min'],
  ])('%d is %s', (seconds, text) => expect(formatSeconds(seconds)).toBe(text))
})
