/** `tilework convert IN… --out-dir DIR`: which files, where to, what is skipped, what is reported. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isWindows, withSlashes } from '../../lib/bytes/windows_names.js'
import { save, serialize, tensor } from '../../lib/index.js'
import { type CliSetting, runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const MANIFEST = '.tilework-manifest.jsonl'

interface Line {
  readonly input: string
  readonly output: string
  readonly status: 'written' | 'skipped' | 'failed'
  readonly format?: string
  readonly byteLength?: number
  readonly findings?: readonly object[]
  readonly undo?: { readonly args: string[] }[]
  readonly error?: { readonly code: string; readonly message: string }
}

interface Summary {
  readonly written: number
  readonly skipped: number
  readonly failed: number
  readonly byCode: Record<string, number>
  readonly bytes: number
  readonly seconds: number
  readonly cancelled?: true
}

interface ManyResult {
  readonly code: number
  readonly lines: Line[]
  readonly summary: Summary
  readonly stderr: string
}

async function convertMany(args: readonly string[], setting: CliSetting = {}): Promise<ManyResult> {
  const { code, stdout, stderr } = await runCli(['convert', ...args, '--json'], setting)
  const objects = stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line & { summary?: Summary })
  const { summary } = objects.pop() ?? {}
  if (!summary) throw new Error(`no summary, exit code ${code}: ${stderr}${stdout}`)
  return { code, lines: objects, summary, stderr }
}

let folders = 0
/** A fresh folder with these BTF files, each with other numbers. */
async function makeFiles(names: readonly string[]): Promise<string> {
  const folder = inFolder(`case${folders++}`)
  for (const [index, name] of names.entries()) await writeTensor(join(folder, name), index)
  return folder
}

async function writeTensor(path: string, seed: number): Promise<void> {
  mkdirSync(dirname(path), { recursive: true })
  const values = Float32Array.from({ length: 2 * 19 * 5 }, (_, index) => index + 1000 * seed)
  writeFileSync(path, await serialize([tensor(values, { shape: [2, 19, 5, 1] })]))
}

/** Gives a file a time that is long ago, so that its time is proof. */
function age(path: string, seconds = 3600): void {
  const then = Date.now() / 1000 - seconds
  utimesSync(path, then, then)
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => withSlashes(join(entry.parentPath, entry.name).slice(folder.length + 1)))
    .sort()
}

const statuses = ({ lines }: ManyResult): string[] => lines.map(({ status }) => status)

