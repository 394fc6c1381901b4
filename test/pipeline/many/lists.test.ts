/** Lists of names, shards, and the order of a list. */

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { isWindows } from '../../../lib/bytes/windows_names.js'
import { TileworkError } from '../../../lib/errors.js'
import { settingsHash } from '../../../lib/pipeline/convert_many.js'
import { type InputFile, listInputs } from '../../../lib/pipeline/many/input_list.js'
import { matchFiles } from '../../../lib/pipeline/many/match_files.js'
import { pairOutputs, withExtension } from '../../../lib/pipeline/many/output_paths.js'
import { isPattern, matchPattern, splitPattern } from '../../../lib/pipeline/many/pattern.js'
import { splitRecords } from '../../../lib/pipeline/many/records.js'
import { checkShard, takeShard } from '../../../lib/pipeline/many/shard.js'

const FOLDER = mkdtempSync(join(tmpdir(), 'tilework-many-'))
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }))

async function* cut(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  let at = 0
  for (let round = 0; at < bytes.length; round++) {
    const size = sizes[round % sizes.length]!
    yield bytes.subarray(at, at + size)
    at += size
  }
}

async function records(
  bytes: Uint8Array,
  sizes: readonly number[],
  limit: number,
): Promise<(string | undefined)[]> {
  const found: (string | undefined)[] = []
  for await (const record of splitRecords(cut(bytes, sizes), 0x0a, limit))
    found.push(record.bytes?.toString('latin1'))
  return found
}

describe('records of a stream', () => {
  const bytes = fc.uint8Array({ max: 13, maxLength: 60 })
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 })

  it('are those of the whole, wherever the stream is cut', () =>
    fc.assert(
      fc.asyncProperty(bytes, sizes, async (whole, cuts) => {
        const expected = Buffer.from(whole).toString('latin1').split('\n')
        if (expected.at(-1) === '') expected.pop()
        expect(await records(whole, cuts, 1000)).toEqual(expected)
      }),
    ))

  it('above the limit are left out, and those after them are not', () =>
    fc.assert(
      fc.asyncProperty(bytes, sizes, fc.integer({ min: 0, max: 9 }), async (whole, cuts, limit) => {
        const expected = (await records(whole, [1000], 1000)).map((record) =>
          record!.length > limit ? undefined : record,
        )
        expect(await records(whole, cuts, limit)).toEqual(expected)
      }),
    ))
})

