/** `tilework layout`: against the layout vectors, and what a person sees. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MAX_OFFSETS } from '../../lib/cli/commands/layout_offsets.js'
import { LAYOUT_NAMES } from '../../lib/index.js'
import { records, type VectorRecord } from '../layout/vector_records.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()

interface LayoutJson {
  readonly name: string
  readonly shape: number[]
  readonly elements: number
  readonly byteLength: number
  readonly digits?: { readonly axes: string; readonly radix: number; readonly weight: number }[]
  readonly offsets: number[]
}

function argumentsOf(record: VectorRecord): string[] {
  return [
    ...['layout', record.format, '--shape', record.shape.join(','), '--offsets'],
    ...(record.pad_lower ? ['--pad-lower', record.pad_lower.join(',')] : []),
    ...(record.pad_upper ? ['--pad-upper', record.pad_upper.join(',')] : []),
    ...(record.dtype_class === 'i4' ? ['--dtype', 'int4'] : []),
  ]
}

describe('layout --offsets --json agrees with the layout vectors', () => {
  const named = records.map((record) => [`${record.format} [${record.shape}]`, record] as const)

  it.each(named.filter(([, record]) => record.meaningful))('%s', async (_, record) => {
    const result = await runJson<LayoutJson>(argumentsOf(record))
    const bytes = new Uint8Array(new BigUint64Array(result.offsets.map(BigInt)).buffer)
    expect(result.shape).toEqual(record.shape)
    expect(result.elements).toBe(record.padded_count)
    // The last column of an odd X has another order; test/layout/properties.test.ts lists the layouts.
    if (result.digits) {
      expect(result.digits.reduce((product, { radix }) => product * radix, 1)).toBe(record.padded_count)
    } else expect(record.format).toMatch(/^g?iy_xs_os_xsv2_osv/)
    expect(result.offsets).toHaveLength(record.logical_count)
    expect(result.offsets.slice(0, 32)).toEqual(record.first_offsets)
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(record.offsets_sha256)
  })

  it.each(named.filter(([, record]) => !record.meaningful))('%s is refused', async (_, record) => {
    const { error } = await runJson<{ error: { code: string } }>(argumentsOf(record), 64)
    expect(error.code).toBe(record.kind === 'marker' ? 'ERR_LAYOUT_NAME' : 'ERR_LAYOUT_SHAPE')
  })
})

describe('layout', () => {
  it('lists the names of the catalogue, one per line when piped', async () => {
    const { code, stdout } = await runCli(['layout', '--list'])
    expect(code).toBe(0)
    expect(stdout.trimEnd().split('\n')).toEqual([...LAYOUT_NAMES])
    expect(await runJson(['layout', '--list'])).toEqual({ names: [...LAYOUT_NAMES] })
    const terminal = await runCli(['layout', '--list'], { isTTY: true, env: { NO_COLOR: '1' } })
    expect(terminal.stdout).toMatch(/^b_fs_yx_fsv16 +data +bfyx +b f\/16 y x · f16$/m)
  })

  it('explains a name without a shape', async () => {
    const { code, stdout } = await runCli(['layout', 'b_fs_yx_fsv16'])
    expect(code).toBe(0)
    for (const word of ['batch', 'feature', 'height', 'width', 'aBcd16b']) expect(stdout).toContain(word)
    const json = await runJson<object>(['layout', 'b_fs_yx_fsv16'])
    expect(json).toMatchObject({ name: 'b_fs_yx_fsv16', kind: 'data', axes: 'bfyx', onednnTag: 'aBcd16b' })
  })

  it('binds names of the grammar, aliases and row_major to shapes', async () => {
    expect(await runJson(['layout', 'b_fs_yx_fsv24', '--shape', '1,25,1,1'])).toMatchObject({ elements: 48 })
    expect(await runJson(['layout', 'bs_x_bsv16', '--shape', '3,2'])).toMatchObject({ name: 'bs_f_bsv16' })
    const scalar = await runJson<LayoutJson>(['layout', 'row_major', '--shape', 'scalar', '--offsets'])
    expect(scalar).toMatchObject({ shape: [], elements: 1, offsets: [0] })
    const empty = await runJson<LayoutJson>(['layout', 'bfyx', '--shape', '0,9007199254740991', '--offsets'])
    expect(empty).toMatchObject({ elements: 0, byteLength: 0, offsets: [] })
  })

  it('draws for a terminal, coloured there and plain when piped', async () => {
    const args = ['layout', 'b_fs_yx_fsv16', '--shape', '2,2,2,2']
    const plain = await runCli(args)
    expect(plain).toMatchObject({ code: 0, stderr: '' })
    expect(plain.stdout).not.toContain('\u001b')
    expect(plain.stdout).toMatch(/f1/)
    const coloured = await runCli(args, { isTTY: true })
    expect(coloured.stdout).toContain('\u001b[')
    const noColor = await runCli(args, { isTTY: true, env: { NO_COLOR: '1' } })
    expect(noColor.stdout).not.toContain('\u001b')
  })

  it('writes an SVG', async () => {
    const path = inFolder('layout.svg')
    const args = ['layout', 'b_fs_yx_fsv16', '--shape', '2,2,2,2', '--svg', path]
    expect(await runCli(args)).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(readFileSync(path, 'utf8')).toMatch(/^<svg[\s\S]*<\/svg>\s*$/)
    const { error } = await runJson<{ error: object }>(
      ['layout', 'bfyx', '--shape', '1', '--svg', inFolder('no/such/folder.svg')],
      74,
    )
    expect(error).toMatchObject({ code: 'ERR_IO' })
  })

  it('prints coordinates and offsets in two columns', async () => {
    const { stdout } = await runCli(['layout', 'byxf', '--shape', '1,2,1,2', '--offsets'])
    expect(stdout).toBe('0,0,0,0\t0\n0,0,0,1\t2\n0,1,0,0\t1\n0,1,0,1\t3\n')
  })

  it('lists 100,000 offsets quickly and refuses more than its limit', async () => {
    const { offsets } = await runJson<LayoutJson>([
      ...['layout', 'bs_fs_zyx_bsv16_fsv32', '--shape', '10,10,10,10,10', '--offsets'],
    ])
    expect(new Set(offsets).size).toBe(100_000)
    const { error } = await runJson<{ error: { code: string; message: string } }>(
      ['layout', 'bfyx', '--shape', `2,${MAX_OFFSETS}`, '--offsets'],
      64,
    )
    expect(error.code).toBe('ERR_LIMIT')
    expect(error.message).toContain(String(MAX_OFFSETS))
  }, 20_000)

  it.each([
    [['layout'], 'ERR_ARGUMENT'],
    [['layout', 'no_such_layout'], 'ERR_LAYOUT_NAME'],
    [['layout', 'bfyx', '--offsets'], 'ERR_ARGUMENT'],
    [['layout', 'bfyx', '--shape', '1,x'], 'ERR_ARGUMENT'],
    [['layout', 'bfyx', '--shape', '1,-2'], 'ERR_ARGUMENT'],
    [['layout', 'bfyx', '--shape', '1,,2'], 'ERR_ARGUMENT'],
    [['layout', 'bfyx', '--shape', '9007199254740992'], 'ERR_ARGUMENT'],
    [['layout', 'bfyx', '--shape', '1,2,3,4,5'], 'ERR_LAYOUT_SHAPE'],
    [['layout', 'bfyx', '--shape', '9007199254740991,2'], 'ERR_OVERFLOW'],
    [['layout', 'bfyx', '--shape', '1', '--dtype', 'float33'], 'ERR_DTYPE'],
  ])('%j is wrong use', async (args, code) => {
    const { error } = await runJson<{ error: { code: string } }>(args, 64)
    expect(error.code).toBe(code)
  })
})

describe('refused options', () => {
  it.each([
    [['layout', 'bfyx', '--dtype', 'foo'], 'ERR_DTYPE'],
    [['layout', 'bfyx', '--dtype', 'int8'], '--shape'],
    [['layout', '--list', 'bfyx'], 'ERR_ARGUMENT'],
    [['layout', '--list', '--shape', '1,2'], 'ERR_ARGUMENT'],
  ])('%j is refused', async (args, part) => {
    const { code, stdout, stderr } = await runCli(args)
    expect({ code, stdout }).toEqual({ code: 64, stdout: '' })
    expect(stderr).toContain(part)
  })

  it.each([
    ['NCHW', 'bfyx is a data layout'],
    ['hwio', 'yxio is a weights layout'],
    ['HWC', 'hwc is a data layout'],
  ])('explains the alias %s', async (alias, headline) => {
    const { code, stdout } = await runCli(['layout', alias])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining(headline) })
  })

  it.each([
    ['BFYX', 'bfyx'],
    ['OS_IS_YX_ISV16_OSV16', 'os_is_yx_isv16_osv16'],
  ])('%s in upper case is refused with the name in lower case', async (name, right) => {
    const shown = await runCli(['layout', name])
    expect(shown).toMatchObject({ code: 64, stderr: expect.stringContaining(`did you mean "${right}"?`) })
    expect((await runCli(['convert', 'a.btf', 'b.btf', '--layout', name])).stderr).toBe(shown.stderr)
  })
})
