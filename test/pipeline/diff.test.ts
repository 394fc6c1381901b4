/** `diff`: a made pair for each kind of difference, across formats, element types and layouts. */
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  asTensor,
  cast,
  type DenseTensor,
  type Difference,
  DTYPES,
  type Dtype,
  diff,
  open,
  reorder,
  save,
  sparseFromDense,
  stringTensor,
  type Tensor,
  type TensorDifference,
  tensor,
} from '../../lib/index.js'
import { OnnxModel, quantizeWeights, toFloat16 } from '../../lib/onnx.js'
import { onnxToTmfile, type TmfileBuffer, TmfileModel, type TmfileTensor } from '../../lib/tmfile.js'
import { floats as netFloats, OnnxNet } from '../bridges/onnx_tmfile/onnx_net.js'
import { temporaryFolder } from '../cli/temporary_folder.js'
import { node, smallModel, variable } from '../formats/tmfile/tmfile_bytes.js'
import { recordedPath } from '../models/onnx_compress/recorded.js'

const inFolder = temporaryFolder()
const code = (name: string) => expect.objectContaining({ name: 'TileworkError', code: name })

function floats(values: readonly number[], name = 'x', shape = [values.length]): DenseTensor {
  return tensor([...values], { dtype: 'float32', name, shape })
}

async function only(a: Tensor, b: Tensor, options = {}): Promise<TensorDifference> {
  const found = await diff(a, b, options)
  expect(found.changed).toHaveLength(1)
  return found.changed[0]!
}

/** A MatMul [K, N] whose K is no multiple of a block, a Gather of a table, and a table that a MatMul takes transposed. */
function weightsModel(): { model: OnnxModel; outliers: () => void } {
  const model = OnnxModel.create({ opset: 21 })
  const { graph } = model
  const weight = (name: string, shape: readonly [number, number]): DenseTensor =>
    tensor(
      Float32Array.from({ length: shape[0] * shape[1] }, (_, at) => Math.sin(at * 1.7)),
      { name, shape: [...shape] },
    )
  for (const [name, shape] of [
    ['across', [40, 24]],
    ['table', [10, 32]],
    ['tied', [12, 32]],
  ] as const)
    graph.setInitializer(name, weight(name, shape))
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 40] })
  graph.addInput('i', { kind: 'tensor', dtype: 'int64', shape: [1] })
  const outputs = ['y', 'e', 'f', 'g']
  graph.addNode({ opType: 'MatMul', name: 'across', inputs: ['x', 'across'], outputs: ['y'] })
  graph.addNode({ opType: 'Gather', name: 'table', inputs: ['table', 'i'], outputs: ['e'] })
  graph.addNode({ opType: 'Gather', name: 'tied', inputs: ['tied', 'i'], outputs: ['f'] })
  graph.addNode({ opType: 'Transpose', inputs: ['tied'], outputs: ['t'] })
  graph.addNode({ opType: 'MatMul', name: 'head', inputs: ['e', 't'], outputs: ['g'] })
  for (const name of outputs) graph.addOutput(name, { kind: 'tensor', dtype: 'float32' })
  const outliers = (): void => {
    const values = Float32Array.from({ length: 40 * 24 }, (_, at) => Math.sin(at * 1.7))
    values[20 * 24 + 3] = 5
    graph.setInitializer('across', tensor(values, { shape: [40, 24] }))
  }
  return { model, outliers }
}

async function isSame(a: Tensor, b: Tensor, options = {}): Promise<boolean> {
  return (await diff(a, b, options)).isSame
}

