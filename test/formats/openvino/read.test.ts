/** What is read of an IR: values of every stored form, names, ports, and what is refused. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { check, convert, type DenseTensor, diff, open, save } from '../../../lib/index.js'
import { type ConstantInit, constLayer, floats, type IrBytes, irBytes, openIr, sampleIr } from './ir_bytes.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-ir-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Writes the files; returns the path of the XML file. */
function written(name: string, { xml, bin }: IrBytes): string {
  writeFileSync(join(folder, `${name}.xml`), xml)
  writeFileSync(join(folder, `${name}.bin`), bin)
  return join(folder, `${name}.xml`)
}

const numbers = async (tensor: unknown) => Array.from(await (tensor as DenseTensor).toTypedArray(), Number)

describe('a whole file', () => {
  it('names constants by their graph, and those of one name by their layer', async () => {
    const file = await openIr(sampleIr())
    expect(Array.from(file.tensors, ({ name }) => name)).toEqual([
      ...[
        'w',
        'bits',
        'threes',
        'sixes',
        'normal',
        'half',
        'texts',
        'empty',
        'w#8',
        'a>b "&<☃',
        'loop/body/w',
      ],
    ])
    expect(await numbers(file.tensors.get('loop/body/w'))).toEqual([2, 3])
    expect(await numbers(file.tensors.get('w#8'))).toEqual([7])
    expect(file.tensors.get('w#8')!.shape).toEqual([])
  })

  // The bytes and numbers of the format's description, chosen there one by one.
  it.each([
    ['bits', 'u1', [1, 0, 0, 0, 0, 0, 0, 1, 1]],
    ['threes', 'u3', [2, 2, 3, 0, 5, 5, 4, 7]],
    ['sixes', 'u6', [50, 33, 20, 3]],
    ['normal', 'nf4', [-1, 1, 0]],
    ['half', undefined, [1, 2, -1]],
    ['empty', undefined, []],
  ])('%s', async (name, type, wanted) => {
    const tensor = (await openIr(sampleIr())).dense(name)
    expect([tensor.metadata.get('openvino.type'), await numbers(tensor)]).toEqual([type, wanted])
    const middle = await tensor
      .bytes({ start: 1, end: Math.max(1, tensor.storage.byteLength) })
      .catch(() => null)
    if (wanted.length > 0) expect(middle).toEqual((await tensor.bytes()).subarray(1))
  })

  it('reads texts', async () => {
    const tensor = (await openIr(sampleIr())).tensors.get('texts')!
    expect(tensor.kind === 'string' && (await tensor.strings())).toEqual(['', 'ab', 'ü☃'])
  })

  it('lists inputs, outputs and run-time information', async () => {
    const { openvino: model } = await openIr(sampleIr())
    expect(model).toMatchObject({ version: 11, name: 'm', layerCount: 13 })
    expect(model!.inputs).toEqual([
      { name: 'x', tensorNames: ['x', 'a,b'], type: 'f32', shape: ['?', 3, '8..64'] },
    ])
    expect(model!.outputs).toEqual([{ name: 'out', tensorNames: ['y'], type: 'f32', shape: ['?', 4] }])
    expect([...model!.rtInfo]).toEqual([
      ['OpenVINO Runtime', '1'],
      ['conversion/input', '[1]'],
    ])
  })

  it('becomes safetensors, with the dtypes that hold packed types', async () => {
    const [path, target] = [written('convert', PAIR), join(folder, 'out.safetensors')]
    await convert(path, target)
    const out = await open(target)
    expect([await numbers(out.dense('a')), await numbers(out.dense('b')), out.dense('b').dtype]).toEqual([
      [1, 2],
      [6, 6],
      'uint8',
    ])
    out.close()
  })
})

const PAIR = irBytes({
  constants: [
    { name: 'a', type: 'f32', shape: '2', bytes: floats(1, 2) },
    { name: 'b', type: 'u3', shape: '2', bytes: Uint8Array.of(0xa0, 0, 0xc0) },
  ],
})