describe('patterns', () => {
  it.each(['a*', 'a?b', '[ab]', '{a,b}', '!(a)', 'x/+(a)'])('%s is one', (text) =>
    expect(isPattern(text)).toBe(true),
  )
  it.each(['a', 'a b', 'a(1)', 'a+b@c!', '~/a', ''])('%s is none', (text) =>
    expect(isPattern(text)).toBe(false),
  )

  it('a backslash escapes a wildcard, but on Windows separates folders', () =>
    expect(isPattern('\\*')).toBe(isWindows))

  it('a folder that cannot be read is an error, and one that is gone is none', async () => {
    expect((await matchPattern(join(FOLDER, 'gone/*.btf'), undefined)).files).toEqual([])
    const loop = join(FOLDER, 'loop')
    symlinkSync(loop, loop)
    await expect(matchPattern(join(loop, '*.btf'), undefined)).rejects.toMatchObject({ code: 'ERR_IO' })
  })

  it('are searched by matchFiles, sorted by code units', async () => {
    mkdirSync(join(FOLDER, 'sorted'))
    for (const name of ['b.btf', 'a.btf', 'C.btf', 'ä.btf', '.a.btf'])
      writeFileSync(join(FOLDER, 'sorted', name), '')
    const names = ['C.btf', 'a.btf', 'b.btf', 'ä.btf'].map((name) => join(FOLDER, 'sorted', name))
    expect(await matchFiles(join(FOLDER, 'sorted/*.btf'))).toEqual(names)
    expect(await matchFiles(names[1]!)).toEqual([names[1]])
    expect(await matchFiles(join(FOLDER, 'sorted/*.npy'))).toEqual([])
  })

  it('match names at every depth as a shell does', async () => {
    const folder = join(FOLDER, 'deep')
    const files = ['a/b/1.npy', 'a/b/2.npz', 'c/1.npy', 'c/.d/1.npy', '!1.npy']
    if (!isWindows) files.push('a/x*.npy')
    for (const file of files) {
      mkdirSync(dirname(join(folder, file)), { recursive: true })
      writeFileSync(join(folder, file), '')
    }
    const expected = {
      '{a/b,c}/*.npy': ['a/b/1.npy', 'c/1.npy'],
      '*/1.npy': ['c/1.npy'],
      '*/*/*.np[yz]': ['a/b/1.npy', 'a/b/2.npz'],
      '**/1.npy': ['a/b/1.npy', 'c/1.npy'],
      '**/.d/*': ['c/.d/1.npy'],
      ...(isWindows ? {} : { 'a/x\\**': ['a/x*.npy'] }),
      '!1.*': ['!1.npy'],
      'c/!(1.npy)': [],
    }
    for (const [pattern, found] of Object.entries(expected)) {
      expect(await matchFiles(`${folder}/${pattern}`), pattern).toEqual(
        found.map((name) => join(folder, name)),
      )
    }
  })

  it('without wildcards are looked for in their folder', () => {
    expect(splitPattern('C:/a/b.npy')).toEqual({ base: 'C:/a', tail: 'b.npy' })
    expect(splitPattern('b.npy')).toEqual({ base: '', tail: 'b.npy' })
  })

  it('that cannot be searched are errors of matchFiles', async () => {
    await expect(matchFiles('a\0b/*')).rejects.toThrow(TileworkError)
    const signal = AbortSignal.abort()
    await expect(matchFiles('*', { signal })).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    await expect(matchFiles(7 as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })

  it('links of folders to themselves end', async () => {
    mkdirSync(join(FOLDER, 'round'))
    writeFileSync(join(FOLDER, 'round/a.btf'), '')
    symlinkSync('.', join(FOLDER, 'round/again'))
    const inputs = await list([join(FOLDER, 'round/**/*.btf')])
    expect(inputs).toHaveLength(1)
  })
})

function list(inputs: readonly string[]): Promise<InputFile[]> {
  return listInputs({ inputs, outDir: join(FOLDER, 'out'), base: undefined, signal: undefined })
}

describe('the list of inputs', () => {
  it('does not depend on the order of its names', async () => {
    const names = ['b', 'a', 'ä', 'B', 'a/b', '10', '9'].map((name) => join(FOLDER, name))
    const paths = async (order: string[]): Promise<string[]> => (await list(order)).map(({ path }) => path)
    expect(await paths(names)).toEqual(await paths(names.toReversed()))
    expect(await paths(names)).toEqual(names.toSorted())
  })

  it('of a hundred thousand files that are not there is made all the same', async () => {
    const names = Array.from({ length: 100_000 }, (_, index) => join(FOLDER, 'none', `${index}.btf`))
    const inputs = await list(names)
    const pairs = pairOutputs(inputs, { outDir: join(FOLDER, 'out'), extension: '.npy' })
    expect(pairs).toHaveLength(100_000)
    expect(pairs[0]).toEqual({
      input: join(FOLDER, 'none/0.btf'),
      output: join(FOLDER, 'out/0.npy'),
      byteLength: 0,
    })
  })
})

describe('names of outputs', () => {
  it.each([
    ['a.btf', '.npy', 'a.npy'],
    ['a/b.c/d', '.npy', 'a/b.c/d.npy'],
    ['a.btf', undefined, 'a.btf'],
    ['.hidden', '.npy', '.hidden.npy'],
  ])('%s with %s is %s', (name, extension, expected) => expect(withExtension(name, extension)).toBe(expected))

  it('that a new extension makes equal are refused', () => {
    const file = (name: string) => ({ path: name, real: join(FOLDER, name), name, byteLength: 0 })
    expect(() => pairOutputs([file('a.btf'), file('a.bin')], { outDir: 'out', extension: '.npy' })).toThrow(
      `a.btf and a.bin would both be written to ${join('out', 'a.npy')}`,
    )
  })
})

describe('shards', () => {
  it('are together the list, each item once, and differ in size by one at most', () =>
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 60 }), (length, count) => {
        const items = Array.from({ length }, (_, index) => index)
        const shards = Array.from({ length: count }, (_, index) =>
          takeShard(items, { index: index + 1, count }),
        )
        expect(shards.flat().toSorted((one, other) => one - other)).toEqual(items)
        const sizes = shards.map((shard) => shard.length)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
      }),
    ))

  it.each([
    [0, 1],
    [2, 1],
    [1, 0],
    [-1, 2],
    [1.5, 2],
    [1, 9_999_999],
  ])('%d of %d is refused', (index, count) =>
    expect(() => checkShard({ index, count })).toThrow('shard must have 1 <= index <= count <= 1000000'),
  )
})

describe('the hash of settings', () => {
  it('takes order of keys and absent values as nothing, and all else as another', () => {
    const one = settingsHash({ a: 1, b: [1, 2], c: undefined }, '1')
    expect(settingsHash({ b: [1, 2], a: 1 }, '1')).toBe(one)
    for (const other of [
      { a: 1 },
      { a: 1, b: [2, 1] },
      { a: '1', b: [1, 2] },
      { a: 1, b: [1, 2], c: null },
    ]) {
      expect(settingsHash(other, '1')).not.toBe(one)
    }
    expect(settingsHash({ b: [1, 2], a: 1 }, '2')).not.toBe(one)
  })
})
