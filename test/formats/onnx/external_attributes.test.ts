/** External data of attributes, and data files that are safetensors files. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { asTensor, check, type DenseTensor, type Dtype, open, save, tensor } from '../../../lib/index.js'
import { addFunction, type Graph, OnnxModel } from '../../../lib/onnx.js'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tilework-onnx-attributes-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const at = (name: string): string => join(folder, name)
const float32 = { kind: 'tensor', dtype: 'float32', shape: [600] } as const

/** A vector of 600 numbers from `first` on. */
function numbers(first: number, name = ''): DenseTensor {
  return tensor(
    Float32Array.from({ length: 600 }, (_, i) => first + i),
    { name },
  )
}

/** A constant in the main graph and one in each branch of an If, a small constant, and an initializer. */
function withConstants(): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  graph.addInput('condition', { kind: 'tensor', dtype: 'bool', shape: [] })
  graph.setInitializer('w', numbers(1000, 'w'))
  const branch = (first: number) => {
    const { graph: inner } = OnnxModel.create({ opset: 21 })
    inner.addNode({
      opType: 'Constant',
      outputs: ['chosen'],
      attributes: { value: { type: 'TENSOR', value: numbers(first, 'w') } },
    })
    inner.addOutput('chosen', float32)
    return { type: 'GRAPH', value: inner } as const
  }
  graph.addNode({
    opType: 'If',
    inputs: ['condition'],
    outputs: ['picked'],
    attributes: { then_branch: branch(2000), else_branch: branch(3000) },
  })
  graph.addNode({
    opType: 'Constant',
    outputs: ['c'],
    attributes: { value: { type: 'TENSOR', value: numbers(0) } },
  })
  graph.addNode({
    opType: 'Constant',
    outputs: ['one'],
    attributes: { value: { type: 'TENSOR', value: tensor(Float32Array.of(1), { shape: [] }) } },
  })
  graph.addNode({ opType: 'Sum', inputs: ['picked', 'c', 'w', 'one'], outputs: ['y'] })
  graph.addOutput('y', float32)
  return model
}

/** The first number of each tensor attribute and initializer, in order. */
function firstNumbers(model: OnnxModel): number[] {
  const { graph } = model
  const branches = graph.nodes[0]!
  const inner = ['then_branch', 'else_branch'].map((name) => {
    const attribute = branches.attribute(name)!
    if (attribute.type !== 'GRAPH') throw new Error('no graph')
    return (attribute.value as Graph).nodes[0]!
  })
  const constants = [...inner, graph.nodes[1]!, graph.nodes[2]!].map((node) => {
    const attribute = node.attribute('value')!
    if (attribute.type !== 'TENSOR') throw new Error('no tensor')
    const value = attribute.value as DenseTensor
    return value.at(...value.shape.map(() => 0)) as number
  })
  return [...constants, (graph.initializer('w') as DenseTensor).at(0) as number]
}

describe('tensors of attributes', () => {
  it('stay in the model, unless the option asks for them', async () => {
    await save(at('m.onnx'), withConstants(), { external: {} })
    using file = await open(at('m.onnx'))
    expect(file.parts.map(({ byteLength }) => byteLength)).toEqual([2400])
    expect(firstNumbers(file.onnx!)).toEqual([2000, 3000, 0, 1, 1000])
  })

  it('move from all graphs where they reach the threshold, come back, and are the same', async () => {
    await save(at('m.onnx'), withConstants(), { external: { attributes: true, checksum: true } })
    expect(readdirSync(folder).sort()).toEqual(['m.onnx', 'm.onnx.data'])
    using file = await open(at('m.onnx'))
    expect(readFileSync(at('m.onnx')).byteLength).toBeLessThan(2400)
    expect(firstNumbers(file.onnx!)).toEqual([2000, 3000, 0, 1, 1000])
    expect(await check(at('m.onnx'), { level: 'strict' })).toEqual([])
    await save(at('whole.onnx'), file, { external: false })
    await save(at('again.onnx'), withConstants())
    expect(readFileSync(at('whole.onnx'))).toEqual(readFileSync(at('again.onnx')))
  })

  it('move from functions', async () => {
    const model = OnnxModel.create({ opset: 21 })
    addFunction(model, {
      domain: 'own',
      name: 'F',
      inputs: ['a'],
      outputs: ['b'],
      nodes: [
        {
          opType: 'Constant',
          outputs: ['k'],
          attributes: { value: { type: 'TENSOR', value: numbers(7) } },
        },
        { opType: 'Add', inputs: ['a', 'k'], outputs: ['b'] },
      ],
    })
    model.graph.addInput('x', float32)
    model.graph.addNode({ opType: 'F', domain: 'own', inputs: ['x'], outputs: ['y'] })
    model.graph.addOutput('y', float32)
    model.setOpsetImport('own', 1)
    await save(at('m.onnx'), model, { external: { attributes: true } })
    using file = await open(at('m.onnx'))
    expect(file.parts.map(({ byteLength }) => byteLength)).toEqual([2400])
    expect(await check(at('m.onnx'), { level: 'strict' })).toEqual([])
  })

  it.each([
    ['a short file', () => writeFileSync(at('m.onnx.data'), new Uint8Array(100)), 'ERR_OFFSET_RANGE'],
    ['a missing file', () => rmSync(at('m.onnx.data')), 'ERR_IO'],
  ])('are validated like initializers: %s', async (_, damage, code) => {
    await save(at('m.onnx'), withConstants(), { external: { attributes: true } })
    damage()
    const findings = await check(at('m.onnx'))
    const paths = findings.filter((each) => each.code === code).map(({ path }) => path)
    expect(paths.length).toBeGreaterThan(0)
    if (code === 'ERR_OFFSET_RANGE') {
      expect(paths.sort()).toEqual([
        'graph.initializer[0].external_data',
        'graph.node[0].attribute[0].g.node[0].attribute[0].t.external_data',
        'graph.node[0].attribute[1].g.node[0].attribute[0].t.external_data',
        'graph.node[1].attribute[0].t.external_data',
      ])
    }
  })
})

