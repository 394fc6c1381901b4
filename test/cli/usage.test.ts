/** What every command shares: help, wrong use, errors in both forms, cancellation. */
import { execFile as execFileCallback } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { exitCodeOf } from '../../lib/cli/error_exit_codes.js'
import { EXIT } from '../../lib/cli/exit_codes.js'
import { InputError } from '../../lib/cli/files/open_input.js'
import { findingLine } from '../../lib/cli/text/finding_line.js'
import { numberList } from '../../lib/cli/text/parse_shape.js'
import { printable, printableJson } from '../../lib/cli/text/printable.js'
import { shellQuote } from '../../lib/cli/text/shell_quote.js'
import { createTerminal } from '../../lib/cli/text/terminal.js'
import { check, ERROR_CODES, type ErrorCode, save, TileworkError, tensor } from '../../lib/index.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const execFile = promisify(execFileCallback)
const inFolder = temporaryFolder()

describe('help', () => {
  it('of edit marks the options that one format takes', async () => {
    const stdout = (await runCli(['edit', '--help'])).stdout.replace(/\s+/g, ' ')
    expect(stdout).toMatch(/--set-input <[^>]+> shape of an input; may be repeated --set-batch/)
    expect(stdout).toMatch(/--metadata <key=value> metadata of the model; may be repeated \(ONNX only\)/)
    expect(stdout.match(/\(tmfile only\)/g)).toHaveLength(7)
    expect(stdout.match(/\(ONNX only\)/g)).toHaveLength(7)
  })

  it.each([
    'inspect',
    'check',
    'compress',
    'convert',
    'diff',
    'edit',
    'externalize',
    'internalize',
    'layout',
  ])('of %s has an example', async (command) => {
    const { code, stdout, stderr } = await runCli([command, '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(new RegExp(`Examples:\\n {2}tilework ${command} \\S`))
    expect(stdout).toContain('--json')
  })

  it('of internalize does not mention data files', async () => {
    const { stdout } = await runCli(['internalize', '--help'])
    expect(stdout).not.toContain('externalize')
    expect(stdout).not.toContain('--location')
  })

  it('lists the commands, and goes to stderr with wrong use where no command is named', async () => {
    const asked = await runCli(['--help'])
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    for (const command of ['inspect', 'check', 'compress', 'convert', 'diff', 'edit', 'layout'])
      expect(asked.stdout).toContain(command)
    const forgotten = await runCli([])
    expect(forgotten).toMatchObject({ code: 64, stdout: '' })
    expect(forgotten.stderr).toContain('Usage: tilework')
  })

  it('of an unknown command names the nearest', async () => {
    const { code, stdout, stderr } = await runCli(['help', 'conver'])
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toMatch(/'conver'.*Did you mean convert/)
    expect((await runCli(['help', 'convert'])).stdout).toContain('Usage: tilework convert')
    expect((await runCli(['help', 'help'])).stdout).toContain('Usage: tilework [')
  })

  it('prints the version', async () => {
    expect((await runCli(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/)
  })
})

describe('wrong use', () => {
  it.each([
    [['nonsense']],
    [['inspect']],
    [['inspect', '--nonsense', 'a.btf']],
    [['layout', 'bfyx', 'oiyx']],
    [['check', 'a.btf', '--level', 'severe']],
    [['convert', 'a.btf']],
    [['convert', 'a.btf', 'b.btf', 'c.btf']],
    [['convert', 'a.btf', 'b.btf', '--jobs', '2']],
    [['convert', '--out-dir', 'd']],
    [['convert', 'a.btf', '--out-dir', 'd', '--jobs', '-1']],
    [['convert', 'a.btf', '--out-dir', 'd', '--jobs', '257']],
    [['convert', 'a.btf', '--out-dir', 'd', '--shard', '0/2']],
    [['convert', 'a.btf', '--out-dir', 'd', '--shard', '3/2']],
    [['convert', 'a.btf', '--out-dir', 'd', '--shard', '1']],
    [['convert', 'a.btf', '--out-dir', 'd', '--null']],
    [['convert', 'a.btf', '--out-dir', 'd', '--keep-going', '--format', 'nonsense']],
    [['convert', 'no/*.btf', '--out-dir', 'd']],
    [['convert', 'no/*.btf', 'd']],
    [['convert', 'a.btf', '-']],
    [['convert', '-', 'a.btf']],
    [['convert', 'a.btf', '--out-dir', 'd', '--manifest', 'm', '--no-manifest']],
    [['convert', 'a.btf', '--out-dir', 'd', '--no-manifest', '--manifest', 'm']],
    [['convert', 'a.btf', '--out-dir', 'd', '--base', 'nope']],
    [['convert', 'lib', '--out-dir', 'd']],
    [['convert', 'a.btf', '--out-dir', '.', '--force']],
    [['convert', 'lib/a.btf', 'a.btf', '--out-dir', 'd']],
    [['convert', 'a.btf', '--out-dir', 'd', '--base', 'lib']],
    [['convert', 'a.btf', '--out-dir', 'd', '--stdin']],
    [['convert', 'a.btf', 'b.btf', '--as', 'data']],
    [['convert', 'a.btf', 'b.btf', '--shape', '1,2']],
    [['convert', 'a.btf', 'b.btf', '--from-layout', 'bfyx']],
    [['convert', 'a.btf', 'b.btf', '--pad-lower', '1']],
    [['convert', 'a.btf', 'b.btf', '--tensor']],
  ])('%j exits with 64 and one line', async (args) => {
    const { code, stdout, stderr } = await runCli(args)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toMatch(/^tilework: ERR_ARGUMENT: .+\n$/)
  })

  it.each([
    [['convert', 'a.btf', '-'], 'stdout'],
    [['convert', 'a.btf', '/dev/stdout', '--format', 'npy'], 'does not write to stdout'],
    [
      ['convert', 'a.btf', '--out-dir', 'd', '--jobs=-1'],
      '--jobs is "-1"; it must be a whole number from 0 (one per CPU).',
    ],
    [['convert', 'test/fixtures', '--out-dir', 'd', '--keep-going'], "a pattern such as '"],
    [['inspect', 'ftp://example.org/a.npy'], 'known are file:, http:, https:, s3:'],
    [['layout', 'nchw', '--shape', '1,2,2,2', '--svg', 'l.png'], 'name a file that ends in .svg, not l.png.'],
    [['convert', 'no/*.btf', 'd'], `tilework convert ${shellQuote(['no/*.btf'])} --out-dir d`],
    [['convert', 'a.btf', '--out-dir', 'd', '--base', 'nope'], 'The base folder nope does not exist.'],
    [['convert', 'a.btf', '--out-dir', 'd', '--base', 'package.json'], 'package.json is not a folder.'],
    [['convert', 'a.btf', '--out-dir', 'd', '--manifest', 'm', '--no-manifest'], '--no-manifest contradict'],
    [['inspect', 'a.btf', '--mode', 'fly'], 'Allowed choices are map, read; see'],
  ])('%j is reported with advice', async (args, part) => {
    expect((await runCli(args)).stderr).toContain(part)
  })

  it('is an object on stdout with --json', async () => {
    const { stdout, stderr } = await runCli(['inspect', 'a.btf', '--nonsense', '--json'])
    expect(JSON.parse(stdout).error).toMatchObject({
      code: 'ERR_ARGUMENT',
      message: expect.stringContaining('--nonsense'),
    })
    expect(stderr).toMatch(/^tilework: ERR_ARGUMENT: /)
  })
})

describe('errors of files', () => {
  it.each(['inspect', 'check'])('%s of a missing file exits with 74', async (command) => {
    const { code, stdout, stderr } = await runCli([command, inFolder('missing.btf'), '--json'])
    expect(code).toBe(74)
    expect(JSON.parse(stdout).error).toMatchObject({ code: 'ERR_IO' })
    expect(stderr).toMatch(/^tilework: ERR_IO: .*missing\.btf.*\n$/)
  })

  it.each(['inspect', 'check'])('%s of bytes of no format exits with 2', async (command) => {
    const path = inFolder('bytes.unknown')
    writeFileSync(path, 'certainly no tensors in here, only words and more words')
    const { code, stdout } = await runCli([command, path, '--json'])
    expect(code).toBe(2)
    expect(stdout).toContain('ERR_UNKNOWN_FORMAT')
  })

  it('names the file of a damaged header, and says a path once', async () => {
    const damaged = inFolder('damaged.btf')
    writeFileSync(damaged, new Uint8Array(new BigUint64Array([1n, 16n, 1n, 4n, 100n]).buffer))
    const { stderr, stdout } = await runCli(['inspect', damaged, '--json'])
    expect(stderr).toContain(damaged)
    expect(JSON.parse(stdout).error).toMatchObject({
      file: damaged,
      path: expect.stringContaining('tensors[0]'),
    })
    const missing = inFolder('missing.btf')
    expect((await runCli(['inspect', missing])).stderr.split(missing)).toHaveLength(2)
    const none = inFolder('none/x.svg')
    const svg = await runCli(['layout', 'bfyx', '--shape', '1,1,1,1', '--svg', none])
    expect(svg.stderr.split(none)).toHaveLength(2)
  })

  it('a finding contains its path once', async () => {
    const path = inFolder('bytes.tmfile')
    const header = Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0)
    writeFileSync(path, Buffer.concat([header, new Uint8Array(100)]))
    const { stdout } = await runCli(['check', path])
    expect(stdout).toContain('error ERR_OFFSET_RANGE @65535 The root is missing')
    const [finding] = await check(path)
    const { severity, code, message } = finding!
    const moved = { severity, code, message, path: 'tensors[3]', offset: 7 }
    const plain = createTerminal({ stdout: { write: () => undefined }, stderr: { write: () => undefined } })
    expect(findingLine(moved, plain.colors)).toBe(`${severity} ${code} tensors[3] @7 ${message}`)
  })

  it('reports text files as such', async () => {
    const path = inFolder('page.btf')
    writeFileSync(path, '<!doctype html>\n<title>Not found – é</title>\n')
    const sentence = `${path} is not a file of the format BTF: it is an HTML page; the formats that are read are npy, npz, gguf, pytorch, tflite, safetensors, openvino, tmfile, onnx and btf.`
    expect(await runCli(['inspect', path])).toMatchObject({
      code: 2,
      stderr: `tilework: ERR_UNKNOWN_FORMAT: ${sentence}\n`,
    })
    expect(await runCli(['check', path])).toMatchObject({
      code: 2,
      stdout: expect.stringContaining(sentence),
    })
    writeFileSync(path, new Uint8Array(new BigUint64Array([1n, 16n, 1n, 4n, 100n]).buffer))
    expect((await runCli(['check', path])).stdout).not.toContain('text')
  })

  it('a cancelled run exits with 130', async () => {
    const { code, stderr } = await runCli(['check', inFolder('missing.btf')], { signal: AbortSignal.abort() })
    expect(code).toBe(130)
    expect(stderr).toMatch(/^tilework: ERR_ABORTED: /)
  })
})

describe('exit codes', () => {
  it('exist for every error code', () => {
    for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
      const exitCode = exitCodeOf(new TileworkError(code, 'A test.'))
      expect(Object.values(EXIT)).toContain(exitCode)
      expect(exitCode).not.toBe(EXIT.ok)
    }
  })

  it('blame the installation for an addon that cannot be loaded', () => {
    const load = new TileworkError('ERR_NATIVE_LOAD', 'A test.')
    expect([exitCodeOf(load), exitCodeOf(new InputError(load))]).toEqual([70, 70])
  })

  it('blame the input for what comes from opening it', () => {
    const rank = new TileworkError('ERR_RANK', 'A test.')
    expect(exitCodeOf(rank)).toBe(64)
    expect(exitCodeOf(new InputError(rank))).toBe(2)
    expect(exitCodeOf(new InputError(new TileworkError('ERR_IO', 'A test.')))).toBe(74)
    expect(exitCodeOf(new InputError(new TileworkError('ERR_FILE_CHANGED', 'A test.')))).toBe(74)
    expect(exitCodeOf(new TypeError('A test.'))).toBe(70)
  })
})

describe('texts', () => {
  it('number lists: commas, blanks, scalar', () => {
    const parse = numberList('--shape')
    expect(parse('2, 19,5')).toEqual([2, 19, 5])
    expect(parse('')).toEqual([])
    expect(parse('scalar')).toEqual([])
    for (const text of ['1e3', '0x10', '1.5', 'a', ',', '٣']) expect(() => parse(text)).toThrow('--shape')
  })

  it('escape sequences of a file never reach the terminal', () => {
    expect(printable('a\u001b[31m\u009bb\u202e')).toBe('a\\u001b[31m\\u009bb\\u202e')
    const name = 'x\u009b\u2028\u007f"\\'
    expect(printableJson({ name })).not.toMatch(/[\u007f-\u009f\u2028]/)
    expect(JSON.parse(printableJson({ name }))).toEqual({ name })
    expect(JSON.parse(printableJson({ name }, 2))).toEqual({ name })
  })

  it('commands can be pasted into a shell', () => {
    expect(shellQuote(['a.btf', '#0', "it's", ''], 'linux')).toBe("a.btf '#0' 'it'\\''s' ''")
  })

  it.each([
    ['C:\\a\\b.btf', 'C:\\a\\b.btf'],
    ['C:\\a b\\', '"C:\\a b\\\\"'],
    ['2,19', '"2,19"'],
    ['#0', '"#0"'],
    ['', '""'],
    ["it's", '"it\'s"'],
    ["$x'", "'$x'''"],
    ['a"b', "'a\"b'"],
    ['tab\t$"', '"tab`u{9}`$`""'],
  ])('%j is quoted for the shells of Windows', (word, quoted) => {
    expect(shellQuote([word], 'win32')).toBe(quoted)
  })

  it.skipIf(process.platform === 'win32')(
    'commands quote control characters of names, and are printable',
    async () => {
      const words = ['tab\t.npy', "it's\\\n\u001b[31m1", '\u009b\u202eü7', 'a b']
      const quoted = shellQuote(words, 'linux')
      expect(printable(quoted)).toBe(quoted)
      expect(quoted).toMatch(/^\$'tab\\011\.npy' /)
      const { stdout } = await execFile('bash', ['-c', `printf '%s\\0' ${quoted}`])
      expect(stdout.split('\0').slice(0, -1)).toEqual(words)
    },
  )

  it('advice of the library is translated to flags', async () => {
    const folder = inFolder('links')
    mkdirSync(folder)
    const index = inFolder('links/m.safetensors.index.json')
    await save(inFolder('away.safetensors'), [tensor(new Float32Array(2), { name: 'x' })])
    symlinkSync('../away.safetensors', inFolder('links/part.safetensors'))
    writeFileSync(index, JSON.stringify({ metadata: {}, weight_map: { x: 'part.safetensors' } }))
    const { stderr } = await runCli(['inspect', index])
    expect(stderr).toContain('; --symlinks follow allows it.')
    expect((await runCli(['inspect', index, '--symlinks', 'follow'])).code).toBe(0)
  })
})