describe('values', () => {
  it('reports errors, their places and both values', async () => {
    const found = await only(floats([1, 2, -4, 0], 'x', [2, 2]), floats([1, 2.5, -5, 0], 'x', [2, 2]))
    expect(found.changes).toEqual(['values'])
    expect(found.values).toEqual({
      count: 4,
      equalBits: false,
      different: 2,
      beyond: 2,
      first: { index: [0, 1], a: 2, b: 2.5 },
      firstBeyond: { index: [0, 1], a: 2, b: 2.5 },
      maxError: 1,
      worst: { index: [1, 0], a: -4, b: -5 },
      maxRelativeError: 0.25,
      worstRelative: { index: [0, 1], a: 2, b: 2.5 },
      meanError: 0.375,
      sqnr: expect.closeTo(10 * Math.log10(21 / 1.25), 10),
      cosine: expect.closeTo(26 / Math.sqrt(21 * 32.25), 10),
      nans: { a: 0, b: 0, both: 0 },
    })
  })

  it('matches the rule of numpy.isclose for random numbers', async () => {
    const pairs = fc.array(fc.tuple(fc.float(), fc.float()), { minLength: 1, maxLength: 100 })
    const size = fc.double({ min: 0, max: 1e3, noNaN: true })
    await fc.assert(
      fc.asyncProperty(pairs, size, size, async (list, absolute, relative) => {
        const found = await diff(floats(list.map(([a]) => a)), floats(list.map(([, b]) => b)), {
          tolerance: { absolute, relative },
        })
        const isClose = ([a, b]: [number, number]): boolean => {
          if (a === b || (Number.isNaN(a) && Number.isNaN(b))) return true
          return (
            Number.isFinite(a) && Number.isFinite(b) && Math.abs(b - a) <= absolute + relative * Math.abs(a)
          )
        }
        const beyond = list.filter((pair) => !isClose(pair)).length
        expect(found.isSame).toBe(beyond === 0)
        if (beyond > 0) expect(found.changed[0]!.values!.beyond).toBe(beyond)
      }),
    )
  })

  it('takes NaN as equal to NaN and 0 to -0, and tells bits apart', async () => {
    const a = floats([Number.NaN, 0, 1])
    expect(await diff(a, floats([Number.NaN, 0, 1]))).toMatchObject({ isSame: true, same: 1, sameBits: 1 })
    expect(await diff(a, floats([Number.NaN, -0, 1]))).toMatchObject({ isSame: true, same: 1, sameBits: 0 })
    const found = await only(a, floats([1, 0, Number.NaN]))
    expect(found.values).toMatchObject({ different: 2, beyond: 2, nans: { a: 1, b: 1, both: 0 } })
    const infinite = await only(a, floats([Number.NaN, 0, Number.POSITIVE_INFINITY]), {
      tolerance: { relative: 9 },
    })
    expect(infinite.values).toMatchObject({
      different: 1,
      maxError: Number.POSITIVE_INFINITY,
      sqnr: Number.POSITIVE_INFINITY,
      nans: { a: 0, b: 0, both: 1 },
    })
  })

  it('compares integers of 64 bits exactly, with each other and with floats', async () => {
    const large = 2n ** 53n
    const a = tensor([large, 7n], { dtype: 'int64', name: 'x' })
    const found = await only(a, tensor([large + 1n, 7n], { dtype: 'int64', name: 'x' }))
    expect(found.values).toMatchObject({
      different: 1,
      maxError: 1,
      first: { index: [0], a: large, b: large + 1n },
    })
    const natural = tensor([2n ** 64n - 1n, 7n], { dtype: 'uint64', name: 'x' })
    const signs = await only(tensor([-1n, 7n], { dtype: 'int64', name: 'x' }), natural)
    expect(signs.values).toMatchObject({ different: 1, maxError: 2 ** 64 })
    const float = await only(a, tensor([2 ** 53, 7], { dtype: 'float64', name: 'x' }))
    expect(float).toMatchObject({ changes: ['dtype'], values: { different: 0, equalBits: false } })
  })

  it.each(Object.values(DTYPES).filter(({ kind }) => kind !== 'string' && kind !== 'complex'))(
    'finds one changed element of $name, and where',
    async ({ name, bits }) => {
      const count = 5001
      const make = (changed: number): DenseTensor => {
        const bytes = new Uint8Array(Math.ceil((count * bits) / 8)).fill(0)
        const at = Math.floor((changed * bits) / 8)
        if (changed >= 0) bytes[at] = bytes[at]! | (1 << ((changed * bits) % 8))
        return asTensor({
          name: 'x',
          dtype: name as Dtype,
          shape: [3, 1667],
          bytes: () => bytes,
        } as never) as unknown as DenseTensor
      }
      expect(await diff(make(-1), make(-1))).toMatchObject({ isSame: true, sameBits: 1 })
      const found = await only(make(-1), make(4000))
      expect(found.values).toMatchObject({ different: 1, first: { index: [2, 4000 - 2 * 1667] } })
    },
  )

  it('compares complex numbers by magnitude, strings by text, sparse tensors by their entries', async () => {
    const complex = (values: number[]): DenseTensor =>
      asTensor({
        name: 'x',
        dtype: 'complex64',
        shape: [2],
        bytes: () => new Uint8Array(Float32Array.from(values).buffer),
      } as never) as unknown as DenseTensor
    const found = await only(complex([3, 4, 1, 0]), complex([3, 4, 1, 2]))
    expect(found.values).toMatchObject({
      different: 1,
      maxError: 2,
      first: { index: [1], a: [1, 0], b: [1, 2] },
    })
    const texts = await only(stringTensor(['a', 'b'], { name: 'x' }), stringTensor(['a', 'c'], { name: 'x' }))
    expect(texts.values).toMatchObject({
      different: 1,
      maxError: null,
      first: { index: [1], a: 'b', b: 'c' },
    })
    const dense = floats([0, 1, 0, 2, 0, 0], 'x', [2, 3])
    const other = floats([0, 1, 0, 0, 5, 0], 'x', [2, 3])
    const [a, b] = [await sparseFromDense(dense), await sparseFromDense(other)]
    expect(await diff(a, await sparseFromDense(dense))).toMatchObject({ isSame: true, sameBits: 1 })
    expect((await only(a, b)).values).toMatchObject({
      count: 6,
      different: 2,
      first: { index: [1, 0], a: 2, b: 0 },
      worst: { index: [1, 1], a: 0, b: 5 },
    })
    expect(await diff(a, dense, { ignore: ['kind'] })).toMatchObject({ isSame: true })
    expect((await only(a, other)).values).toMatchObject({
      different: 2,
      worst: { index: [1, 1], a: 0, b: 5 },
    })
    const withZeros = await sparseFromDense(dense, { keepZeros: true })
    expect(await diff(a, withZeros)).toMatchObject({ isSame: true, sameBits: 0 })
  })

  it('compares what quantized codes stand for', async () => {
    const quantized = (values: number[], scale: number): TmfileModel => {
      const codes = tensor(Int8Array.from(values))
      const buffer: TmfileBuffer = { byteLength: values.length, data: { tensor: codes as never } }
      const quantization = {
        scales: Float32Array.of(scale),
        zeroPoints: Int32Array.of(0),
        widths: Int32Array.of(8),
      }
      const weight: TmfileTensor = {
        ...variable('w', [values.length]),
        ...{ dtype: 'int8', role: 'constant', buffer, quantization },
      }
      return new TmfileModel({ tensors: [weight], buffers: [buffer] })
    }
    const codes = await diff(quantized([10, 20], 0.5), quantized([10, 21], 0.5))
    expect(codes.changed[0]).toMatchObject({
      changes: ['values'],
      values: { maxError: 1 },
      real: { maxError: 0.5, first: { index: [1], a: 10, b: 10.5 } },
    })
    const scales = await diff(quantized([10, 20], 0.5), quantized([20, 40], 0.25))
    expect(scales.changed[0]).toMatchObject({
      changes: ['quantization'],
      values: { different: 2 },
      real: { different: 0 },
    })
    const unknown = await diff(quantized([10, 20], 0), quantized([10, 21], 0))
    expect(unknown.changed[0]).toMatchObject({ changes: ['values'], values: { maxError: 1 }, real: null })
    const real = await diff(quantized([10, 20], 0.5), floats([5, 10], 'w'))
    expect(real.changed[0]).toMatchObject({ changes: ['dtype', 'quantization'], real: { different: 0 } })
  })
})