describe('data files in the format safetensors', () => {
  it('are open by both formats, with the names of the model', async () => {
    await save(at('m.onnx'), withConstants(), { external: { format: 'safetensors', attributes: true } })
    expect(readdirSync(folder).sort()).toEqual(['m.onnx', 'm.safetensors'])
    using file = await open(at('m.onnx'))
    expect(firstNumbers(file.onnx!)).toEqual([2000, 3000, 0, 1, 1000])
    expect(await check(at('m.onnx'), { level: 'strict' })).toEqual([])
    using values = await open(at('m.safetensors'))
    // The initializer keeps its name; the others have the same one or none.
    expect([...values.tensors].map(({ name }) => name).sort()).toEqual(['tensor_2', 'w', 'w_0', 'w_1'])
    expect(values.dense('w').at(0)).toBe(1000)
    expect(await check(at('m.safetensors'), { level: 'strict' })).toEqual([])
  })

  it('hold every element type, larger elements first, each at a multiple of its size', async () => {
    const dtypes: readonly Dtype[] = [
      'int4',
      'float8_e5m2',
      'float6_e2m3fn',
      'float64',
      'complex128',
      'uint2',
      'float16',
      'bool',
    ]
    const model = OnnxModel.create({ opset: 25, irVersion: 14 })
    for (const dtype of dtypes) {
      const count = dtype === 'complex128' ? 3 : 5
      const bytes = new Uint8Array(dtype === 'complex128' ? 48 : Math.ceil((5 * bitsOf(dtype)) / 8))
      bytes.fill(1)
      model.graph.setInitializer(dtype, stored(bytes, dtype, count))
    }
    await save(at('m.onnx'), model, { external: { format: 'safetensors', threshold: 1 } })
    using file = await open(at('m.onnx'))
    for (const dtype of dtypes) {
      const read = file.onnx!.graph.initializer(dtype) as DenseTensor
      expect(read.dtype).toBe(dtype)
      expect((await read.bytes()).every((byte, i, all) => byte === 1 || i === all.length - 1)).toBe(true)
    }
    using values = await open(at('m.safetensors'))
    expect([...values.tensors].map(({ name, dtype }) => [name, dtype])).toEqual([
      ['complex128', 'uint8'],
      ['float64', 'float64'],
      ['float16', 'float16'],
      ['bool', 'bool'],
      ['float8_e5m2', 'float8_e5m2'],
      ['float6_e2m3fn', 'uint8'],
      ['int4', 'uint8'],
      ['uint2', 'uint8'],
    ])
    expect(await check(at('m.safetensors'), { level: 'strict' })).toEqual([])
  })

  it('are several below a size limit, each complete', async () => {
    const model = OnnxModel.create({ opset: 21 })
    for (let i = 0; i < 5; i++) model.graph.setInitializer(`w${i}`, numbers(i, `w${i}`))
    await save(at('m.onnx'), model, { external: { format: 'safetensors', shardBytes: 6000 } })
    const files = [
      'm-00001-of-00003.safetensors',
      'm-00002-of-00003.safetensors',
      'm-00003-of-00003.safetensors',
    ]
    expect(readdirSync(folder).sort()).toEqual([...files, 'm.onnx'])
    for (const name of files) {
      expect(readFileSync(at(name)).byteLength).toBeLessThanOrEqual(6000)
      expect(await check(at(name), { level: 'strict' })).toEqual([])
    }
    using file = await open(at('m.onnx'))
    for (let i = 0; i < 5; i++) expect((file.onnx!.graph.initializer(`w${i}`) as DenseTensor).at(0)).toBe(i)
  })

  it('have names of their own for names that the format cannot hold', async () => {
    const model = OnnxModel.create({ opset: 21 })
    model.graph.setInitializer('__metadata__', numbers(1, '__metadata__'))
    model.graph.setInitializer('"ä\n', numbers(2, '"ä\n'))
    await save(at('m.onnx'), model, { external: { format: 'safetensors' } })
    using values = await open(at('m.safetensors'))
    expect([...values.tensors].map(({ name }) => name)).toEqual(['"ä\n', '__metadata___0'])
  })

  it('refuse an alignment, and unknown formats', async () => {
    const model = withConstants()
    for (const [external, message] of [
      [{ format: 'safetensors', alignment: 64 }, 'whose values have no gaps'],
      [{ format: 'zip' }, 'external.format is "zip"; expected one of: raw, safetensors'],
      [{ attributes: 1 }, 'external.attributes is 1; it must be true or false'],
    ] as const) {
      const saved = save(at('m.onnx'), model, { external: external as never })
      await expect(saved).rejects.toThrow(message)
    }
    expect(readdirSync(folder)).toEqual([])
  })
})

function bitsOf(dtype: Dtype): number {
  return Number(/\d+/.exec(dtype)?.[0] ?? 8)
}

function stored(bytes: Uint8Array, dtype: Dtype, count: number): DenseTensor {
  return asTensor(bytes, { dtype, shape: [count], name: dtype })
}
