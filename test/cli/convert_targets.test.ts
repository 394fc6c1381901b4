/** `tilework convert`: names of outputs, and what is checked before the input is opened. */
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { convert, open, save, tensor } from '../../lib/index.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const INPUT = inFolder('in.safetensors')
const VALUES = tensor(Float32Array.of(1, 2, 3), { name: 'w' })

beforeAll(() => save(INPUT, [VALUES]))

describe('the extension of an output', () => {
  it('is refused where it is unknown, with the extensions that are known', async () => {
    const output = inFolder('out.safetensor')
    const { code, stderr } = await runCli(['convert', INPUT, output])
    expect(code).toBe(64)
    expect(stderr).toContain('unknown extension ".safetensor"; expected one of: .npy, .npz, .safetensors,')
    expect(stderr).toContain('For another name set --format.')
    expect(existsSync(output)).toBe(false)
    await expect(convert(INPUT, output)).rejects.toThrow('set the option format')
    const file = await open(INPUT)
    await expect(convert(file, output)).rejects.toThrow('unknown extension')
    await expect(save(output, file)).rejects.toThrow('unknown extension')
    file.close()
  })

  it('may be any with --format, the one of the input, or none', async () => {
    const other = inFolder('blob.bin')
    copyFileSync(INPUT, other)
    expect(await runCli(['convert', INPUT, inFolder('x.weights'), '--format', 'npz'])).toMatchObject({
      code: 0,
    })
    expect(await runCli(['convert', other, inFolder('y.bin')])).toMatchObject({ code: 0 })
    expect(await runCli(['convert', INPUT, inFolder('noext')])).toMatchObject({ code: 0 })
    expect(readFileSync(inFolder('y.bin'))).toEqual(readFileSync(INPUT))
    expect(readFileSync(inFolder('noext'))).toEqual(readFileSync(INPUT))
  })

  it('is asked for where tensors of no file are saved', async () => {
    const message = 'noext has no extension that names a format; set the option format to one of: npy, npz'
    await expect(save(inFolder('noext2'), [VALUES])).rejects.toThrow(message.replace('noext', 'noext2'))
    expect(existsSync(inFolder('noext2'))).toBe(false)
    await save(inFolder('noext2'), [VALUES], { format: 'npy' })
    expect(readFileSync(inFolder('noext2')).subarray(1, 6).toString()).toBe('NUMPY')
  })
})

describe('options are checked before the input is opened', () => {
  it.each([
    [['--format', 'nonsense'], 'ERR_ARGUMENT: Unknown format "nonsense"'],
    [['--device', 'nonsense'], 'ERR_'],
    [['--dtype', 'nonsense'], 'ERR_DTYPE'],
  ])('%j', async (options, message) => {
    const { code, stderr } = await runCli(['convert', inFolder('missing.btf'), inFolder('x.btf'), ...options])
    expect(code).toBe(64)
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('missing.btf')
  })

  it('and so is the extension of the output', async () => {
    const { code, stderr } = await runCli(['convert', inFolder('missing.btf'), inFolder('x.nonsense')])
    expect(code).toBe(64)
    expect(stderr).toContain('.nonsense')
  })
})