describe('inputs', () => {
  it('patterns keep the path below their part without wildcards', async () => {
    const folder = await makeFiles([
      'in/a/x.btf',
      'in/b/x.btf',
      'in/b/deep/y z.btf',
      'in/b/.hidden.btf',
      'in/ä.btf',
    ])
    const out = join(folder, 'out')
    const { code, lines, summary } = await convertMany([join(folder, 'in/**/*.btf'), '--out-dir', out])
    expect(code).toBe(0)
    expect(filesBelow(out)).toEqual([MANIFEST, 'a/x.btf', 'b/deep/y z.btf', 'b/x.btf', 'ä.btf'])
    expect(lines.map(({ input }) => input)).toEqual(
      ['a/x.btf', 'b/deep/y z.btf', 'b/x.btf', 'ä.btf'].map((name) => join(folder, 'in', name)),
    )
    expect(lines[0]).toMatchObject({
      status: 'written',
      format: 'btf',
      byteLength: 824,
      findings: [],
      undo: [],
    })
    expect(summary).toMatchObject({ written: 4, skipped: 0, failed: 0, byCode: {}, bytes: 4 * 824 })
    for (const { input, output } of lines) expect(readFileSync(output)).toEqual(readFileSync(input))
  })

  it('a line of JSON equals the report of a single conversion', async () => {
    const folder = await makeFiles(['x.btf'])
    const [input, alone] = [join(folder, 'x.btf'), join(folder, 'alone.btf')]
    const { lines } = await convertMany([input, '--out-dir', join(folder, 'out'), '--jobs', '1'])
    const report = await runJson<Line>(['convert', input, alone])
    expect({ ...lines[0], output: alone }).toEqual(report)
  })

  it.skipIf(isWindows)('an existing path is not a pattern; a backslash escapes', async () => {
    const folder = await makeFiles(['a[1].btf', 'a1.btf', '{b,c}.btf', 'b.btf'])
    const out = join(folder, 'out')
    const names = [join(folder, 'a[1].btf'), join(folder, '\\{b,c\\}.b*')]
    const { lines } = await convertMany([...names, '--out-dir', out])
    expect(lines.map(({ input }) => input)).toEqual([join(folder, 'a[1].btf'), join(folder, '{b,c}.btf')])
  })

  it('braces may contain slashes', async () => {
    const folder = await makeFiles(['a/x.btf', 'b/x.btf', 'c/x.btf'])
    const out = join(folder, 'out')
    await convertMany([join(folder, '{a,b/.}/*.btf'), '--out-dir', out])
    expect(filesBelow(out)).toEqual([MANIFEST, 'a/x.btf'])
    await convertMany([join(folder, '{a,b}/x.btf'), '--out-dir', out])
    expect(filesBelow(out)).toEqual([MANIFEST, 'a/x.btf', 'b/x.btf'])
  })

  it('reads a list from stdin, one path per line, in chunks of any size', async () => {
    const folder = await makeFiles(['a b.btf', 'ü.btf', 'c.btf'])
    const list = Buffer.from(`${folder}/ü.btf\n\n${folder}/a b.btf\n${folder}/c.btf`)
    const { lines } = await convertMany(['-', '--out-dir', join(folder, 'out')], {
      stdin: async function* () {
        for (const byte of list) yield Uint8Array.of(byte)
      },
    })
    expect(lines.map(({ output }) => output)).toEqual(
      ['a b.btf', 'c.btf', 'ü.btf'].map((name) => join(folder, 'out', name)),
    )
  })

  it.skipIf(isWindows)('reads NUL-terminated paths with line breaks, beside arguments', async () => {
    const folder = await makeFiles(['a\nb.btf', 'c.btf'])
    const { lines } = await convertMany(
      [join(folder, 'c.btf'), '--stdin', '-0', '--out-dir', join(folder, 'out')],
      {
        stdin: async function* () {
          yield `${folder}/a\nb.btf\0`
        },
      },
    )
    expect(lines.map(({ input }) => input)).toEqual([join(folder, 'a\nb.btf'), join(folder, 'c.btf')])
  })

  it.each([
    ['NUL bytes in lines', Buffer.from('a.btf\0b.btf\0'), 'ERR_ARGUMENT', '--null'],
    ['bytes that are not text', Buffer.from([0x61, 0xff, 0x0a]), 'ERR_ARGUMENT', 'UTF-8'],
    ['a file of something else', Buffer.alloc(100_000, 0x61), 'ERR_LIMIT', '32768'],
  ])('refuses %s on stdin', async (_what, bytes, error, part) => {
    const { code, stderr } = await runCli(['convert', '-', '--out-dir', inFolder('never')], {
      stdin: async function* () {
        yield bytes
      },
    })
    expect(code).toBe(64)
    expect(stderr).toContain(error)
    expect(stderr).toContain(part)
    expect(existsSync(inFolder('never'))).toBe(false)
  })

  it('an empty list succeeds', async () => {
    const { code, summary } = await convertMany(['-', '--out-dir', inFolder('empty')], {
      stdin: async function* () {},
    })
    expect({ code, written: summary.written }).toEqual({ code: 0, written: 0 })
  })

  it('takes each real file once, whatever its names', async () => {
    const folder = await makeFiles(['a.btf', 'sub/b.btf'])
    symlinkSync('a.btf', join(folder, 'link.btf'))
    symlinkSync('sub', join(folder, 'other'))
    const names = ['a.btf', './a.btf', 'sub/../a.btf', 'link.btf', 'other/b.btf', 'sub/b.btf'].map(
      (name) => `${folder}/${name}`,
    )
    const { lines } = await convertMany([...names, '--out-dir', join(folder, 'out')])
    expect(lines.map(({ output }) => output)).toEqual(
      ['a.btf', 'b.btf'].map((name) => join(folder, 'out', name)),
    )
  })

  it('patterns omit the outputs of an earlier run', async () => {
    const folder = await makeFiles(['a.btf', 'b/c.btf'])
    const args = [join(folder, '**/*.btf'), '--out-dir', join(folder, 'out')]
    await convertMany(args)
    expect((await convertMany(args)).lines).toHaveLength(2)
    const again = await convertMany([join(folder, 'out/**/*.btf'), '--out-dir', join(folder, 'out/again')])
    expect(again.lines).toHaveLength(2)
  })

  it('refuses folders with advice, and patterns without a match', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const refused = await runCli(['convert', join(folder, 'in'), '--out-dir', join(folder, 'out')])
    expect(refused).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/[\\/]in[\\/]\*\*[\\/]\*\.btf'/),
    })
    const nothing = await runCli(['convert', join(folder, 'in/*.npy'), '--out-dir', join(folder, 'out')])
    expect(nothing).toMatchObject({ code: 64, stderr: expect.stringContaining('No file matches') })
    expect(readdirSync(folder)).toEqual(['in'])
  })
})

