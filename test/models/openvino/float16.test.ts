/** Constants in float16: which become it, their values, and the layers that follow them. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { check, diff, type OpenFile, open, save, tensor } from '../../../lib/index.js'
import { type ConstantInit, irBytes, openIr } from '../../formats/openvino/ir_bytes.js'
import { hasThirdPartyFiles, THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'

const folder = mkdtempSync(join(tmpdir(), 'tilework-ir-float16-'))
afterAll(() => rmSync(folder, { recursive: true }))

const constant = (values: readonly number[], type: 'f32' | 'f64' = 'f32', name = 'w'): ConstantInit => ({
  ...{ name, type, shape: String(values.length) },
  bytes: new Uint8Array((type === 'f32' ? Float32Array : Float64Array).from(values).buffer),
})

const layer = (id: number, type: string, version = 'opset1') =>
  `<layer id="${id}" name="${type}${id}" type="${type}" version="${version}"/>`
const edge = (from: number, to: number, port = 0) =>
  `<edge from-layer="${from}" from-port="0" to-layer="${to}" to-port="${port}"/>`

/** The constant `w` after the compression; an Add takes it. */
async function changeOf(values: readonly number[], type: 'f32' | 'f64' = 'f32') {
  const file = await openIr(
    irBytes({ constants: [constant(values, type)], layers: layer(1, 'Add'), edges: edge(0, 1) }),
  )
  return (await file.openvino!.toFloat16()).constants[0]!
}

/** The constants after a save, as numbers by their names. */
async function halved(init: Parameters<typeof irBytes>[0], name: string): Promise<[OpenFile, string]> {
  const file = await openIr(irBytes(init))
  await file.openvino!.toFloat16()
  const path = join(folder, `${name}.xml`)
  await save(path, file)
  expect(await check(path, { level: 'strict' })).toEqual([])
  return [await open(path), readFileSync(path, 'utf8')]
}

const fill = (count: number, value: number, rest: number, all: number) =>
  Array.from({ length: all }, (_, index) => (index < count ? value : rest))

describe('a constant becomes float16', () => {
  // Each pair is one step on both sides of a limit that openvino 2026.4.1 has.
  it.each<[string, number[], boolean]>([
    ['a value that changes by 1', [60001, 1], true],
    ['a value that changes by more', [60010, 1], false],
    ['74 of 100 values out of range', fill(74, 1e6, 1, 100), true],
    ['75 of 100 values out of range', fill(75, 1e6, 1, 100), false],
    ['74 of 100 tiny values', fill(74, 2 ** -25, 1, 100), true],
    ['75 of 100 tiny values', fill(75, 2 ** -25, 1, 100), false],
    ['75 of 100 values that are as small as float16 can be', fill(75, 2 ** -24, 1, 100), true],
    ['74 of 100 values that are no number', fill(74, Number.NaN, 1, 100), true],
    ['75 of 100 values that are no number', fill(75, Number.NaN, 1, 100), false],
    ['zeros', [0, -0, 0, 0], true],
    ['values that change by 0.0005 of themselves', [1.00048, 1.00048], true],
    ['small values that change by 0.01 of themselves', fill(4, 1.3 * 2 ** -18, 0, 4), false],
    ['one value that changes by 0.00002 of itself', [0.25001], true],
    ['one value that changes by 0.0003 of itself', [Math.PI], false],
    ['no value', [], false],
  ])('%s', async (_, values, becomes) => {
    const { to, reason } = await changeOf(values)
    expect([to === 'float16', reason === undefined]).toEqual([becomes, becomes])
  })

  it('of float64 a value that is no number fits', async () => {
    expect((await changeOf(fill(75, Number.NaN, 1, 100), 'f64')).to).toBe('float16')
  })

  it.each<['f32' | 'f64', number[], number[]]>([
    [
      'f32',
      [1e6, -1e6, Infinity, Number.NaN, 2 ** -25 * 1.5, -(2 ** -25) * 1.5, 65519, 0.1, 1, 2, 3, 4],
      [65504, -65504, 65504, 65504, 2 ** -24, -(2 ** -24), 65504, 0.0999755859375, 1, 2, 3, 4],
    ],
    [
      'f64',
      [1e6, -Infinity, Number.NaN, 2 ** -25 * 1.5, -(2 ** -25) * 1.5, 0.1, 1, 2],
      [65504, -65504, Number.NaN, 0, 0, 0.0999755859375, 1, 2],
    ],
  ])('%s is clipped and rounded', async (type, values, wanted) => {
    const init = { constants: [constant(values, type)], layers: layer(1, 'Add'), edges: edge(0, 1) }
    const [file] = await halved(init, `values_${type}`)
    expect(Array.from(await file.dense('w_compressed').toTypedArray(), Number)).toEqual(wanted)
    file.close()
  })
})