describe('storage', () => {
  const shape = [2, 19, 5, 7]
  const values = Array.from({ length: 2 * 19 * 5 * 7 }, (_, at) => Math.sin(at))

  it('compares logical values across layouts and element types', async () => {
    const plain = floats(values, 'x', shape)
    const blocked = reorder(plain, 'b_fs_yx_fsv16')
    expect(await diff(blocked, reorder(plain, 'b_fs_yx_fsv16'))).toMatchObject({ isSame: true, sameBits: 1 })
    const found = await only(plain, blocked)
    expect(found).toMatchObject({ changes: ['layout'], values: { equalBits: true } })
    expect(await isSame(plain, blocked, { ignore: ['layout'] })).toBe(true)
    const half = await only(plain, cast(blocked, 'float16'))
    expect(half.changes).toEqual(['dtype', 'layout', 'values'])
    expect(half.values!.maxError).toBeLessThan(2 ** -11)
    expect(half.values!.sqnr).toBeGreaterThan(60)
    expect(
      await isSame(plain, cast(blocked, 'float16'), {
        ignore: ['layout', 'dtype'],
        tolerance: { absolute: 1e-3 },
      }),
    ).toBe(true)
  })

  it('compares tensors of other shapes with as many elements, and none of other counts', async () => {
    const reshaped = await only(floats([1, 2, 3, 4]), floats([1, 2, 3, 5], 'x', [2, 2]))
    expect(reshaped).toMatchObject({
      changes: ['shape', 'values'],
      values: { first: { index: [3], a: 4, b: 5 } },
    })
    expect(await only(floats([1, 2]), floats([1]))).toMatchObject({ changes: ['shape'], values: null })
    expect(await isSame(floats([], 'x', [0]), floats([], 'x', [0]))).toBe(true)
  })
})