describe('outputs', () => {
  it('refuses two inputs with one output before anything is written, and --base separates them', async () => {
    const folder = await makeFiles(['a/x.btf', 'b/x.btf'])
    const out = join(folder, 'out')
    const args = [join(folder, 'a/x.btf'), join(folder, 'b/x.btf'), '--out-dir', out]
    const { code, stderr } = await runCli(['convert', ...args])
    expect(code).toBe(64)
    expect(stderr).toContain(join(folder, 'a/x.btf'))
    expect(stderr).toContain(join(folder, 'b/x.btf'))
    expect(existsSync(out)).toBe(false)
    expect((await convertMany([...args, '--base', folder])).code).toBe(0)
    expect(filesBelow(out)).toEqual([MANIFEST, 'a/x.btf', 'b/x.btf'])
  })

  it('never replaces an input, not even through a link', async () => {
    const folder = await makeFiles(['a.btf', 'b.btf', 'in/b.btf'])
    const inPlace = await runCli(['convert', `${folder}/*.btf`, '--out-dir', folder])
    expect(inPlace).toMatchObject({ code: 64, stderr: expect.stringContaining('overwrite the input') })
    mkdirSync(join(folder, 'out'))
    symlinkSync(join(folder, 'a.btf'), join(folder, 'out/b.btf'))
    const linked = await runCli([
      'convert',
      `${folder}/a.btf`,
      `${folder}/b.btf`,
      '--out-dir',
      `${folder}/out`,
    ])
    expect(linked).toMatchObject({ code: 64, stderr: expect.stringContaining('overwrite the input') })
    expect(readdirSync(join(folder, 'out'))).toEqual(['b.btf'])
  })

  it('reports the undo of each file, which restores it', async () => {
    const folder = await makeFiles(['a.btf', 'b.btf'])
    const args = ['--out-dir', join(folder, 'out'), '--layout', 'b_fs_yx_fsv16']
    const { lines } = await convertMany([join(folder, '*.btf'), ...args])
    for (const { input, undo } of lines) {
      expect((await runCli(undo![0]!.args)).code).toBe(0)
      expect(readFileSync(undo![0]!.args[2]!)).toEqual(readFileSync(input))
    }
  })

  it('writes undo commands to a file and not to the terminal', async () => {
    const folder = await makeFiles(['a.btf', 'b.btf'])
    const args = [
      'convert',
      join(folder, '*.btf'),
      '--out-dir',
      join(folder, 'out'),
      '--layout',
      'b_fs_yx_fsv16',
    ]
    expect(await runCli(args)).toEqual({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/^Wrote 2 files, .*; 0 skipped, 0 failed\.\n$/),
    })
    const undo = join(folder, 'undo.sh')
    expect(await runCli([...args, '--undo', undo])).toEqual({
      code: 0,
      stdout: '',
      stderr: 'Wrote 0 files, 0 B; 2 skipped, 0 failed.\n',
    })
    expect(readFileSync(undo, 'utf8').match(/^tilework convert .*$/gm)).toHaveLength(2)
    const lost = await runCli([...args, '--no-manifest'])
    expect(lost).toMatchObject({ code: 0, stdout: '' })
    expect(lost.stderr).toContain(
      'The 2 commands that undo the run are not stored anywhere; --undo FILE writes them.',
    )
    const told = await runCli(args, { isTTY: true })
    expect(told.stdout).toBe('')
    expect(told.stderr).toContain('a run with --undo FILE writes 2 commands.')
    const refused = await runCli([...args, '--undo', join(folder, 'no/such/undo.sh')])
    expect(refused).toMatchObject({ code: 74, stderr: expect.stringContaining('cannot be written') })
  })

  it('names an undo file without commands', async () => {
    const folder = await makeFiles(['a.btf', 'b.btf'])
    const undo = join(folder, 'undo.sh')
    const args = [
      'convert',
      join(folder, '*.btf'),
      '--out-dir',
      join(folder, 'out'),
      '--dtype',
      'f64',
      '--undo',
      undo,
    ]
    const note = `tilework: ${undo} is empty: there is no change of layout that needs an undo command.\n`
    const { code, stdout, stderr } = await runCli(args)
    expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
    expect(stderr.slice(0, note.length)).toBe(note)
    expect(stderr.slice(note.length)).toMatch(/^Wrote 2 files, .*; 0 skipped, 0 failed\.\n$/)
    expect(readFileSync(undo, 'utf8')).toBe('')
    expect((await runCli([...args, '--json', '--force'])).stderr).toBe('')
  })

  it('writes the undo of skipped files as well, also after a move of the output folder', async () => {
    const [name, quoted] = isWindows ? ['a$.btf', "\\out\\a$.btf' "] : ['tab\t.btf', "/out/tab\\011.btf' "]
    const folder = await makeFiles(['a.btf', name])
    const args = (out: string): string[] => [
      ...[join(folder, '*.btf'), '--out-dir', join(folder, out)],
      ...['--layout', 'b_fs_yx_fsv16', '--undo', join(folder, 'undo.sh')],
    ]
    await runCli(['convert', ...args('out')])
    const first = readFileSync(join(folder, 'undo.sh'), 'utf8')
    expect(first).toContain(quoted)
    await runCli(['convert', ...args('out')])
    expect(readFileSync(join(folder, 'undo.sh'), 'utf8')).toBe(first)
    renameSync(join(folder, 'out'), join(folder, 'moved'))
    const { lines } = await convertMany(args('moved'))
    for (const { input, status, undo } of lines) {
      expect(status).toBe('skipped')
      expect((await runCli(undo![0]!.args)).code).toBe(0)
      expect(undo![0]!.args[2]).toMatch(/[\\/]moved[\\/]/)
      expect(readFileSync(undo![0]!.args[2]!)).toEqual(readFileSync(input))
    }
  })
})