describe('the two files of a copy', () => {
  const contents = (name: string) =>
    ['xml', 'bin'].map((kind) => readFileSync(join(folder, `${name}.${kind}`)))

  it('have the new name, and the same bytes', async () => {
    const file = await open(written('first', PAIR))
    await save(join(folder, 'copy.xml'), file)
    expect(contents('copy')).toEqual(contents('first'))
    // Again: the pair that is there is replaced, and that of the file itself stays.
    await save(join(folder, 'copy.xml'), file)
    await save(join(folder, 'first.xml'), file)
    expect(contents('first')).toEqual([Buffer.from(PAIR.xml), Buffer.from(PAIR.bin)])
    file.close()
    expect(await diff(join(folder, 'first.xml'), join(folder, 'copy.xml'))).toMatchObject({
      ...{ isSame: true, sameBits: 2, graph: [] },
    })
  })

  it('do not replace a file that belongs to no IR', async () => {
    writeFileSync(join(folder, 'other.bin'), 'theirs')
    const file = await open(written('second', PAIR))
    const wanted = { code: 'ERR_ARGUMENT', message: expect.stringContaining('other.bin') }
    await expect(save(join(folder, 'other.xml'), file)).rejects.toMatchObject(wanted)
    writeFileSync(join(folder, 'other.xml'), '<config/>')
    await expect(save(join(folder, 'other.xml'), file)).rejects.toMatchObject(wanted)
    expect(readFileSync(join(folder, 'other.bin'), 'utf8')).toBe('theirs')
    await expect(save(join(folder, 'other'), file)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
    file.close()
  })

  it('are not made of tensors alone', async () => {
    const file = await open(written('third', PAIR))
    await expect(save(join(folder, 'new.xml'), [...file.tensors])).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
    })
    file.close()
  })
})

describe('weights that are missing', () => {
  it('leave tensors without data, and are an error of a check', async () => {
    writeFileSync(join(folder, 'alone.xml'), PAIR.xml)
    const path = join(folder, 'alone.xml')
    const file = await open(path)
    expect(file.findings).toMatchObject([{ code: 'ERR_NO_DATA', severity: 'warning' }])
    expect([file.dense('a').shape, file.dense('a').hasData]).toEqual([[2], false])
    await expect(file.dense('a').bytes()).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    file.close()
    await expect(open(path, { level: 'strict' })).rejects.toMatchObject({ code: 'ERR_NO_DATA' })
    expect(await check(path)).toMatchObject([{ severity: 'error' }])
  })

  it('are not needed by a model without constants', async () => {
    writeFileSync(join(folder, 'empty.xml'), irBytes({}).xml)
    expect(await check(join(folder, 'empty.xml'), { level: 'strict' })).toEqual([])
  })
})