describe('a constant stays', () => {
  const w = constant([1, 2])
  /** The constant goes through a Convert into `port` of a layer. */
  const through = async (type: string, port: number, version?: string) => {
    const layers = layer(1, 'Convert') + layer(2, type, version)
    const file = await openIr(irBytes({ constants: [w], layers, edges: edge(0, 1) + edge(1, 2, port) }))
    return (await file.openvino!.toFloat16()).constants[0]!.to === undefined
  }

  it.each<[string, number[], string?]>([
    ['Reshape', [1]],
    ['Broadcast', [1]],
    ['Tile', [1]],
    ['Pad', [1, 2]],
    ['StridedSlice', [1, 2, 3]],
    ['TopK', [1]],
    ['OneHot', [1]],
    ['BatchToSpace', [1, 2, 3]],
    ['SpaceToBatch', [1, 2, 3]],
    ['ConvolutionBackpropData', [2]],
    ['GroupConvolutionBackpropData', [2]],
    ['Interpolate', [1]],
    ['Interpolate', [1, 2], 'opset4'],
    ['Interpolate', [1], 'opset11'],
    ['Slice', []],
    ['Gather', []],
    ['toString', []],
  ])('%s: inputs %j', async (type, inputs, version) => {
    const kept: number[] = []
    for (const port of [0, 1, 2, 3]) if (await through(type, port, version)) kept.push(port)
    expect(kept).toEqual(inputs)
  })

  it('up to the layer that gives a shape', async () => {
    const constants = [constant([1, 2], 'f32', 'before'), constant([3, 4], 'f32', 'after')]
    const layers = layer(2, 'ShapeOf') + layer(3, 'Multiply') + layer(4, 'Reshape')
    const edges = edge(0, 2) + edge(2, 3) + edge(1, 3, 1) + edge(3, 4, 1)
    const { constants: changes } = await (
      await openIr(irBytes({ constants, layers, edges }))
    ).openvino!.toFloat16()
    expect(changes.map(({ to }) => to)).toEqual(['float16', undefined])
  })

  it('where its run-time information asks for it', async () => {
    const ir = irBytes({ constants: [w], layers: layer(1, 'Add'), edges: edge(0, 1) })
    const mark = '<rt_info><attribute name="precise" version="0"/></rt_info><output>'
    const xml = Buffer.from(Buffer.from(ir.xml).toString().replace('<output>', mark))
    expect((await (await openIr({ ...ir, xml })).openvino!.toFloat16()).constants[0]!.to).toBeUndefined()
  })

  const low = (type: string): ConstantInit => ({ name: 'q', type, shape: '2', bytes: Uint8Array.of(1, 2) })

  it.each<[string, string, boolean]>([
    ['u8', layer(3, 'Multiply'), true],
    ['i4', layer(3, 'Multiply'), true],
    ['f8e4m3', layer(3, 'Multiply'), true],
    ['f8e8m0', layer(3, 'Multiply'), false],
    ['u8', layer(3, 'Add'), false],
    ['u8', layer(3, 'Add') + layer(9, 'FakeQuantize'), true],
  ])('of %s weights with %s: all constants', async (type, layers, stays) => {
    const edges = edge(0, 2) + edge(2, 3) + edge(1, 3, 1)
    const init = { constants: [low(type), w], layers: layer(2, 'Convert') + layers, edges }
    const { constants } = await (await openIr(irBytes(init))).openvino!.toFloat16()
    expect(constants.map(({ to }) => to === undefined)).toEqual([stays])
  })
})