describe('tensors', () => {
  it('finds what was added, removed and renamed', async () => {
    const a = [floats([1, 2], 'kept'), floats([3, 4], 'old'), floats([5], 'gone')]
    const b = [floats([1, 2], 'kept'), floats([3, 4], 'new'), floats([6, 7, 8], 'more')]
    const found: Difference = await diff(a, b)
    expect(found).toMatchObject({ isSame: false, same: 1, sameBits: 1 })
    expect(found.changed.map(({ a: one, b: other, changes }) => [one.name, other.name, changes])).toEqual([
      ['old', 'new', ['name']],
    ])
    expect(found.removed.map(({ name }) => name)).toEqual(['gone'])
    expect(found.added.map(({ name }) => name)).toEqual(['more'])
  })

  it('pairs the tensors of files without names', async () => {
    await save(inFolder('one.npy'), floats([1, 2, 3], ''), { format: 'npy' })
    await save(inFolder('one.safetensors'), floats([1, 2, 4], 'weight'))
    const found = await diff(inFolder('one.npy'), inFolder('one.safetensors'))
    expect(found).toMatchObject({ a: { format: 'npy', tensors: 1 }, graph: null })
    expect(found.changed[0]).toMatchObject({ changes: ['name', 'values'], values: { different: 1 } })
  })

  it('compares files of different formats, and a file with itself', async () => {
    const tensors = [floats([1, 2, 3], 'a'), floats([4, 5, 6], 'b', [3, 1])]
    await save(inFolder('two.safetensors'), tensors)
    await save(inFolder('two.btf'), tensors)
    const found = await diff(inFolder('two.safetensors'), inFolder('two.btf'), { ignore: ['name'] })
    expect(found).toMatchObject({ isSame: true, changed: [{ changes: ['name'] }, { changes: ['name'] }] })
    expect(await diff(inFolder('two.btf'), inFolder('two.btf'))).toMatchObject({ isSame: true, sameBits: 2 })
  })
})

