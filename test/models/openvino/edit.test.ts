/** Constants that are replaced: which bytes of both files change, and which values are read again. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import {
  type OpenFile,
  open,
  reorder,
  save,
  serialize,
  slice,
  type Tensor,
  tensor,
} from '../../../lib/index.js'
import { floats, type IrBytes, irBytes, sampleIr } from '../../formats/openvino/ir_bytes.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-ir-edit-'))
afterAll(() => rmSync(folder, { recursive: true }))

const pathOf = (name: string) => join(folder, `${name}.xml`)
const textOf = (name: string) => readFileSync(pathOf(name), 'utf8')
const binOf = (name: string) => new Uint8Array(readFileSync(join(folder, `${name}.bin`)))

function written(name: string, { xml, bin }: IrBytes): string {
  writeFileSync(pathOf(name), xml)
  writeFileSync(join(folder, `${name}.bin`), bin)
  return pathOf(name)
}

/** Replaces constants of the file `from` and saves it as `to`. */
async function edited(
  from: string,
  to: string,
  changes: Readonly<Record<string, Tensor>>,
): Promise<OpenFile> {
  const file = await open(pathOf(from))
  for (const [name, values] of Object.entries(changes)) file.openvino!.replaceConstant(name, values)
  await save(pathOf(to), file)
  file.close()
  return open(pathOf(to))
}

const numbers = async (file: OpenFile, name: string) =>
  Array.from(await file.dense(name).toTypedArray(), Number)
const float32 = (values: number[], shape: number[]) => tensor(Float32Array.from(values), { shape })

/** A matrix between two other constants, at an odd offset. */
const PLAIN = irBytes({
  constants: [
    { name: 'before', type: 'u8', shape: '', bytes: Uint8Array.of(9) },
    { name: 'm', type: 'f32', shape: '2, 3', bytes: floats(1, 2, 3, 4, 5, 6) },
    { name: 'after', type: 'u8', shape: '', bytes: Uint8Array.of(8) },
  ],
})

/** Constants that share bytes: `a` and `b` all, `c` and `d` four. */
const SHARING = irBytes({
  constants: [
    { name: 'a', type: 'f32', shape: '2', bytes: floats(1, 2), offset: 0 },
    { name: 'b', type: 'f32', shape: '2', bytes: floats(3, 4), offset: 0 },
    { name: 'c', type: 'f32', shape: '2', bytes: floats(5, 6), offset: 8, size: 8 },
    { name: 'd', type: 'f32', shape: '2', bytes: floats(7, 8), offset: 12, size: 8 },
    { name: 'e', type: 'f32', shape: '2', bytes: floats(9, 10), offset: 20, size: 8 },
  ],
})

