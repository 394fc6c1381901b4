/** Commands that take long say which step they are in, how many there are, and how long it should take. */
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it, vi } from 'vitest'
import { temporaryFolder } from '../cli/temporary_folder.js'

interface StepList {
  next(): void
  done(): void
}

interface Progress {
  read(text: string): void
}

// The scripts are plain JavaScript, which the type checker does not read.
const steps: {
  Steps: new (
    command: string,
    steps: readonly { name: string; usualSeconds: number }[],
    timesFile: string,
  ) => StepList
} = await import(String(new URL('../../scripts/steps.mjs', import.meta.url)))
const progress: {
  BuildProgress: new (what: string, now: () => number, print: (line: string) => void) => Progress
} = await import(String(new URL('../../scripts/build_progress.mjs', import.meta.url)))

const inFolder = temporaryFolder()

/** The lines that a command with two steps prints. */
function linesOf(timesFile: string, first = 90): string[] {
  const lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((line) => lines.push(line))
  try {
    const list = new steps.Steps(
      'build',
      [
        { name: 'addon', usualSeconds: first },
        { name: 'library', usualSeconds: 0.5 },
      ],
      timesFile,
    )
    list.next()
    list.next()
    list.done()
  } finally {
    log.mockRestore()
  }
  return lines
}

describe('steps', () => {
  it('have a line before with n of m and an estimate, and one after', () => {
    const [title, ...lines] = linesOf(inFolder('new.json'), 200)
    expect(title).toBe('build: 2 steps, about 3 min')
    expect(lines).toEqual([
      '[1 of 2] addon: about 3 min',
      expect.stringMatching(/^\[1 of 2\] addon: done in 0\.\d s$/),
      '[2 of 2] library: under a second',
      expect.stringMatching(/^\[2 of 2\] library: done in 0\.\d s$/),
    ])
  })

  it('take the estimate from the last run, and do without a damaged file', () => {
    const path = inFolder('times.json')
    linesOf(path)
    expect(linesOf(path).slice(0, 2)).toEqual([
      'build: 2 steps, under a second',
      '[1 of 2] addon: under a second',
    ])
    expect(Object.keys(JSON.parse(readFileSync(path, 'utf8')))).toEqual(['build: addon', 'build: library'])
    for (const damaged of ['{', 'null', '{"build: addon":"long"}']) {
      writeFileSync(path, damaged)
      expect(linesOf(path)[1]).toBe('[1 of 2] addon: about 90 s')
    }
  })
})

describe('the progress of a native build', () => {
  function linesFor(...output: readonly [seconds: number, text: string][]): string[] {
    let seconds = 0
    const lines: string[] = []
    const reader = new progress.BuildProgress(
      'Building',
      () => 1000 * seconds,
      (line) => lines.push(line),
    )
    for (const [at, text] of output) {
      seconds = at
      reader.read(text)
    }
    return lines
  }

  it('reads the counts of ninja and make, and estimates the rest', () => {
    const ninja = (n: number): string => `[${n}/120] Building CXX object native/cast.cc.o\n`
    expect(
      linesFor([1, ninja(2)], [7, ninja(3)], [13, ninja(20) + ninja(39)], [14, ninja(50)], [40, ninja(120)]),
    ).toEqual([
      '  Building: 3 of 120 files, 7 s',
      '  Building: 39 of 120 files, 13 s, about 27 s left',
      '  Building: 120 of 120 files, 40 s',
    ])
    expect(linesFor([20, '[ 25%] Building CXX object\n'])).toEqual([
      '  Building: 25 of 100 %, 20 s, about 60 s left',
    ])
  })

  it('prints nothing for a build that ends at once, nor for other output', () => {
    expect(linesFor([0.2, '[1/1] Linking\n'], [30, 'no counts [here]\n'])).toEqual([])
  })
})

it('the commands print their steps', () => {
  const read = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
  const { scripts } = JSON.parse(read('package.json'))
  expect(scripts).toMatchObject({
    prepare: 'node scripts/build_all.mjs',
    prebuild: 'node scripts/prebuild.mjs',
    demo: 'node scripts/demo.mjs',
    test: 'node test/programs/all.mjs',
  })
  for (const path of [
    'scripts/build_all.mjs',
    'scripts/prebuild.mjs',
    'scripts/demo.mjs',
    'test/programs/all.mjs',
  ]) {
    expect(read(path), path).toContain('new Steps(')
  }
})