describe('graphs', () => {
  const model = (): OnnxModel => {
    const made = OnnxModel.create()
    const { graph } = made
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['N', 3] })
    graph.setInitializer('w', floats([1, 2, 3], 'w'))
    graph.addNode({ opType: 'Mul', name: 'scale', inputs: ['x', 'w'], outputs: ['y'] })
    graph.addNode({
      opType: 'Softmax',
      name: 'soft',
      inputs: ['y'],
      outputs: ['z'],
      attributes: { axis: { type: 'INT', value: 1 } },
    })
    graph.addOutput('z', { kind: 'tensor', dtype: 'float32', shape: ['N', 3] })
    return made
  }

  it('lists edits of nodes, edges, attributes, ends and metadata', async () => {
    expect(await diff(model(), model())).toMatchObject({ isSame: true, graph: [] })
    const other = model()
    const { graph } = other
    other.setMetadata('author', 'me')
    graph.addNode({ opType: 'Relu', name: 'act', inputs: ['y'], outputs: ['r'] }, 1)
    const soft = graph.nodes.find(({ name }) => name === 'soft')!
    soft.inputs = ['r']
    soft.setAttribute('axis', { type: 'INT', value: -1 })
    soft.setAttribute('note', { type: 'TENSOR', value: floats([1], 't') })
    graph.setType('z', { kind: 'tensor', dtype: 'float16', shape: ['N', 3] })
    const { graph: edits } = await diff(model(), other)
    expect(edits!.map(({ kind, what, place, before, after }) => [kind, what, place, before, after])).toEqual([
      ['added', 'metadata', 'metadata author', null, 'me'],
      ['changed', 'output', 'z', 'float32 [N, 3]', 'float16 [N, 3]'],
      ['added', 'node', 'Relu "act"', null, '(y) -> (r)'],
      ['changed', 'edge', 'Softmax "soft" input 0', 'y', 'r'],
      ['changed', 'attribute', 'Softmax "soft" axis', '1', '-1'],
      ['added', 'attribute', 'Softmax "soft" note', null, 'tensor float32 [1]'],
    ])
    expect((await diff(model(), other, { ignore: ['graph'] })).isSame).toBe(true)
  })

  it('compares the values of tensor attributes', async () => {
    const withNote = (value: number): OnnxModel => {
      const made = model()
      made.graph.nodes[1]!.setAttribute('note', { type: 'TENSOR', value: floats([value], 't') })
      return made
    }
    expect((await diff(withNote(1), withNote(1))).graph).toEqual([])
    expect((await diff(withNote(1), withNote(2))).graph).toMatchObject([
      { kind: 'changed', what: 'attribute' },
    ])
  })

  it('lists edits of a tmfile', async () => {
    expect(await diff(smallModel(), smallModel())).toMatchObject({ isSame: true, graph: [] })
    const other = smallModel()
    const convolution = other.graph.nodes.find(({ operator }) => operator === 'Convolution')!
    Object.assign(convolution.params, { stride_h: 2 })
    const after = variable('relu', [1, 2, 4, 4])
    other.graph.tensors.push(after)
    other.graph.nodes.push(node('relu', 'ReLu', [convolution.outputs[0]!], [after]))
    const { graph } = await diff(smallModel(), other)
    expect(graph).toMatchObject([
      { kind: 'added', what: 'node', place: 'ReLu "relu"' },
      { kind: 'changed', what: 'attribute', place: 'Convolution "conv" stride_h', before: '1', after: '2' },
      { kind: 'added', what: 'value', place: 'relu' },
    ])
  })

  it('cuts a huge name of a node in the places of its edits', async () => {
    const make = (value: number): OnnxModel => {
      const model = OnnxModel.create()
      model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1] })
      const attributes = Object.fromEntries(
        Array.from({ length: 100 }, (_, at) => [`a${at}`, { type: 'INT', value } as const]),
      )
      model.graph.addNode({
        opType: 'Relu',
        name: 'n'.repeat(100_000),
        inputs: ['x'],
        outputs: ['y'],
        attributes,
      })
      return model
    }
    const { graph } = await diff(make(1), make(2))
    expect(graph).toHaveLength(100)
    expect(graph![0]!.place).toBe(`Relu "${'n'.repeat(1024)}…" a0`)
  })

  it('compares a model with its quantized variant, by the scales beside the codes', async () => {
    const folder = dirname(recordedPath('cnn', 'before'))
    const found = await diff(join(folder, 'before.onnx'), join(folder, 'qdq-u8s8.onnx'))
    const byName = new Map(found.changed.map((each) => [each.a.name, each]))
    for (const name of ['w1', 'w2', 'wt']) {
      const { b, values, real } = byName.get(name)!
      expect([b.name, b.dtype], name).toEqual([`${name}_quantized`, 'int8'])
      expect(values!.sqnr, name).toBeLessThan(10)
      expect(real!.sqnr, name).toBeGreaterThan(30)
    }
    expect(found.removed).toEqual([])
  })

  it.each([
    { bits: 2, symmetric: true },
    { bits: 4, symmetric: true },
    { bits: 4, symmetric: false },
    { bits: 8, symmetric: false },
    { bits: 4, symmetric: false, format: 'qdq' },
  ] as const)('compares weights with their blocks of codes: %o', async (options) => {
    const { model, outliers } = weightsModel()
    const small = model.copy()
    await quantizeWeights(small, { blockSize: 16, gather: !('format' in options), ...options })
    const found = await diff(model, small)
    expect(found.removed.map(({ name }) => name)).toEqual([])
    expect(found.changed.map(({ a }) => a.name).toSorted()).toEqual(
      'format' in options ? ['across'] : ['across', 'table', 'tied'],
    )
    for (const { a, b, real, changes } of found.changed) {
      expect(changes, a.name).toEqual(expect.arrayContaining(['name', 'dtype']))
      // Half a step of a block from -1 to 1, which the largest weight of the block may exceed.
      expect(real!.maxError, `${a.name} as ${b.name}`).toBeLessThan(2.2 / 2 ** options.bits)
      expect(real!.count, a.name).toBe(a.shape.reduce((product, extent) => product * extent, 1))
    }
    const back = await diff(small, model)
    for (const { b, real } of back.changed) {
      const forth = found.changed.find(({ a }) => a.name === b.name)!.real!
      expect(real!.maxError, b.name).toBe(forth.maxError)
    }
    outliers()
    const worst = (await diff(model, small)).changed.find(({ a }) => a.name === 'across')!.real!.worst!
    expect(worst.index).toEqual([20, 3])
  })

  it('compares a model with its float16 variant', async () => {
    const file = await open(recordedPath('transformer', 'before'))
    const half = file.onnx!.copy()
    const report = await toFloat16(half)
    const found = await diff(file.onnx!, half)
    const cast16 = found.changed.filter(({ changes }) => changes.includes('dtype'))
    expect(cast16.length).toBe(
      report.tensors.filter(({ name }) => found.changed.some(({ a }) => a.name === name)).length,
    )
    expect(cast16.length).toBeGreaterThan(5)
    for (const { a, b, values } of cast16) {
      expect([a.dtype, b.dtype], a.name).toEqual(['float32', 'float16'])
      expect(values!.maxRelativeError, a.name).toBeLessThan(2 ** -10)
    }
    expect(found.graph!.length).toBeGreaterThan(0)
    file.close()
  })
})