describe('what is refused', () => {
  const one = (change: Partial<ConstantInit>) =>
    irBytes({ constants: [{ name: 'a', type: 'f32', shape: '2', bytes: floats(1, 2), ...change }] })

  it.each<[string, Partial<ConstantInit>, string]>([
    ['a size that is one byte short', { size: 7 }, 'ERR_TRUNCATED'],
    ['a range that ends one byte behind the file', { offset: 1 }, 'ERR_TRUNCATED'],
    ['u1 with a byte too few', { type: 'u1', shape: '65', size: 8 }, 'ERR_TRUNCATED'],
    ['u3 with a group that is partly there', { type: 'u3', shape: '17', size: 8 }, 'ERR_TRUNCATED'],
    ['a text that is too short for its offsets', { type: 'string', shape: '1', size: 8 }, 'ERR_TRUNCATED'],
    ['an offset above 2^53', { offset: '9007199254740992' }, 'ERR_OVERFLOW'],
    ['an offset above 2^64', { offset: '18446744073709551616' }, 'ERR_OVERFLOW'],
    ['a number with a sign', { offset: '+0' }, 'ERR_VALUE'],
    ['a number with a blank', { offset: '0 ' }, 'ERR_VALUE'],
    ['an empty number', { offset: '' }, 'ERR_VALUE'],
    ['a shape whose product wraps', { shape: '4294967296, 4294967296' }, 'ERR_TRUNCATED'],
    ['a shape of 65 dimensions', { shape: Array(65).fill(1).join(',') }, 'ERR_RANK'],
    ['a shape of a million dimensions', { shape: Array(1_000_000).fill(1).join(',') }, 'ERR_RANK'],
    ['an empty dimension', { shape: '2,' }, 'ERR_VALUE'],
    ['a type in upper case', { type: 'F32' }, 'ERR_DTYPE'],
    ['a name of an object', { type: '__proto__' }, 'ERR_DTYPE'],
  ])('%s', async (_, change, code) => {
    await expect(openIr(one(change))).rejects.toMatchObject({ code, path: 'constants["a"]' })
  })

  it.each<[string, Partial<ConstantInit>]>([
    ['the whole file', {}],
    ['a size above what is needed', { shape: '1' }],
    ['64 dimensions', { shape: Array(64).fill(1).join(',') }],
    ['u1 with all its bytes', { type: 'u1', shape: '64' }],
    ['u3 with all its groups', { type: 'u3', shape: '16', size: 6 }],
  ])('and read: %s', async (_, change) => {
    expect((await openIr(one(change))).tensors.length).toBe(1)
  })

  it.each([
    ['a count that is not that of the shape', [2, 0, 0]],
    ['a first offset above 0', [1, 1, 2]],
    ['offsets that go down', [1, 0, -1]],
    ['offsets behind the texts', [1, 0, 5]],
  ])('texts with %s', async (_, head) => {
    const bytes = Buffer.concat([Buffer.from(Int32Array.from(head).buffer), Buffer.from('text')])
    const ir = one({ type: 'string', shape: '1', bytes })
    const tensor = (await openIr(ir)).tensors.get('a')!
    await expect(tensor.kind === 'string' && tensor.strings()).rejects.toMatchObject({
      code: 'ERR_OFFSET_RANGE',
    })
    expect(await check(written('texts', ir))).toMatchObject([{ code: 'ERR_OFFSET_RANGE', severity: 'error' }])
  })

  it('more constants, more XML and more bytes than the limits', async () => {
    const ir = sampleIr()
    await expect(openIr(ir, { limits: { tensors: 10 } })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    await expect(openIr(ir, { limits: { headerBytes: ir.xml.length - 1 } })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
    })
    // 24, 9, 8, 4, 12, 2, 27, 0, 4, 1 and 8 bytes.
    await expect(openIr(ir, { limits: { totalBytes: 98 } })).rejects.toMatchObject({ code: 'ERR_LIMIT' })
    expect((await openIr(ir, { limits: { totalBytes: 99, tensors: 11 } })).tensors.length).toBe(11)
  })

  it('bodies whose names repeat a long one', async () => {
    const body = constLayer(0, { name: 'w', type: 'u8', shape: '', offset: 0, size: 1 }).repeat(400)
    const layers = `<layer id="1" name="${'n'.repeat(1_000_000)}" type="Loop"><body><layers>${body}</layers></body></layer>`
    await expect(openIr({ ...irBytes({ layers }), bin: Uint8Array.of(0) })).rejects.toMatchObject({
      code: 'ERR_LIMIT',
    })
  })

  it('only by a strict check: ids that repeat, and edges to layers that there are not', async () => {
    const constant = constLayer(0, { name: 'w', type: 'u8', shape: '', offset: 0, size: 1 })
    const edges = '<edge from-layer="0" from-port="0" to-layer="7" to-port="0"/>'
    const path = written('links', {
      ...irBytes({ layers: constant + constant, edges }),
      bin: Uint8Array.of(0),
    })
    expect(await check(path)).toMatchObject([
      { code: 'ERR_DUPLICATE', severity: 'warning' },
      { code: 'ERR_GRAPH', severity: 'warning' },
    ])
    expect((await check(path, { level: 'strict' })).map(({ severity }) => severity)).toEqual([
      'error',
      'error',
    ])
  })

  it('40,000 layers and a name of 3 MB are read in linear time', async () => {
    const layers = '<layer id="999" name="z" type="Relu" version="opset1"/>'.repeat(40_000)
    const name = 'n'.repeat(3_000_000)
    const ir = irBytes({ constants: [{ name, type: 'f32', shape: '', bytes: floats(1) }], layers })
    const started = performance.now()
    const file = await openIr(ir)
    expect([file.openvino!.layerCount, file.tensors.at(0)!.name.length]).toEqual([40_001, 3_000_000])
    // About 0.1 s; quadratic time would take minutes.
    expect(performance.now() - started).toBeLessThan(10_000)
  })
})
