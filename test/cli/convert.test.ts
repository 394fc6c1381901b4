/** `tilework convert`: into a layout and back by the command that it prints, selections, refusals, safe writing. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { findingNotices } from '../../lib/cli/text/finding_line.js'
import { shellQuote } from '../../lib/cli/text/shell_quote.js'
import {
  type AnyTensor,
  cast,
  type DenseTensor,
  type Finding,
  open,
  parseLayout,
  reorder,
  save,
  sparseFromDense,
  type Tensor,
  tensor,
} from '../../lib/index.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../shared_fixtures.js'
import { runCli, runJson } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()

interface ConvertJson {
  readonly output: string
  readonly byteLength: number
  readonly tensors: { readonly name: string; readonly layout: string; readonly shape: number[] }[]
  readonly undo: { readonly command: string; readonly args: string[] }[]
}

interface Stored {
  readonly dtype: string
  readonly shape: readonly number[]
  readonly bytes: Buffer
}

async function stored(tensor: AnyTensor | undefined): Promise<Stored> {
  if (tensor?.kind !== 'dense') throw new Error('The tensor is not dense.')
  return { dtype: tensor.dtype, shape: tensor.shape, bytes: Buffer.from(await tensor.bytes()) }
}

async function storedIn(path: string): Promise<Stored[]> {
  const file = await open(path)
  const tensors = await Promise.all([...file.tensors].map(stored))
  file.close()
  return tensors
}

/** `count` float32 elements 1, 2, 3, …: no zeros, so that padding differs from every element. */
function counting(shape: number[]): Tensor {
  const count = shape.reduce((product, extent) => product * extent, 1)
  return tensor(
    Float32Array.from({ length: count }, (_, index) => index + 1),
    { shape },
  )
}

const IMAGE = inFolder('image.btf')
const MIXED = inFolder('mixed.btf')

beforeAll(async () => {
  await save(IMAGE, [counting([2, 19, 5, 7])])
  const sparse = await sparseFromDense(tensor(new Int32Array([0, 7, 0, 9]), { shape: [2, 2] }))
  await save(MIXED, [counting([3, 4]), counting([1, 2, 1, 2, 1]), sparse, counting([])])
})