describe('the manifest', () => {
  const run = (folder: string, ...more: string[]): Promise<ManyResult> =>
    convertMany([join(folder, 'in/*.btf'), '--out-dir', join(folder, 'out'), '--layout', 'byxf', ...more])

  it('a second run skips finished files', async () => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
    age(join(folder, 'in/a.btf'))
    expect(statuses(await run(folder))).toEqual(['written', 'written'])
    const before = statSync(join(folder, 'out/a.btf'), { bigint: true })
    const second = await run(folder)
    expect(statuses(second)).toEqual(['skipped', 'skipped'])
    expect(second.lines[0]).toMatchObject({
      format: 'btf',
      byteLength: Number(before.size),
    })
    expect(statSync(join(folder, 'out/a.btf'), { bigint: true }).ino).toBe(before.ino)
    expect(second.summary).toMatchObject({ written: 0, skipped: 2, bytes: 0 })
  })

  it('the hash decides where only the time has changed, and the new time is recorded', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const input = join(folder, 'in/a.btf')
    age(input)
    await run(folder)
    age(input, 1800)
    expect(statuses(await run(folder))).toEqual(['skipped'])
    const lines = readFileSync(join(folder, 'out', MANIFEST), 'utf8')
      .trim()
      .split('\n')
    expect(lines).toHaveLength(3)
    expect(statuses(await run(folder))).toEqual(['skipped'])
    expect(
      readFileSync(join(folder, 'out', MANIFEST), 'utf8')
        .trim()
        .split('\n'),
    ).toEqual(lines)
  })

  it('a file that was just written is compared by its bytes', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const input = join(folder, 'in/a.btf')
    await run(folder)
    const { atime, mtime } = statSync(input)
    await writeTensor(input, 7)
    // The same length, and on many file systems the same time as well.
    utimesSync(input, atime, mtime)
    expect(statuses(await run(folder))).toEqual(['written'])
  })

  it.each([
    ['other bytes', async (folder: string) => writeTensor(join(folder, 'in/a.btf'), 5)],
    ['no output', async (folder: string) => rmSync(join(folder, 'out/a.btf'))],
    ['a shorter output', async (folder: string) => truncateSync(join(folder, 'out/a.btf'), 100)],
    ['an output that was touched', async (folder: string) => age(join(folder, 'out/a.btf'))],
    ['no manifest', async (folder: string) => rmSync(join(folder, 'out', MANIFEST))],
  ])('%s: converted again', async (_what, change) => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
    await run(folder)
    await change(folder)
    const [first] = (await run(folder)).lines
    expect(first!.status).toBe('written')
    expect(statuses(await run(folder))).toEqual(['skipped', 'skipped'])
  })

  it('other options and --force convert again; an alias of the layout does not', async () => {
    const folder = await makeFiles(['in/a.btf'])
    await run(folder)
    expect(statuses(await run(folder, '--force'))).toEqual(['written'])
    expect(statuses(await run(folder, '--pad-lower', '0,1,0,0'))).toEqual(['written'])
    expect(statuses(await run(folder, '--pad-lower', '0,1,0,0'))).toEqual(['skipped'])
    expect(statuses(await run(folder))).toEqual(['written'])
    expect(statuses(await run(folder, '--jobs', '2', '--mode', 'read'))).toEqual(['skipped'])
  })

  it('an incomplete last line is ended and ignored', async () => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
    const path = join(folder, 'out', MANIFEST)
    await run(folder)
    truncateSync(path, statSync(path).size - 40)
    const repaired = await run(folder)
    expect({ statuses: statuses(repaired), stderr: repaired.stderr }).toEqual({
      statuses: ['skipped', 'written'],
      stderr: '',
    })
    const third = await run(folder)
    expect({ statuses: statuses(third), stderr: third.stderr }).toEqual({
      statuses: ['skipped', 'skipped'],
      stderr: '',
    })
  })

  it.each([1, 10, 20])('a manifest that ends after %d bytes is created again', async (length) => {
    const folder = await makeFiles(['in/a.btf'])
    const path = join(folder, 'out', MANIFEST)
    await run(folder)
    truncateSync(path, length)
    expect(statuses(await run(folder))).toEqual(['written'])
    const third = await run(folder)
    expect({ statuses: statuses(third), stderr: third.stderr }).toEqual({ statuses: ['skipped'], stderr: '' })
  })

  it('unreadable lines are reported and ignored', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const path = join(folder, 'out', MANIFEST)
    await run(folder)
    appendFileSync(path, 'nonsense\n{"input":1}\n[]\n\n{"output":{"path":"a.btf"}}\n')
    const { lines, stderr } = await run(folder)
    expect(lines[0]!.status).toBe('skipped')
    expect(stderr).toMatch(/has 4 lines that cannot be read, the first is line 3/)
  })

  it('refuses a file that is not a manifest, and a later version', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const other = join(folder, 'notes.txt')
    writeFileSync(other, 'notes\n')
    const args = ['convert', join(folder, 'in/a.btf'), '--out-dir', join(folder, 'out'), '--manifest', other]
    expect(await runCli(args)).toMatchObject({ code: 64, stderr: expect.stringContaining('ERR_ARGUMENT') })
    expect(readFileSync(other, 'utf8')).toBe('notes\n')
    writeFileSync(other, '{"tileworkManifest":3}\n')
    expect(await runCli(args)).toMatchObject({ code: 64, stderr: expect.stringContaining('version 3') })
    expect(filesBelow(join(folder, 'out'))).toEqual([])
  })

  it('may be elsewhere, serves two folders, and may be omitted', async () => {
    const folder = await makeFiles(['in/a.btf'])
    const manifest = join(folder, 'manifest.jsonl')
    const args = (out: string): string[] => [
      join(folder, 'in/*.btf'),
      '--out-dir',
      join(folder, out),
      '--manifest',
      manifest,
    ]
    for (const out of ['one', 'two']) expect(statuses(await convertMany(args(out)))).toEqual(['written'])
    for (const out of ['one', 'two']) expect(statuses(await convertMany(args(out)))).toEqual(['skipped'])
    expect(filesBelow(join(folder, 'one'))).toEqual(['a.btf'])
    const without = [join(folder, 'in/*.btf'), '--out-dir', join(folder, 'three'), '--no-manifest']
    for (let i = 0; i < 2; i++) expect(statuses(await convertMany(without))).toEqual(['written'])
    expect(filesBelow(join(folder, 'three'))).toEqual(['a.btf'])
  })

  it('two concurrent runs into one folder leave every line complete', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `in/${index}.btf`)
    const folder = await makeFiles(names)
    await Promise.all([run(folder, '--jobs', '3'), run(folder, '--jobs', '3')])
    const after = await run(folder)
    expect(after.stderr).toBe('')
    expect(after.summary).toMatchObject({ written: 0, skipped: 40 })
  })
})