describe('the files', () => {
  const CONSTANTS = [
    constant([1, 2]),
    constant([1, 2], 'f32', 'same'),
    constant([3, 4], 'f32', 'a "<☃'),
    { ...constant([5], 'f32', 'scalar'), shape: '' },
  ]
  const layers = layer(10, 'Add') + layer(11, 'Concat')
  const edges = edge(0, 10) + edge(1, 10, 1) + edge(0, 11) + edge(2, 11, 1) + edge(3, 11, 2)

  it('have equal values once, and a Convert after each constant', async () => {
    const [file, text] = await halved({ constants: CONSTANTS, layers, edges }, 'files')
    expect(readFileSync(join(folder, 'files.bin')).length).toBe(2 * 2 + 2 * 2 + 2)
    expect(Array.from(file.tensors, ({ name, dtype, shape }) => `${name} ${dtype} [${shape}]`)).toEqual([
      ...[
        'w_compressed float16 [2]',
        'same_compressed float16 [2]',
        'a "<☃_compressed float16 [2]',
        'scalar_compressed float16 []',
      ],
    ])
    expect(text).toContain('<layer id="14" name="a &quot;&lt;☃" type="Convert" version="opset1">')
    const found = [
      ...text.matchAll(/<edge from-layer="(\d+)" from-port="(\d+)" to-layer="(\d+)" to-port="(\d+)"/g),
    ]
    expect(found.map(([, ...ends]) => ends.join(' '))).toEqual([
      ...[
        '0 0 12 0',
        '12 1 10 0',
        '1 0 13 0',
        '13 1 10 1',
        '12 1 11 0',
        '2 0 14 0',
        '14 1 11 1',
        '3 0 15 0',
        '15 1 11 2',
      ],
    ])
    // Where nothing was inserted or replaced, the text is as it was.
    expect(
      text.startsWith(
        '<?xml version="1.0"?>\n<net name="m" version="11"><layers>\n<layer id="0" name="w_compressed"',
      ),
    ).toBe(true)
    expect(text.endsWith('</edges></net>\n')).toBe(true)
    file.close()
  })

  it('have the names of the values at the Convert', async () => {
    const ir = irBytes({ constants: [constant([1, 2])], layers, edges: edge(0, 10) })
    const xml = Buffer.from(
      Buffer.from(ir.xml).toString().replace('precision="FP32"', 'precision="FP32" names="t,u\\,v &lt;"'),
    )
    const file = await openIr({ ...ir, xml })
    await file.openvino!.toFloat16()
    await save(join(folder, 'names.xml'), file)
    const text = readFileSync(join(folder, 'names.xml'), 'utf8')
    expect(text).toContain('<port id="0" precision="FP16" ><dim>1</dim></port>')
    expect(text).toContain('<port id="1" precision="FP32" names="t,u\\,v &lt;">')
  })

  it('are made of replaced values, and keep what is replaced afterwards', async () => {
    const file = await openIr(irBytes({ constants: CONSTANTS, layers, edges }))
    const model = file.openvino!
    model.replaceConstant('w', tensor(Float32Array.of(8, 9), { shape: [2] }))
    await model.toFloat16()
    model.replaceConstant('same', tensor(Float32Array.of(0.1, 0.2), { shape: [2] }))
    await save(join(folder, 'mixed.xml'), file)
    const mixed = await open(join(folder, 'mixed.xml'))
    expect([...(await mixed.dense('w_compressed').toTypedArray())].map(Number)).toEqual([8, 9])
    expect([...(await mixed.dense('same').toTypedArray())]).toEqual([...Float32Array.of(0.1, 0.2)])
    mixed.close()
  })

  it('are refused where ids of layers are no numbers', async () => {
    const ir = irBytes({
      constants: [constant([1, 2])],
      layers: '<layer id="x" name="x" type="Add"/>',
      edges: '<edge from-layer="0" from-port="0" to-layer="x" to-port="0"/>',
    })
    const file = await openIr(ir)
    await file.openvino!.toFloat16()
    await expect(save(join(folder, 'ids.xml'), file)).rejects.toMatchObject({ code: 'ERR_GRAPH' })
  })
})

it.skipIf(!hasThirdPartyFiles)('a model is what save_model makes of it', THIRD_PARTY, async () => {
  const fixture = (name: string) => thirdPartyPath(`openvino-ir/files/${name}`)
  const file = await open(fixture('conv_f32.xml'))
  await file.openvino!.toFloat16()
  const path = join(folder, 'conv.xml')
  await save(path, file)
  expect(readFileSync(join(folder, 'conv.bin'))).toEqual(readFileSync(fixture('conv_f16.bin')))
  const { sameBits, changed, added, removed, graph } = await diff(path, fixture('conv_f16.xml'))
  expect([sameBits, changed, added, removed]).toEqual([6, [], [], []])
  // What save_model notes of itself.
  expect(graph).toMatchObject([{ what: 'metadata', place: 'rt_info OpenVINO Runtime' }])
})