describe('replaceConstant', () => {
  it('changes the bytes of one constant alone, and no XML', async () => {
    written('plain', PLAIN)
    const file = await edited('plain', 'one', { m: float32([6, 5, 4, 3, 2, 1], [2, 3]) })
    expect(textOf('one')).toBe(textOf('plain'))
    expect(binOf('one')).toEqual(new Uint8Array([9, ...floats(6, 5, 4, 3, 2, 1), 8]))
    expect(await numbers(file, 'm')).toEqual([6, 5, 4, 3, 2, 1])
    file.close()
  })

  it('appends values of bytes that another constant has, too', async () => {
    written('sharing', SHARING)
    const file = await edited('sharing', 'apart', {
      a: float32([-1, -2], [2]),
      d: float32([-7, -8], [2]),
      e: float32([0, 0], [2]),
    })
    const values = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((name) => numbers(file, name)))
    expect(values).toEqual([
      [-1, -2],
      [1, 2],
      [3, 4],
      [-7, -8],
      [0, 0],
    ])
    const { length } = SHARING.bin
    const wanted = Buffer.from(SHARING.bin)
    wanted.fill(0, 20, 28)
    expect(binOf('apart')).toEqual(new Uint8Array(Buffer.concat([wanted, floats(-1, -2), floats(-7, -8)])))
    expect(textOf('apart')).toBe(
      textOf('sharing')
        .replace('offset="0" size="8"', `offset="${length}" size="8"`)
        .replace('offset="12" size="8"', `offset="${length + 8}" size="8"`),
    )
    file.close()
  })

  it('replaces the values in a body, of every packed type, and texts', async () => {
    written('kinds', sampleIr())
    const of = (dtype: 'uint8' | 'int4' | 'uint2', values: number[], shape: number[]) =>
      tensor(values, { dtype, shape })
    const file = await edited('kinds', 'changed', {
      bits: of('uint8', [0, 1, 1, 0, 1, 0, 0, 1, 1], [9]),
      threes: of('uint8', [7, 6, 5, 4, 3, 2, 1, 0], [8]),
      sixes: of('uint8', [63, 0, 32, 31], [2, 2]),
      normal: float32([0, -1, 0.562617], [3]),
      half: of('int4', [-8, 7, 0], [3]),
      texts: tensor(['longer than before', '☃', ''], { dtype: 'string', shape: [3] }),
      'w#8': float32([0.5], []),
    })
    expect(await numbers(file, 'bits')).toEqual([0, 1, 1, 0, 1, 0, 0, 1, 1])
    expect(await numbers(file, 'threes')).toEqual([7, 6, 5, 4, 3, 2, 1, 0])
    expect(await numbers(file, 'sixes')).toEqual([63, 0, 32, 31])
    expect(await numbers(file, 'normal')).toEqual([0, -1, Math.fround(0.562617)])
    expect(await numbers(file, 'half')).toEqual([-8, 7, 0])
    expect(await numbers(file, 'w#8')).toEqual([0.5])
    const texts = file.tensors.get('texts')!
    expect(texts.kind === 'string' && (await texts.strings())).toEqual(['longer than before', '☃', ''])
    // What was not replaced is as it was.
    expect(await numbers(file, 'w')).toEqual([1, 2, 3, 4, 5, 6])
    file.close()
  })

  it('takes other layouts, and views of other files', async () => {
    const source = await open(written('rows', PLAIN))
    const columns = reorder(float32([6, 5, 4, 3, 2, 1], [2, 3]), 'column_major')
    const one = await edited('rows', 'columns', { m: columns })
    expect(await numbers(one, 'm')).toEqual([6, 5, 4, 3, 2, 1])
    const other = await edited('columns', 'columns', { m: slice(source.dense('m'), [{ start: 0, end: 2 }]) })
    expect(binOf('columns')).toEqual(new Uint8Array(PLAIN.bin))
    for (const file of [source, one, other]) file.close()
  })

  it('saves over the file that is open', async () => {
    written('own', SHARING)
    const file = await edited('own', 'own', { a: float32([-1, -2], [2]) })
    expect([await numbers(file, 'a'), await numbers(file, 'b')]).toEqual([
      [-1, -2],
      [1, 2],
    ])
    file.close()
  })

  it('refuses what does not fit, and writes nothing', async () => {
    const path = written('refused', sampleIr())
    const file = await open(path)
    const model = file.openvino!
    const refused = { code: 'ERR_ARGUMENT' }
    const attempt = (name: string, values: unknown) => () => model.replaceConstant(name, values as Tensor)
    expect(attempt('nothing', float32([1], []))).toThrow(expect.objectContaining(refused))
    expect(attempt('w', float32([1, 2, 3, 4, 5, 6], [3, 2]))).toThrow(/float32 \[2, 3\]; float32 \[3, 2\]/)
    expect(attempt('w', tensor([1, 2, 3, 4, 5, 6], { dtype: 'float64', shape: [2, 3] }))).toThrow(/float64/)
    expect(attempt('w', {})).toThrow(expect.objectContaining(refused))
    model.replaceConstant('threes', tensor([0, 1, 2, 3, 4, 5, 6, 8], { dtype: 'uint8', shape: [8] }))
    await expect(save(pathOf('never'), file)).rejects.toMatchObject({ code: 'ERR_VALUE' })
    model.replaceConstant('threes', tensor([0, 1, 2, 3, 4, 5, 6, 7], { dtype: 'uint8', shape: [8] }))
    model.replaceConstant('normal', float32([0, 0.5, 1], [3]))
    await expect(save(pathOf('never'), file)).rejects.toMatchObject({ code: 'ERR_VALUE' })
    expect(() => readFileSync(pathOf('never'))).toThrow(/ENOENT/)
    await expect(serialize(file)).rejects.toMatchObject({ code: 'ERR_VALUE' })
    model.replaceConstant('normal', float32([0, 0, 1], [3]))
    await expect(serialize(file)).rejects.toMatchObject({ code: 'ERR_UNSUPPORTED' })
    file.close()
  })

  it('refuses weights that are missing', async () => {
    writeFileSync(pathOf('alone'), sampleIr().xml)
    const file = await open(pathOf('alone'))
    file.openvino!.replaceConstant('w', float32([1, 2, 3, 4, 5, 6], [2, 3]))
    await expect(save(pathOf('alone2'), file)).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
  })

  it('gives formats without graphs the new values, and others none', async () => {
    const file = await open(written('others', PLAIN))
    file.openvino!.replaceConstant('m', float32([6, 5, 4, 3, 2, 1], [2, 3]))
    await save(join(folder, 'others.safetensors'), file.openvino!)
    const saved = await open(join(folder, 'others.safetensors'))
    expect(await numbers(saved, 'm')).toEqual([6, 5, 4, 3, 2, 1])
    file.close()
    saved.close()
  })
})