describe('an ONNX model and its tmfile', () => {
  /** A convolution and a dense layer, and the model that the bridge makes of it. */
  async function pair(): Promise<{ onnx: OnnxModel; tmfile: TmfileModel }> {
    const net = new OnnxNet()
    const weights = netFloats(8, 3, 3, 3)
    const convolved = net.op('Conv', [[1, 3, 8, 8], weights, netFloats(8)], { pads: [1, 1, 1, 1] })
    const pooled = net.op('GlobalAveragePool', [net.op('Relu', [convolved])])
    const onnx = net.out(
      net.op('Gemm', [net.op('Flatten', [pooled]), netFloats(10, 8), netFloats(10)], { transB: 1 }),
    )
    return { onnx, tmfile: (await onnxToTmfile(onnx)).model }
  }

  it('are the same, in memory and as files', async () => {
    const { onnx, tmfile } = await pair()
    const found = await diff(onnx, tmfile)
    expect(found).toMatchObject({ isSame: true, added: [], removed: [], graph: null })
    await save(inFolder('pair.onnx'), onnx)
    await save(inFolder('pair.tmfile'), tmfile)
    const ofFiles = await diff(inFolder('pair.onnx'), inFolder('pair.tmfile'))
    expect(ofFiles).toMatchObject({ same: found.same, sameBits: found.sameBits, changed: [], removed: [] })
    // A tmfile lists every value of its graph.
    expect(ofFiles.added.every(({ hasData }) => !hasData)).toBe(true)
  })

  it('differ by one changed weight', async () => {
    const { onnx, tmfile } = await pair()
    const [name] = [...onnx.graph.initializers()].map((each) => each.name)
    const values = (await (onnx.graph.initializer(name!) as DenseTensor).toTypedArray()) as Float32Array
    values[5]! += 0.5
    onnx.graph.setInitializer(name!, tensor(values, { shape: [8, 3, 3, 3] }))
    const { changed } = await diff(tmfile, onnx)
    expect(changed.map(({ changes }) => changes)).toEqual([['values']])
    expect(changed[0]!.values).toMatchObject({ different: 1, maxError: 0.5, worst: { index: [0, 0, 1, 2] } })
  })
})

describe('arguments', () => {
  it('refuses unknown options and values, and stops with the signal', async () => {
    const a = floats([1])
    await expect(diff(a, a, { tolerance: { absolute: -1 } })).rejects.toThrow(code('ERR_ARGUMENT'))
    await expect(diff(a, a, { ignore: ['layot' as never] })).rejects.toThrow(/"layot".*layout/)
    await expect(diff(a, a, { nonsense: 1 } as never)).rejects.toThrow(code('ERR_ARGUMENT'))
    await expect(diff(a, 5 as never)).rejects.toThrow(code('ERR_ARGUMENT'))
    await expect(diff(a, a, { signal: AbortSignal.abort() })).rejects.toThrow(code('ERR_ABORTED'))
  })

  it('reports progress to the end', async () => {
    const tensors = [floats([1, 2, 3], 'a'), floats([4, 5, 6], 'b')]
    const seen: number[] = []
    await diff(tensors, tensors, {
      onProgress: ({ bytesDone, tensorsDone }) => seen.push(bytesDone + tensorsDone),
    })
    expect(seen.at(-1)).toBe(24 + 2)
  })
})
