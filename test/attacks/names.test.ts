/**
 * Names that break something: keys of JavaScript's objects, paths out of a folder, text that UTF-8 cannot hold, and text that
 * a terminal interprets.
 */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { isWindows, withSlashes } from '../../lib/bytes/windows_names.js'
import { open, save, serialize, stringTensor, TileworkError, tensor } from '../../lib/index.js'
import { OnnxModel } from '../../lib/onnx.js'
import { runCli } from '../cli/run_cli.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })
const named = (name: string) => tensor(new Float32Array([1, 2]), { shape: [2], name })

const ODD_NAMES = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf', 'then', 'length', '0', '-1', '#0'],
  ...[
    '__metadata__',
    'prototype',
    '../../evil',
    '/etc/evil',
    'a/../../b',
    'C:\\x',
    'é',
    'e\u0301',
    'A',
    'a',
    'a.npy',
  ],
  ...['CON', 'x'.repeat(300), 'a\0b'],
]
const NAMING = ['npz', 'safetensors', 'onnx', 'tmfile'] as const

describe.each(NAMING)('%s', (format) => {
  it.each(ODD_NAMES)('keeps the name %j or refuses it', async (name) => {
    const saved = await serialize([named(name)], { format }).catch((error: unknown) => error)
    if (saved instanceof TileworkError) return
    const { tensors } = await open(saved as Uint8Array)
    expect(tensors.get(name)?.name).toBe(name)
    for (const other of ODD_NAMES) if (other !== name) expect(tensors.get(other)).toBe(undefined)
    expect(({} as Record<string, unknown>).y).toBe(undefined)
  })

  it('refuses lone surrogates, which would make two names one', async () => {
    for (const name of ['\ud800x', 'x\udfff', '\udc00\ud800']) {
      await expect(serialize([named(name)], { format })).rejects.toThrow(code('ERR_UNSUPPORTED'))
    }
    expect((await open(await serialize([named('\u{1f600}')], { format }))).tensors.at(0)?.name).toBe(
      '\u{1f600}',
    )
  })
})

it('a string tensor refuses lone surrogates', () => {
  expect(() => stringTensor(['\ud800'])).toThrow(code('ERR_ARGUMENT'))
})

/** What a terminal interprets, or shows as something else or not at all. */
const UNSAFE = /[^\P{Cc}\t\n]|[\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}]/u
const EVIL =
  '\x1b[2J\x1b]0;pwn\x07\r\nFAKE LINE\x9b31m\u202egnp.exe\u2066\u200bz\u2028q\u00ad\u061c\u180e\u2060\u3164\ufeff\u{e0041}'

describe('on a terminal', () => {
  const files: Record<string, () => Promise<unknown>> = {
    'e.safetensors': () =>
      save(inFolder('e.safetensors'), [named(EVIL), named('__proto__')], { metadata: { [EVIL]: EVIL } }),
    'e.onnx': () => {
      const model = OnnxModel.create({ graphName: EVIL })
      model.producerName = EVIL
      model.docString = EVIL
      return save(inFolder('e.onnx'), model)
    },
    'e.npz': () => save(inFolder('e.npz'), [named(EVIL)]),
    'e.tmfile': () => save(inFolder('e.tmfile'), [named(EVIL)]),
    'i.safetensors.index.json': async () =>
      writeFileSync(
        inFolder('i.safetensors.index.json'),
        JSON.stringify({ metadata: { [EVIL]: EVIL }, weight_map: { [EVIL]: `${EVIL}.safetensors` } }),
      ),
    // Windows has no names with control characters.
    ...(!isWindows && { [`bad${EVIL}.btf`]: async () => writeFileSync(inFolder(`bad${EVIL}.btf`), 'junk') }),
  }

  function expectPrintable({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }): void {
    expect(UNSAFE.exec(stdout + stderr)?.[0]).toBe(undefined)
    expect(/^FAKE LINE/m.test(stdout + stderr)).toBe(false)
  }

  it.each(Object.entries(files))('shows names of %j escaped', async (name, write) => {
    await write()
    const path = inFolder(name)
    for (const args of [
      ['inspect'],
      ['inspect', '--json'],
      ['check'],
      ['check', '--json', '--level', 'strict'],
    ]) {
      expectPrintable(await runCli([args[0]!, path, ...args.slice(1)]))
    }
    expectPrintable(await runCli(['convert', path, inFolder('o.btf'), '--tensor', EVIL]))
  })

  it.each([
    ['inspect', EVIL],
    ['inspect', `--${EVIL}`],
    [EVIL],
    ['layout', EVIL, '--shape', '1,2'],
    ['layout', 'bfyx', '--shape', EVIL],
    ['check', 'e.onnx', '--level', EVIL],
  ])('shows arguments escaped: %j', async (...args) => expectPrintable(await runCli(args)))
})

it('no name leads out of the folder of the outputs', async () => {
  for (const [at, name] of ODD_NAMES.filter((odd) => /[/\\]/.test(odd)).entries()) {
    const folder = inFolder(`slip${at}`)
    mkdirSync(`${folder}/out`, { recursive: true })
    await save(`${folder}/in.safetensors`, [named(name)])
    await runCli(['convert', `${folder}/in.safetensors`, '--out-dir', `${folder}/out`, '--format', 'npy'])
    const found = readdirSync(folder, { recursive: true }).map((path) => withSlashes(String(path)))
    expect(
      found.filter((path) => path !== 'in.safetensors' && path !== 'out' && !path.startsWith('out/')),
    ).toEqual([])
    expect(existsSync('/etc/evil')).toBe(false)
  }
})
