/** Casting, quantizing and dequantizing weights. */

import { describe, expect, it } from 'vitest'
import {
  asLayout,
  check,
  type DenseTensor,
  dequantize,
  materialize,
  open,
  reorder,
  serialize,
  tensor as tensorOf,
} from '../../../../lib/index.js'
import { ModelTensors } from '../../../../lib/models/tmfile/document/tensors.js'
import {
  castWeights,
  dequantizeConstant,
  insertNode,
  quantizeConstant,
  replaceConstant,
  stripWeights,
  type TmfileModel,
} from '../../../../lib/tmfile.js'
import { node, smallModel } from '../../../formats/tmfile/tmfile_bytes.js'
import { THIRD_PARTY, thirdPartyPath } from '../../../shared_fixtures.js'

describe('castWeights', () => {
  it('casts weights to float16 and back', async () => {
    const model = smallModel()
    const before = (await serialize(model)).length
    expect(castWeights(model, 'float16')).toBe(2)
    const half = await serialize(model)
    expect(before - half.length).toBe(16)
    const file = await open(half, { level: 'strict' })
    expect(file.dense('conv/w').dtype).toBe('float16')
    expect([...(await file.dense('conv/w').toTypedArray())]).toEqual([1, 2, 3, 4, 5, 6])
    expect(castWeights(file.tmfile!, 'float32')).toBe(2)
    const back = await open(await serialize(file))
    expect([back.dense('conv/b').dtype, ...(await back.dense('conv/b').toTypedArray())]).toEqual([
      'float32',
      7,
      8,
    ])
  })

  it('rejects other types', () => {
    expect(() => castWeights(smallModel(), 'int8' as never)).toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT' }),
    )
  })

  it('keeps the sizes of weights that have no data', async () => {
    const model = smallModel()
    stripWeights(model)
    expect(castWeights(model, 'float16')).toBe(2)
    const { tmfile: read } = await open(await serialize(model), { level: 'strict' })
    expect(read!.graph.buffers).toEqual([
      { byteLength: 12, data: null },
      { byteLength: 4, data: null },
    ])
  })

  it('keeps all constants of a shared buffer', async () => {
    const model = smallModel()
    stripWeights(model)
    const twin = { ...model.graph.tensors[2]!, name: 'twin' }
    insertNode(model, node('twin', 'Const', [], [twin]))
    expect(castWeights(model, 'float16')).toBe(3)
    const { tmfile: read } = await open(await serialize(model), { level: 'strict' })
    expect(read!.graph.tensors.map(({ buffer }) => buffer?.byteLength)).toEqual([
      undefined,
      12,
      4,
      undefined,
      4,
    ])
  })
})

describe('dequantize', () => {
  const quantized = (scales: number[], zeroPoints: number[]) => {
    const model = smallModel()
    const numbers = tensorOf([1, -2, 3, -4, 5, -6], { dtype: 'int8', shape: [2, 3, 1, 1] }) as DenseTensor
    const widths = new Int32Array(scales.length)
    const parameters = { scales: Float32Array.from(scales), zeroPoints: Int32Array.from(zeroPoints), widths }
    replaceConstant(model, 'conv/w', numbers, parameters)
    return model
  }

  it('per channel', async () => {
    const real = await dequantizeConstant(quantized([0.5, 2], [0, 1]), 'conv/w')
    expect([real.name, real.dtype, real.shape]).toEqual(['conv/w', 'float32', [2, 3, 1, 1]])
    expect([...(await real.toTypedArray())]).toEqual([0.5, -1, 1.5, -10, 8, -14])
  })

  it('per tensor', async () => {
    expect([...(await (await dequantizeConstant(quantized([0.25], [-2]), 'conv/w')).toTypedArray())]).toEqual(
      [0.75, 0, 1.25, -0.5, 1.75, -1],
    )
  })

  it.each([
    [[], []],
    [[0], [0]],
    [[Number.NaN], [0]],
    [
      [1, 1, 1, 1],
      [0, 0, 0, 0],
    ],
  ])('scales %j are refused', async (scales, zeroPoints) => {
    const code = 'ERR_QUANTIZATION'
    await expect(dequantizeConstant(quantized(scales, zeroPoints), 'conv/w')).rejects.toMatchObject({ code })
  })

  it(
    'of a real model, weights lie around 0 and biases have the scale of input and weight',
    THIRD_PARTY,
    async () => {
      const { tmfile: model } = await open(thirdPartyPath('tmfile/from_onnx_UINT8.tmfile'))
      const convolutions = model!.graph.nodes.filter(({ operator }) => operator === 'Convolution')
      expect(convolutions.length).toBeGreaterThan(50)
      for (const { inputs } of convolutions) {
        const [data, weight, bias] = inputs
        const real = await (await dequantizeConstant(model!, weight!)).toTypedArray()
        const values = Array.from(real as Float32Array)
        expect(Math.min(...values)).toBeLessThanOrEqual(0)
        expect(Math.max(...values)).toBeGreaterThanOrEqual(0)
        if (!bias) continue
        const expected = data!.quantization!.scales[0]! * weight!.quantization!.scales[0]!
        expect(Math.abs(bias.quantization!.scales[0]! / expected - 1)).toBeLessThan(1e-3)
      }
    },
  )
})