describe('inputs of several parts', () => {
  it('are skipped only while every part of input and output is unchanged', async () => {
    const folder = inFolder('parts')
    mkdirSync(folder)
    const index = join(folder, 'm.safetensors.index.json')
    const numbers = [0, 1, 2].map((seed) => tensor(new Float32Array(100).fill(seed), { name: `t${seed}` }))
    await save(index, numbers, { format: 'safetensors', maxShardBytes: 500 })
    const parts = readdirSync(folder).filter((name) => name !== basename(index))
    expect(parts).toHaveLength(3)
    for (const name of parts) age(join(folder, name))
    const out = join(folder, 'out')
    const run = async (): Promise<Line> =>
      (await convertMany([index, '--out-dir', out, '--jobs', '1'])).lines[0]!
    const { status, byteLength } = await run()
    expect({ status, files: filesBelow(out) }).toEqual({
      status: 'written',
      files: [MANIFEST, ...parts, basename(index)].sort(),
    })
    expect(await run()).toMatchObject({ status: 'skipped', byteLength })
    age(join(folder, parts[2]!), 1800)
    expect((await run()).status).toBe('skipped')
    const bytes = readFileSync(join(folder, parts[1]!))
    bytes[bytes.length - 1]! ^= 1
    writeFileSync(join(folder, parts[1]!), bytes)
    expect((await run()).status).toBe('written')
    // Other names than before: until the new index was there, the old one was whole.
    const shards = filesBelow(out).filter((name) => name.endsWith('.safetensors'))
    expect(shards.map((name) => readFileSync(join(out, name)))).toContainEqual(bytes)
    expect(shards).toHaveLength(3)
    rmSync(join(out, shards[0]!))
    expect((await run()).status).toBe('written')
    expect((await run()).status).toBe('skipped')
  })

  it.each([
    ['of one file', (index: string, out: string) => [index, join(out, 'm.npz')], 1],
    ['of many files', (index: string, out: string) => [index, index, '--out-dir', out, '--format', 'npz'], 1],
    ['of one tensor', (index: string, out: string) => [index, join(out, 'm.npz'), '--tensor', 't0'], 0],
  ])('a missing shard is said by the exit code of every run: %s', async (what, argsOf, expected) => {
    const folder = inFolder(`missing shard ${what}`)
    mkdirSync(folder)
    const index = join(folder, 'm.safetensors.index.json')
    const numbers = [0, 1].map((seed) => tensor(new Float32Array(100).fill(seed), { name: `t${seed}` }))
    await save(index, numbers, { format: 'safetensors', maxShardBytes: 500 })
    const files = readdirSync(folder).map((name) => join(folder, name))
    rmSync(files.find((path) => path !== index && readFileSync(path).includes('"t1"'))!)
    const out = join(folder, 'out')
    mkdirSync(out)
    expect((await runCli(['check', index])).code).toBe(1)
    for (let turn = 0; turn < 2; turn++) {
      const { code, stderr } = await runCli(['convert', ...argsOf(index, out)])
      expect(stderr).toMatch(/does not exist, so its tensors are omitted/)
      expect(code).toBe(expected)
      expect(existsSync(join(out, 'm.npz')) || existsSync(join(out, 'm.safetensors.index.npz'))).toBe(true)
    }
  })
})

