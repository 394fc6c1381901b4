/**
 * What a terminal shows of a run over many files, at three widths: the bytes that the bar and the messages write under a clock of the
 * test, drawn by tmux. A stream that is right byte by byte may still leave half a bar behind a wrapped line.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { startProgress } from '../../lib/cli/text/progress.js'
import { createTerminal } from '../../lib/cli/text/terminal.js'

const hasTmux = spawnSync('tmux', ['-V']).status === 0
const folder = mkdtempSync(join(tmpdir(), 'tilework-recordings-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const FAILURES = [
  'models/encoder-quantized.onnx: ERR_TRUNCATED: the file ends at byte 1024',
  'models/ä.npy: ERR_HEADER: wrong magic number',
]

/** The bytes of a run, up to a moment while the bar is shown, and up to its end. */
function record(columns: number): { during: string; after: string } {
  let written = ''
  const stream = {
    isTTY: true,
    columns,
    write: (text: string) => {
      written += text
      return true
    },
  }
  const progress = startProgress('Converting', createTerminal({ stdout: stream, stderr: stream }))
  const step = (done: number, failure?: string): void => {
    vi.advanceTimersByTime(600)
    const rates = { bytesPerSecond: 1024 ** 2, secondsLeft: 9 - done }
    progress.update({ bytesDone: done * 2 ** 20, bytesTotal: 9 * 2 ** 20, ...rates }, `${done} of 9 files`)
    if (failure !== undefined) progress.aside(() => stream.write(`${failure}\n`))
  }
  step(1)
  step(3, FAILURES[0])
  step(4)
  step(6, FAILURES[1])
  step(7)
  const during = written
  progress.stop()
  progress.aside(() => stream.write('7 of 9 files converted, 2 failed\n'))
  return { during, after: written }
}

/** The lines that a terminal of this width shows, up to the last one that is not empty. */
function screen(columns: number, bytes: string): string[] {
  const name = `tilework-${process.pid}-${columns}-${bytes.length}`
  const file = join(folder, name)
  writeFileSync(file, bytes)
  const tmux = (...args: string[]): string => {
    const { status, stdout, stderr } = spawnSync('tmux', ['-u', '-L', name, ...args], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`tmux ${args[0]}: ${stderr}`)
    return stdout
  }
  // The line feeds of a file are those of a program: the terminal adds the carriage return.
  const command = `cat '${file}'; tmux -L ${name} wait-for -S drawn; sleep 60`
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(columns), '-y', '12', command)
  try {
    tmux('wait-for', 'drawn')
    return tmux('capture-pane', '-p').trimEnd().split('\n')
  } finally {
    tmux('kill-server')
  }
}

describe.skipIf(!hasTmux)('a run over many files on a terminal', () => {
  it.each([
    [
      40,
      [
        'models/encoder-quantized.onnx: ERR_TRUNC',
        'ATED: the file ends at byte 1024',
        'models/ä.npy: ERR_HEADER: wrong magic nu',
        'mber',
        'Converting 77% 7 of 9 files, 2 s left',
      ],
    ],
    [
      80,
      [
        FAILURES[0]!,
        FAILURES[1]!,
        'Converting ████████░░ 77% 7 of 9 files, 7 MiB of 9 MiB, 1 MiB/s, 2 s left',
      ],
    ],
    [
      200,
      [
        FAILURES[0]!,
        FAILURES[1]!,
        'Converting ███████████████████████░░░░░░░ 77% 7 of 9 files, 7 MiB of 9 MiB, 1 MiB/s, 2 s left',
      ],
    ],
  ])('of %i columns has failures above the bar, and nothing of the bar behind', (columns, lines) => {
    const { during, after } = record(columns)
    expect(screen(columns, during)).toEqual(lines)
    expect(screen(columns, after)).toEqual([...lines.slice(0, -1), '7 of 9 files converted, 2 failed'])
  })
})