describe('parameters on the tensors of a file', () => {
  it('one scale applies to the tensor, several to axis 0', async () => {
    const model = smallModel()
    const codes = tensorOf([1, -2, 3, -4, 5, -6], { dtype: 'int8', shape: [2, 3, 1, 1] }) as DenseTensor
    const quantization = {
      scales: Float32Array.of(0.5, 2),
      zeroPoints: Int32Array.of(0, 1),
      widths: new Int32Array(2),
    }
    replaceConstant(model, 'conv/w', codes, quantization)
    model.graph.tensors[3]!.quantization = {
      scales: Float32Array.of(0.25),
      zeroPoints: Int32Array.of(3),
      widths: new Int32Array(1),
    }
    const file = await open(await serialize(model))
    const weight = file.dense('conv/w')
    expect(weight.quantization).toEqual({
      scale: Float32Array.of(0.5, 2),
      zeroPoint: Int32Array.of(0, 1),
      axis: 0,
    })
    expect(file.dense('conv').quantization).toEqual({ scale: 0.25, zeroPoint: 3 })
    expect(file.dense('conv/b').quantization).toBeUndefined()
    const real = dequantize(weight, weight.quantization!)
    expect([...(await real.toTypedArray())]).toEqual([0.5, -1, 1.5, -10, 8, -14])
    expect((await materialize(weight)).quantization).toEqual(weight.quantization)
  })

  it('are saved with a single tensor', async () => {
    const model = smallModel()
    const parameters = await quantizeConstant(model, 'conv/w', 'int8')
    const weight = (await open(await serialize(model))).dense('conv/w')
    const loose = await open(await serialize(weight, { format: 'tmfile' }))
    expect(loose.tmfile!.graph.tensors[0]!.quantization).toEqual(parameters)
  })

  it('are present on every tensor of a uint8 model', THIRD_PARTY, async () => {
    const file = await open(thirdPartyPath('tmfile/from_onnx_UINT8.tmfile'))
    for (const [at, tensor] of file.tmfile!.graph.tensors.entries()) {
      const { quantization } = file.dense(at)
      expect(quantization?.scale).toBe(tensor.quantization?.scales[0])
    }
  })
})