describe('other formats', () => {
  it.each(['npy', 'npz', 'safetensors'])(
    '--format %s: outputs have its extension, and come back',
    async (format) => {
      const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
      const out = join(folder, 'out')
      const { lines } = await convertMany([join(folder, 'in/*.btf'), '--out-dir', out, '--format', format])
      expect(filesBelow(out)).toEqual([MANIFEST, `a.${format}`, `b.${format}`])
      expect(lines.map((line) => line.format)).toEqual([format, format])
      const back = join(folder, 'back')
      await convertMany([join(out, '*'), '--out-dir', back, '--format', 'btf'])
      for (const name of ['a.btf', 'b.btf']) {
        expect(readFileSync(join(back, name))).toEqual(readFileSync(join(folder, 'in', name)))
      }
    },
  )
})

describe('failures', () => {
  it('the first failure stops the run; with --keep-going it does not', async () => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf', 'in/c.btf', 'in/d.btf'])
    truncateSync(join(folder, 'in/b.btf'), 100)
    writeFileSync(join(folder, 'in/c.btf'), 'certainly no tensors in here, only words')
    const args = [join(folder, 'in/*.btf'), '--out-dir', join(folder, 'out')]
    const stopped = await convertMany(args)
    expect(stopped.code).toBe(2)
    expect(statuses(stopped)).toEqual(['written', 'failed'])
    expect(stopped.stderr).toContain('2 files not started')
    const all = await convertMany([...args, '--keep-going'])
    expect(all.code).toBe(2)
    expect(statuses(all)).toEqual(['skipped', 'failed', 'failed', 'written'])
    expect(all.lines[1]!.error!.code).toMatch(/^ERR_/)
    expect(all.summary.failed).toBe(2)
    expect(Object.values(all.summary.byCode).reduce((sum, count) => sum + count, 0)).toBe(2)
    expect(filesBelow(join(folder, 'out'))).toEqual([MANIFEST, 'a.btf', 'd.btf'])
  })

  it('the exit code is the highest of all files; a terminal gets a table', async () => {
    const folder = await makeFiles(['in/a.btf'])
    writeFileSync(join(folder, 'in/c.btf'), 'certainly no tensors in here, only words')
    const names = ['in/a.btf', 'in/c.btf', 'in/missing.btf'].map((name) => join(folder, name))
    const { code, stdout, stderr } = await runCli([
      'convert',
      ...names,
      '--out-dir',
      join(folder, 'out'),
      '--keep-going',
    ])
    expect({ code, stdout }).toEqual({ code: 74, stdout: '' })
    expect(stderr).toMatch(/^tilework: ERR_IO: .*missing\.btf/m)
    expect(stderr).toMatch(/^failure +files +first$/m)
    expect(stderr).toMatch(/^ERR_IO +1 +.*missing\.btf$/m)
  })

  it('a selection without a match fails each file; wrong options fail once, before the run', async () => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
    const args = [join(folder, 'in/*.btf'), '--out-dir', join(folder, 'out'), '--keep-going']
    const each = await convertMany([...args, '--tensor', 'nothing'])
    expect(each).toMatchObject({ code: 64, summary: { failed: 2, byCode: { ERR_ARGUMENT: 2 } } })
    const once = await runCli([
      'convert',
      ...args,
      '--layout',
      'nonsense',
      '--out-dir',
      join(folder, 'other'),
    ])
    expect(once).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/^tilework: ERR_LAYOUT_NAME: .*\n$/),
    })
    expect(existsSync(join(folder, 'other'))).toBe(false)
  })

  it('a cancelled run exits with 130 and prints its sums; the next run finishes it', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `in/${String(index).padStart(2, '0')}.btf`)
    const folder = await makeFiles(names)
    const controller = new AbortController()
    let seen = 0
    const args = [join(folder, 'in/*.btf'), '--out-dir', join(folder, 'out'), '--jobs', '2']
    const cancelled = await convertMany(args, {
      signal: controller.signal,
      onOutput: () => {
        if (++seen === 5) controller.abort()
      },
    })
    expect(cancelled.code).toBe(130)
    expect(cancelled.summary).toMatchObject({ failed: 0, cancelled: true })
    expect(cancelled.stderr).toMatch(/^tilework: ERR_ABORTED: .* of 30 files were done\.\n$/)
    const done = cancelled.summary.written
    expect(done).toBeGreaterThanOrEqual(5)
    expect(done).toBeLessThan(30)
    expect(filesBelow(join(folder, 'out'))).toHaveLength(done + 1)
    expect((await convertMany(args)).summary).toMatchObject({ skipped: done, written: 30 - done })
  })

  it('a run that is cancelled while it reads the list ends at once', async () => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 10)
    const { code } = await runCli(['convert', '-', '--out-dir', inFolder('never')], {
      signal: controller.signal,
      stdin: async function* () {
        yield 'a.btf\n'
        await new Promise(() => undefined)
      },
    })
    expect(code).toBe(130)
  })
})

