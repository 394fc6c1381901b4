/** Mutants of the C++ sources: which are left out, and that a seed always draws the same. */
import { describe, expect, it } from 'vitest'

interface File {
  path: string
  lines: readonly string[]
}

interface Mutant {
  file: string
  line: number
  original: string
  mutated: string
}

// The programs are plain JavaScript, which the type checker does not read.
const excluded: {
  excludedFile(path: string): string | undefined
  excludedLines(lines: readonly string[]): (string | undefined)[]
  excludedChange(original: string, mutated: string): string | undefined
} = await import(String(new URL('../programs/mutants/excluded.mjs', import.meta.url)))
const drawn: {
  draw(
    files: readonly File[],
    seed: number,
    mutantsOf: (path: string) => Promise<Map<number, string[]>>,
  ): AsyncGenerator<Mutant>
} = await import(String(new URL('../programs/mutants/drawn.mjs', import.meta.url)))

describe('files that are left out', () => {
  it.each([
    ['native/policy/stores.cc', 'policy'],
    ['native/reorder/thresholds.def', 'policy'],
    ['native/memory/sparse_buffer_windows.cc', 'another system'],
  ])('%s: %s', (path, rule) => expect(excluded.excludedFile(path)).toBe(rule))

  it('draws of the others', () =>
    expect(excluded.excludedFile('native/reorder/leaf/leaves.h')).toBeUndefined())
})

describe('lines that are left out', () => {
  it.each([
    [
      ['// Comment.', 'int a = 1;'],
      ['blank or comment', undefined],
    ],
    [
      ['#define A \\', '  1', 'int a = A;'],
      ['preprocessor', 'preprocessor', undefined],
    ],
    [
      ['  static_assert(a ==', '                1);', '  f();'],
      ['static_assert', 'static_assert', undefined],
    ],
    [
      ['  void fetch(int a) {', '    g(a);', '  }', '  f();'],
      ['prefetch', 'prefetch', 'prefetch', undefined],
    ],
    [
      ['  std::string reason() const;', '  int a() const;'],
      ['text', undefined],
    ],
    [
      ['std::string A::reason() const {', '  return b;', '}', 'int c;'],
      ['text', 'text', 'text', undefined],
    ],
    [
      ['  table.reserve(n);', '  table.push_back(n);'],
      ['capacity', undefined],
    ],
    [
      ['  }', '}  // namespace tilework'],
      [undefined, 'end'],
    ],
  ])('%j', (lines, rules) => expect(excluded.excludedLines(lines)).toEqual(rules))
})

describe('changes that are left out', () => {
  it.each([
    ['f(a);  // a + b', 'f(a);  // a - b', 'comment'],
    ['refuse("a digit " + std::to_string(a));', 'refuse("a digit " - std::to_string(a));', 'text'],
    ['return {"even", f};', 'return {"", f};', 'string'],
    ['const int64_t a = 0;', 'const int(64+1)_t a = 0;', 'name'],
    ['using V [[gnu::vector_size(16)]] = T;', 'using V [[gnu::vector_size(0)]] = T;', 'attribute'],
    ['if (a < 0) refuse("a is below 0");', 'if (a <= 0) refuse("a is below 0");', undefined],
    ['const int a = 0x10;', 'const int a = 0x1(0+1);', undefined],
    ['f(a);  // Comment.', 'f(a);  // Comment.\nbreak;', undefined],
  ])('%s', (original, mutated, rule) => expect(excluded.excludedChange(original, mutated)).toBe(rule))
})

describe('the draw', () => {
  const lines = Array.from({ length: 10 }, (_, index) => `  f(a + ${index});`)
  const files = ['short.cc', 'long.cc'].map((path, index) => ({ path, lines: lines.slice(0, 2 + 8 * index) }))
  const mutantsOf = async (path: string) => {
    const file = files.find((each) => each.path === path)!
    return new Map(file.lines.map((line, index) => [index, [line.replace('+', '-'), line.replace('+', '*')]]))
  }
  const all = async (seed: number) => {
    const mutants: Mutant[] = []
    for await (const mutant of drawn.draw(files, seed, mutantsOf)) mutants.push(mutant)
    return mutants
  }

  it('gives each mutant once', async () => {
    const mutants = await all(1)
    expect(mutants).toHaveLength(24)
    expect(new Set(mutants.map((mutant) => JSON.stringify(mutant))).size).toBe(24)
  })

  it('depends on the seed alone', async () => {
    expect(await all(7)).toEqual(await all(7))
    expect(await all(7)).not.toEqual(await all(8))
  })

  it('counts a file by its lines', async () => {
    const first = await Promise.all(
      Array.from({ length: 600 }, (_, seed) => drawn.draw(files, seed, mutantsOf).next()),
    )
    const long = first.filter(({ value }) => value.file === 'long.cc').length
    expect(long / first.length).toBeCloseTo(10 / 12, 1)
  })
})
