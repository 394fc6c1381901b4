/** `tilework check` and `inspect` of several files, and of patterns that the shell did not expand. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { save, tensor } from '../../lib/index.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const [FIRST, SECOND, LITERAL] = ['a.npy', 'b.npy', '[a].npy'].map((name) => inFolder(name)) as [
  ...[string, string, string],
]
const SUMS =
  /Checked (\d+) files: (\d+) without findings, (\d+) with warnings, (\d+) with errors, (\d+) not readable\.\n$/

interface Report {
  readonly file: string
  readonly findings?: readonly object[]
  readonly error?: { readonly code: string }
}

beforeAll(async () => {
  mkdirSync(inFolder('deep'))
  for (const path of [FIRST, SECOND, inFolder('deep/c.npy'), LITERAL]) {
    await save(path, [tensor(new Float32Array(4), { shape: [4], name: 'w' })])
  }
  writeFileSync(inFolder('notes.txt'), 'no tensors')
})

const filesOf = (reports: readonly Report[]): string[] => reports.map(({ file }) => file)

describe.each(['check', 'inspect'])('%s', (command) => {
  it('takes patterns, sorted, each file once', async () => {
    const reports = await runJson<Report[]>([command, SECOND, inFolder('**/?.npy')])
    expect(filesOf(reports)).toEqual([SECOND, FIRST, inFolder('deep/c.npy')])
  })

  it('prints a list for a pattern also where it matches one file', async () => {
    expect(filesOf(await runJson<Report[]>([command, inFolder('{a,x}.npy')]))).toEqual([FIRST])
  })

  it('never takes a file that exists for a pattern', async () => {
    expect((await runJson<Report>([command, LITERAL])).file).toBe(LITERAL)
  })

  it('takes the bytes of stdin as -', async () => {
    const bytes = readFileSync(FIRST)
    const stdin = async function* () {
      yield bytes.subarray(0, 20)
      yield bytes.subarray(20)
    }
    const { code, stdout } = await runCli([command, '-', '--json'], { stdin })
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { file: '-', findings: [] }])
  })

  it.skipIf(process.platform === 'win32')('names - for an input that is a pipe', async () => {
    expect((await runCli([command, '/dev/null'])).stderr).toContain('inspect and check take a pipe as -.')
  })

  it('refuses a pattern without a match, and does the others', async () => {
    const none = inFolder('*.btf')
    const { code, stderr } = await runCli([command, none])
    expect(code).toBe(64)
    expect(stderr).toContain(`tilework: ERR_ARGUMENT: No file matches the pattern '${none}'.\n`)
    const reports = await runJson<Report[]>([command, none, FIRST], 64)
    expect(reports.map(({ error }) => error?.code)).toEqual(['ERR_ARGUMENT', undefined])
  })
})

describe('the sums of check', () => {
  it('count the files by what was found', async () => {
    const cut = inFolder('cut.npy')
    writeFileSync(cut, Buffer.from('\x93NUMPY\x01\x00\x76\x00', 'latin1'))
    const { code, stdout, stderr } = await runCli(['check', inFolder('*'), inFolder('gone.npy')])
    expect(code).toBe(74)
    expect(stdout).toContain(`${FIRST}: no findings\n`)
    expect(SUMS.exec(stderr)?.slice(1).map(Number)).toEqual([6, 3, 0, 1, 2])
  })

  it('are not printed for one file, with --json and where no file was checked', async () => {
    expect((await runCli(['check', inFolder('*.btf')])).stderr).not.toContain('Checked')
    expect((await runCli(['check', FIRST])).stderr).toBe('')
    expect((await runCli(['check', FIRST, SECOND, '--json'])).stderr).toBe('')
  })
})