describe('quantize', () => {
  const withWeights = (values: number[]) => {
    const model = smallModel()
    const numbers = tensorOf(values, { dtype: 'float32', shape: [2, 3, 1, 1] }) as DenseTensor
    replaceConstant(model, 'conv/w', numbers)
    return model
  }
  const codesOf = async (model: TmfileModel) => {
    const bytes = await serialize(model)
    // One constant alone has another type than the data of its node.
    const errors = (await check(bytes, { level: 'strict' })).filter(({ severity }) => severity === 'error')
    expect(errors.map(({ code }) => code).filter((code) => code !== 'ERR_DTYPE')).toEqual([])
    const file = await open(bytes)
    const { dtype, quantization } = file.tmfile!.graph.tensors[1]!
    const { scales, zeroPoints } = quantization!
    const values = [...(await file.dense('conv/w').toTypedArray())]
    return { dtype, values, scales: [...scales], zeroPoints: [...zeroPoints] }
  }

  it('int8 is symmetric with one scale per channel', async () => {
    const model = withWeights([127, -127, 0.5, 0, 254, -3])
    await quantizeConstant(model, 'conv/w', 'int8')
    expect(await codesOf(model)).toEqual({
      dtype: 'int8',
      // Halves round away from zero: 0.5 / 1 and -3 / 2.
      values: [127, -127, 1, 0, 127, -2],
      scales: [1, 2],
      zeroPoints: [0, 0],
    })
  })

  it('uint8 has one scale and a clamped zero point', async () => {
    const model = withWeights([-100.75, 154.25, 0, 1, -1, 0.5])
    await quantizeConstant(model, 'conv/w', 'uint8')
    expect(await codesOf(model)).toEqual({
      dtype: 'uint8',
      values: [0, 254, 100, 101, 99, 101],
      scales: [1],
      zeroPoints: [100],
    })
  })

  it('biases use input scale × weight scale', async () => {
    const model = withWeights([1, 2, 3, 4, 5, 6])
    await quantizeConstant(model, 'conv/w', 'int8', { perChannel: false })
    const parameters = await quantizeConstant(model, 'conv/b', 'int32', { scales: [0.5] })
    expect([...parameters.scales, ...parameters.zeroPoints]).toEqual([0.5, 0])
    const file = await open(await serialize(model))
    expect([...(await file.dense('conv/b').toTypedArray())]).toEqual([14, 16])
  })

  it.each([
    [[1, 2, 3, 4, 5, Number.NaN], 'int8', {}],
    [[1, 2, 3, 4, 5, 6], 'int32', {}],
    [[1, 2, 3, 4, 5, 6], 'int8', { scales: [1, 2, 3] }],
    [[1, 2, 3, 4, 5, 6], 'int8', { scales: [0] }],
    [[1, 2, 3, 4, 5, 6], 'uint8', { scales: [1], zeroPoints: [256] }],
    [[1, 2, 3, 4, 5, 6], 'uint8', { scales: [1], zeroPoints: [] }],
  ] as const)('%j as %s with %j is refused', async (values, dtype, options) => {
    const model = withWeights([...values])
    await expect(quantizeConstant(model, 'conv/w', dtype, options)).rejects.toMatchObject({
      code: 'ERR_QUANTIZATION',
    })
    expect(model.graph.tensors[1]!.dtype).toBe('float32')
  })

  it.each([
    ['null', null],
    ['zero points without scales', { zeroPoints: [1] }],
    ['a number for scales', { scales: 3 }],
    ['an unknown option', { perTensor: true }],
    ['a string for a flag', { perChannel: 'yes' }],
  ])('%s is not a set of options', async (_, options) => {
    const model = withWeights([1, 2, 3, 4, 5, 6])
    const rejected = expect(quantizeConstant(model, 'conv/w', 'int8', options as never)).rejects
    await rejected.toMatchObject({ code: 'ERR_ARGUMENT' })
    await expect(quantizeConstant(model, 'conv/w', Symbol('int8') as never)).rejects.toMatchObject({
      code: 'ERR_ARGUMENT',
    })
    expect(model.graph.tensors[1]!.dtype).toBe('float32')
  })

  it('rejects quantized data', async () => {
    const model = withWeights([1, 2, 3, 4, 5, 6])
    await quantizeConstant(model, 'conv/w', 'int8')
    await expect(quantizeConstant(model, 'conv/w', 'uint8')).rejects.toMatchObject({ code: 'ERR_DTYPE' })
  })

  it('requantizing the real values of a model restores its data', THIRD_PARTY, async () => {
    const { tmfile: model } = await open(thirdPartyPath('tmfile/from_onnx_UINT8.tmfile'))
    const weights = model!.graph.nodes
      .filter(({ operator }) => operator === 'Convolution')
      .map(({ inputs }) => inputs[1]!)
    for (const weight of weights) {
      const index = model!.graph.tensors.indexOf(weight)
      const before = [...(await (new ModelTensors(model!).at(index) as DenseTensor).toTypedArray())]
      const { scales, zeroPoints } = weight.quantization!
      replaceConstant(model!, weight, await dequantizeConstant(model!, weight))
      await quantizeConstant(model!, weight, 'uint8', { scales, zeroPoints })
      const after = [...(await (new ModelTensors(model!).at(index) as DenseTensor).toTypedArray())]
      expect(after).toEqual(before)
    }
  })
})

describe.each(['tmfile/FaceLandmark2d.tmfile', 'tmfile/from_onnx_UINT8.tmfile'])(
  'weights of %s in a blocked layout',
  THIRD_PARTY,
  (name) => {
    const BLOCKED = 'os_is_yx_isv16_osv16'

    it.each(['btf', 'npz', 'npy', 'safetensors', 'onnx'] as const)(
      'survive a round trip through %s',
      async (format) => {
        const file = await open(thirdPartyPath(name))
        const weights = [...file.tensors].filter(
          (tensor): tensor is DenseTensor =>
            tensor.kind === 'dense' && tensor.hasData && tensor.shape.length === 4,
        )
        expect(weights.length).toBeGreaterThan(20)
        const blocked = weights.map((weight) => reorder(weight, BLOCKED, { as: 'weights' }))
        // An npy file holds one tensor.
        const lists = format === 'npy' ? blocked.slice(0, 4).map((each) => [each]) : [blocked]
        let at = 0
        for (const list of lists) {
          const stored = await open(await serialize(list, { format }), { format })
          expect(stored.tensors.length).toBe(list.length)
          // A format may have an order of its own; BTF and npy have no names.
          for (const [index, { name: own }] of list.entries()) {
            const found = stored.tensors.get(own) ? stored.dense(own) : stored.dense(index)
            const weight = weights[at++]!
            const isKept = found.storage.layout === BLOCKED
            const back = isKept ? found : asLayout(found, BLOCKED, weight.shape)
            expect(Buffer.compare(await found.bytes(), await blocked[at - 1]!.bytes())).toBe(0)
            const plain = reorder(back, 'row_major')
            expect([plain.dtype, plain.shape]).toEqual([weight.dtype, weight.shape])
            expect(Buffer.compare(await plain.bytes(), await weight.bytes())).toBe(0)
          }
        }
        file.close()
      },
    )
  },
)