describe('jobs and shards', () => {
  it('any number of jobs writes the same', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `in/${index}.btf`)
    const folder = await makeFiles(names)
    for (const jobs of ['1', '3', '0']) {
      const out = join(folder, `out${jobs}`)
      const args = [join(folder, 'in/*.btf'), '--out-dir', out, '--layout', 'byxf', '--jobs', jobs]
      expect((await convertMany(args)).summary.written).toBe(20)
      for (const name of readdirSync(join(folder, 'out1'))) {
        if (name !== MANIFEST)
          expect(readFileSync(join(out, name))).toEqual(readFileSync(join(folder, 'out1', name)))
      }
    }
  })

  it.each([1, 2, 3, 7])('%d shards are together the whole list, each file once', async (count) => {
    const names = Array.from({ length: 5 }, (_, index) => `in/${index}.btf`)
    const folder = await makeFiles(names)
    const out = join(folder, 'out')
    const inputs: string[] = []
    for (let index = 1; index <= count; index++) {
      const { lines } = await convertMany([
        join(folder, 'in/*.btf'),
        '--out-dir',
        out,
        '--shard',
        `${index}/${count}`,
      ])
      inputs.push(...lines.map(({ input }) => input))
    }
    expect(inputs.sort()).toEqual(names.map((name) => join(folder, name)))
    expect((await convertMany([join(folder, 'in/*.btf'), '--out-dir', out])).summary.skipped).toBe(5)
  })

  it('shows files and bytes on a terminal, and a last line', async () => {
    const folder = await makeFiles(['in/a.btf', 'in/b.btf'])
    const args = ['convert', join(folder, 'in/*.btf'), '--out-dir', join(folder, 'out')]
    const { stderr } = await runCli(args, { isTTY: true })
    expect(stderr).toBe('Wrote 2 files, 1.61 KiB; 0 skipped, 0 failed.\n')
  })
})