describe('convert', () => {
  it('writes the digits of the layout, and its printed command undoes it', async () => {
    const output = inFolder('blocked.btf')
    const { code, stdout, stderr } = await runCli(['convert', IMAGE, output, '--layout', 'b_fs_yx_fsv16'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: `Wrote ${output}: 1 tensor, 8.82 KiB.\n` })
    const back = inFolder('blocked.back.btf')
    const tail = ['--from-layout', 'b_fs_yx_fsv16', '--shape', '2,19,5,7', '--tensor', '#0']
    expect(stdout).toBe(`${shellQuote(['tilework', 'convert', output, back, ...tail])}\n`)
    expect((await storedIn(output))[0]!.shape).toEqual([2, 2, 5, 7, 16])

    const args = stdout.trim().replace(/['"]/g, '').split(' ').slice(1)
    expect(await runCli([...args, '--quiet'])).toEqual({ code: 0, stdout: '', stderr: '' })
    expect(readFileSync(back)).toEqual(readFileSync(IMAGE))
  })

  it.each([
    ['b_fs_yx_fsv16', []],
    ['bs_fs_yx_bsv16_fsv32', []],
    ['b_fs_yx_fsv24', []],
    ['byxf', ['--pad-lower', '0,3,1,1', '--pad-upper', '0,2,2,2']],
    ['b_fs_yx_fsv4', ['--pad-lower', '0,3,0,1']],
    ['os_is_yx_isa8_osv8_isv4', []],
    ['os_is_yx_osv32_isv4_swizzled_by_2', []],
    ['iy_xs_os_xsv2_osv16__ao32', []],
  ])('%s %j and back through undo', async (layout, padding) => {
    const output = inFolder(`${layout}.btf`)
    const report = await runJson<ConvertJson>(['convert', IMAGE, output, '--layout', layout, ...padding])
    expect(report.byteLength).toBe(readFileSync(output).length)
    expect(report.undo).toHaveLength(1)
    await runJson(report.undo[0]!.args)
    expect(readFileSync(report.undo[0]!.args[2]!)).toEqual(readFileSync(IMAGE))
  })

  it('says that OpenVINO has no such layout, unless it has no blocks', async () => {
    const of = async (layout: string, ...flags: string[]) =>
      (await runCli(['convert', IMAGE, inFolder('other.btf'), '--layout', layout, ...flags])).stderr
    const note = 'tilework: b_fs_yx_fsv61: OpenVINO has no layout of this name; nearest: b_fs_yx_fsv16.\n'
    expect(await of('b_fs_yx_fsv61')).toContain(note)
    expect(await of('b_fs_yx_fsv61', '--quiet')).not.toContain('OpenVINO')
    for (const known of ['b_fs_yx_fsv16', 'nhwc', 'byxf', 'fbyx'])
      expect(await of(known)).not.toContain('OpenVINO')
  })

  it('goes from one layout into another, with padding on both sides, and back', async () => {
    const first = inFolder('first.btf')
    const pad = ['--pad-lower', '0,1,0,0']
    await runJson(['convert', IMAGE, first, '--layout', 'b_fs_yx_fsv4', ...pad])
    const second = inFolder('second.btf')
    const { undo } = await runJson<ConvertJson>([
      ...['convert', first, second, '--from-layout', 'b_fs_yx_fsv4', '--shape', '2,19,5,7'],
      ...['--from-pad-lower', '0,1,0,0', '--layout', 'byxf', '--pad-upper', '0,0,1,0'],
    ])
    const file = await open(IMAGE)
    const expected = await reorder(file.tensors.at(0)!, 'byxf', { upper: [0, 0, 1, 0] }).bytes()
    file.close()
    expect((await storedIn(second))[0]!.bytes).toEqual(Buffer.from(expected))
    await runJson(undo[0]!.args)
    expect(readFileSync(undo[0]!.args[2]!)).toEqual(readFileSync(first))
  })

  it('joins data and weights layouts with --as weights', async () => {
    const output = inFolder('weights.btf')
    const from = ['--from-layout', 'bfyx', '--shape', '2,19,5,7']
    const args = ['convert', IMAGE, output, ...from, '--layout', 'os_iyx_osv16']
    expect((await runCli(args)).stderr).toMatch(/^tilework: ERR_LAYOUT_JOIN: /)
    const { undo } = await runJson<ConvertJson>([...args, '--as', 'weights'])
    await runJson(undo[0]!.args)
    expect((await storedIn(undo[0]!.args[2]!))[0]!.bytes).toEqual((await storedIn(IMAGE))[0]!.bytes)
  })

  it('writes only the selected tensors, by name and by index', async () => {
    const output = inFolder('selected.btf')
    const report = await runJson<ConvertJson>(['convert', MIXED, output, '--tensor', '#3', '--tensor', '0'])
    expect(report.tensors.map(({ shape }) => shape)).toEqual([[], [3, 4]])
    expect(report.undo).toEqual([])
    const { error } = await runJson<{ error: { code: string; message: string } }>(
      ['convert', MIXED, output, '--tensor', '#4'],
      64,
    )
    expect(error).toMatchObject({ code: 'ERR_ARGUMENT', message: expect.stringContaining('4 tensors') })
  })

  it('undoes each of several tensors, the scalar included', async () => {
    const output = inFolder('several.btf')
    const select = ['--tensor', '#0', '--tensor', '#3']
    const { undo } = await runJson<ConvertJson>([
      'convert',
      MIXED,
      output,
      '--layout',
      'b_fs_yx_fsv4',
      ...select,
    ])
    expect(undo.map(({ args }) => args[2])).toEqual([
      inFolder('several.back.0.btf'),
      inFolder('several.back.1.btf'),
    ])
    const original = await storedIn(inFolder('selected.btf'))
    for (const { args } of undo) await runJson(args)
    expect(await storedIn(undo[0]!.args[2]!)).toEqual([original[1]])
    expect(await storedIn(undo[1]!.args[2]!)).toEqual([original[0]])
  })

  it.each([
    ['npy', 'b_fs_yx_fsv16', '--from-layout b_fs_yx_fsv16'],
    ['npy', 'column_major', '--layout row_major'],
    ['npz', 'column_major', '--layout row_major'],
    ['safetensors', 'b_fs_yx_fsv16', '--layout row_major'],
  ])(
    '%s in %s comes back with the options that the format needs to keep the layout',
    async (format, layout, option) => {
      const output = inFolder(`noted.${format}`)
      const { stdout } = await runCli(['convert', IMAGE, output, '--layout', layout])
      expect(stdout).toContain(` ${option} `)
      await runCli(stdout.trim().replace(/['"]/g, '').split(' ').slice(1))
      const again = inFolder('again.btf')
      await runJson(['convert', inFolder(`noted.back.${format}`), again])
      expect(readFileSync(again)).toEqual(readFileSync(IMAGE))
    },
  )

  it.each([
    ['safetensors', 'b_fs_yx_fsv16'],
    ['npy', 'column_major'],
  ])('what %s keeps in %s is written row-major where it would be forgotten', async (format, layout) => {
    const kept = inFolder(`named.${format}`)
    await runJson(['convert', IMAGE, kept, '--layout', layout])
    const output = inFolder('named.btf')
    const { undo } = await runJson<ConvertJson>(['convert', kept, output])
    expect(undo).toEqual([])
    expect(readFileSync(output)).toEqual(readFileSync(IMAGE))
  })

  it('names every tensor that does not fit, and writes nothing', async () => {
    const output = inFolder('refused.btf')
    const { code, stderr } = await runCli(['convert', MIXED, output, '--layout', 'b_fs_yx_fsv16'])
    expect(code).toBe(64)
    expect(stderr).toMatch(/2 of 4 tensors .*"1": .*; "2": .*--tensor/)
    expect(existsSync(output)).toBe(false)
  })

  it('without options copies the file byte for byte', async () => {
    const output = inFolder('same.btf')
    await runJson(['convert', MIXED, output])
    expect(readFileSync(output)).toEqual(readFileSync(MIXED))
  })

  it('may write over its own input', async () => {
    const path = inFolder('in_place.btf')
    writeFileSync(path, readFileSync(IMAGE))
    await runJson(['convert', path, path, '--layout', 'byxf'])
    expect((await storedIn(path))[0]!.shape).toEqual([2, 5, 7, 19])
    await runJson(['convert', path, path, '--from-layout', 'byxf', '--shape', '2,19,5,7'])
    expect(readFileSync(path)).toEqual(readFileSync(IMAGE))
  })

  it('creates the folder of --out-dir, and refuses a folder as OUT', async () => {
    const folder = inFolder('made/deep')
    const { output } = await runJson<ConvertJson>(['convert', IMAGE, '--out-dir', folder])
    expect(readdirSync(folder)).toEqual([basename(IMAGE)])
    expect(readFileSync(output)).toEqual(readFileSync(IMAGE))
    mkdirSync(inFolder('plain'))
    expect((await runCli(['convert', IMAGE, inFolder('plain')])).stderr).toContain('--out-dir')
  })

  it('casts in the requested layout, and reports what cannot be cast', async () => {
    const output = inFolder('cast.npy')
    const [image] = (await open(IMAGE)).tensors
    if (image?.kind !== 'dense') throw new Error('the image is a dense tensor')
    expect((await runCli(['convert', IMAGE, output, '--dtype', 'float16'])).code).toBe(0)
    const half = (await open(output)).tensors.at(0) as DenseTensor
    expect(half).toMatchObject({ dtype: 'float16', shape: image.shape })
    expect(await half.toTypedArray()).toEqual(await cast(image, 'float16').toTypedArray())
    const layout = ['--dtype', 'i8', '--layout', 'b_fs_yx_fsv4']
    expect((await runCli(['convert', IMAGE, output, ...layout])).code).toBe(0)
    const blocked = (await open(output)).tensors.at(0) as DenseTensor
    expect(blocked.dtype).toBe('int8')
    expect(await blocked.bytes()).toEqual(await reorder(cast(image, 'int8'), 'b_fs_yx_fsv4').bytes())
    const refused = await runCli(['convert', IMAGE, inFolder('cast.btf'), '--dtype', 'float16'])
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('ERR_UNSUPPORTED') })
    expect((await runCli(['convert', IMAGE, output, '--dtype', 'float33'])).stderr).toContain('ERR_DTYPE')
  })

  it('copies the file where all tensors have the element type', async () => {
    const output = inFolder('same.btf')
    expect((await runCli(['convert', IMAGE, output, '--dtype', 'f32'])).code).toBe(0)
    expect(readFileSync(output)).toEqual(readFileSync(IMAGE))
  })

  it.each([
    [['--format', 'nonsense'], 64, 'ERR_ARGUMENT'],
    [['--layout', 'nonsense'], 64, 'ERR_LAYOUT_NAME'],
    [['--from-layout', 'b_fs_yx_fsv16', '--shape', '2,19,5,8'], 64, 'ERR_'],
  ])('%j is refused before anything is written', async (options, code, start) => {
    const output = inFolder('never.btf')
    const result = await runJson<{ error: { code: string } }>(['convert', IMAGE, output, ...options], code)
    expect(result.error.code).toMatch(new RegExp(`^${start}`))
    expect(existsSync(output)).toBe(false)
  })

  it('input and output errors exit with 74, damaged input with 2, and leave nothing behind', async () => {
    expect((await runCli(['convert', inFolder('none.btf'), inFolder('x.btf')])).code).toBe(74)
    expect((await runCli(['convert', IMAGE, inFolder('no/such/folder/x.btf')])).code).toBe(74)
    const damaged = inFolder('damaged.btf')
    writeFileSync(damaged, readFileSync(IMAGE).subarray(0, 100))
    expect((await runCli(['convert', damaged, inFolder('x.btf')])).code).toBe(2)
    expect(existsSync(inFolder('x.btf'))).toBe(false)
  })

  it('a cancelled conversion leaves the old file', async () => {
    const path = inFolder('kept.btf')
    writeFileSync(path, 'old')
    const result = await runCli(['convert', IMAGE, path, '--layout', 'byxf'], { signal: AbortSignal.abort() })
    expect(result.code).toBe(130)
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(
      readdirSync(inFolder('.')).filter((name) => name.startsWith('kept') || name.startsWith('.kept')),
    ).toEqual(['kept.btf'])
  })

  it('reports findings of the input on stderr and in JSON', async () => {
    const deviating = inFolder('deviating.btf')
    const bytes = readFileSync(IMAGE)
    // A reserved byte of the record: safe to read, but against the rules.
    bytes[Number(bytes.readBigUInt64LE(8)) + 12] = 1
    writeFileSync(deviating, bytes)
    const { code, stderr } = await runCli([
      'convert',
      deviating,
      inFolder('kept_bytes.btf'),
      '--tensor',
      '0',
      '--quiet',
    ])
    expect(code).toBe(0)
    expect(stderr).toMatch(/^tilework: .*deviating\.btf: [A-Z_]+: .+\n$/)
    const report = await runJson<{ findings: object[] }>(['convert', deviating, inFolder('kept_bytes.btf')])
    expect(report.findings).toHaveLength(1)
  })

  it('prints five findings of the input, then their number', () => {
    const finding: Finding = {
      severity: 'warning',
      code: 'ERR_UNSUPPORTED',
      path: '',
      offset: 0,
      message: 'Left out.',
    }
    const lines = findingNotices('in\t.npz', Array<Finding>(6).fill(finding))
    expect(lines).toHaveLength(6)
    expect(lines[0]).toBe('warning: in\\u0009.npz: ERR_UNSUPPORTED: Left out.')
    expect(lines[5]).toBe('in\\u0009.npz has 6 findings; "tilework check" lists them.')
  })

  it("'#1' is an index even where a tensor has that name; name: says that a name is meant", async () => {
    const input = inFolder('odd_names.safetensors')
    const names = ['#1', 'name:x', 'x', 'y']
    await save(
      input,
      names.map((name, index) => tensor(Float32Array.of(index), { name })),
    )
    const file = await open(input)
    const order = [...file.tensors].map(({ name }) => name)
    file.close()
    const selected = async (selector: string): Promise<string[]> => {
      const output = inFolder('odd_name.safetensors')
      const { tensors } = await runJson<ConvertJson>(['convert', input, output, '--tensor', selector])
      return tensors.map(({ name }) => name)
    }
    for (const [index, name] of order.entries()) expect(await selected(`#${index}`)).toEqual([name])
    expect(await selected('name:#1')).toEqual(['#1'])
    expect(await selected('name:x')).toEqual(['x'])
    expect(await selected('name:name:x')).toEqual(['name:x'])
    const wrong = await runCli(['convert', input, inFolder('never.btf'), '--tensor', 'z'])
    expect(wrong.stderr).toContain('"name:#1"')
  })

  it('undoes tensors by index, whatever their names', async () => {
    const input = inFolder('swapped.safetensors')
    const pair = ['#1', '#0'].map((name, seed) =>
      tensor(new Float32Array(2 * 19).fill(seed + 1), { name, shape: [2, 19, 1, 1] }),
    )
    await save(input, pair)
    const output = inFolder('swapped_blocked.safetensors')
    const { undo } = await runJson<ConvertJson>(['convert', input, output, '--layout', 'b_fs_yx_fsv16'])
    const original = await storedIn(input)
    for (const [index, { args }] of undo.entries()) {
      await runJson(args)
      expect(await storedIn(args[2]!)).toEqual([original[index]])
    }
  })

  it('names an undo file without commands', async () => {
    const undo = inFolder('undo.sh')
    const args = ['convert', IMAGE, inFolder('half.npz'), '--dtype', 'float16', '--undo', undo, '--quiet']
    const note = `tilework: ${undo} is empty: there is no change of layout that needs an undo command.\n`
    expect(await runCli(args)).toEqual({ code: 0, stdout: '', stderr: note })
    expect(readFileSync(undo, 'utf8')).toBe('')
    const full = await runCli([...args, '--layout', 'b_fs_yx_fsv16'])
    expect(full).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  it('reports on the stderr of a terminal what was written', async () => {
    const { stdout, stderr } = await runCli(
      ['convert', IMAGE, inFolder('reported.btf'), '--layout', 'b_fs_yx_fsv16'],
      { isTTY: true },
    )
    expect(stderr).toMatch(/^Wrote .*reported\.btf: 1 tensor, 8\.\d+ KiB\. To undo it:\n$/)
    expect(stdout).toMatch(/^tilework convert .*\n$/)
  })
})

describe('the real files', THIRD_PARTY, () => {
  it.each(thirdPartyFiles('btf').map(({ path }) => thirdPartyPath(path)))(
    '%s is saved unchanged',
    async (path) => {
      const output = inFolder(`same-${basename(path)}`)
      await runJson(['convert', path, output])
      expect(readFileSync(output)).toEqual(readFileSync(path))
    },
  )

  it.each(thirdPartyFiles('btf').map(({ path }) => thirdPartyPath(path)))(
    'every tensor of %s goes to b_fs_yx_fsv16 and back',
    async (path) => {
      const originals = await storedIn(path)
      for (const [index, original] of originals.entries()) {
        const blocked = inFolder(`${index}-${basename(path)}`)
        const options = ['--layout', 'b_fs_yx_fsv16', '--tensor', `#${index}`]
        const { undo } = await runJson<ConvertJson>(['convert', path, blocked, ...options])
        const { digits } = parseLayout('b_fs_yx_fsv16').storage(original.shape)
        expect((await storedIn(blocked))[0]!.shape).toEqual(digits!.map(({ radix }) => radix))
        const back = inFolder(`back-${index}-${basename(path)}`)
        const from = ['--from-layout', 'b_fs_yx_fsv16', '--shape', original.shape.join(',')]
        await runJson(['convert', blocked, back, ...from, '--tensor', '#0'])
        expect(await storedIn(back)).toEqual([original])
        await runJson(undo[0]!.args)
        expect(readFileSync(undo[0]!.args[2]!)).toEqual(readFileSync(back))
      }
    },
  )
})
