/** Weights as numbers: in half precision, and as the real values that quantized ones stand for. */
import { describe, expect, it } from 'vitest'
import { type DenseTensor, open, serialize, tensor as tensorOf } from '../../../lib/index.js'
import { fixturePath, hasFixtures } from './fixture_files.js'
import { node, smallModel } from './tmfile_bytes.js'

describe('castWeights', () => {
  it('halves the weights, and gives them back', async () => {
    const model = smallModel()
    const before = (await serialize(model)).length
    expect(model.castWeights('float16')).toBe(2)
    const half = await serialize(model)
    expect(before - half.length).toBe(16)
    const file = await open(half, { level: 'strict' })
    expect(file.dense('conv/w').dtype).toBe('float16')
    expect([...(await file.dense('conv/w').toTypedArray())]).toEqual([1, 2, 3, 4, 5, 6])
    expect(file.tmfile!.castWeights('float32')).toBe(2)
    const back = await open(await serialize(file))
    expect([back.dense('conv/b').dtype, ...(await back.dense('conv/b').toTypedArray())]).toEqual([
      'float32',
      7,
      8,
    ])
  })

  it('keeps the sizes of weights that have no data', async () => {
    const model = smallModel()
    model.stripWeights()
    expect(model.castWeights('float16')).toBe(2)
    const { tmfile: read } = await open(await serialize(model), { level: 'strict' })
    expect(read!.graph.buffers).toEqual([
      { byteLength: 12, data: null },
      { byteLength: 4, data: null },
    ])
  })

  it('keeps every constant of a buffer that several share', async () => {
    const model = smallModel()
    model.stripWeights()
    const twin = { ...model.graph.tensors[2]!, name: 'twin' }
    model.insertNode(node('twin', 'Const', [], [twin]))
    expect(model.castWeights('float16')).toBe(3)
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
    model.replaceConstant('conv/w', numbers, parameters)
    return model
  }

  it('per channel', async () => {
    const real = await quantized([0.5, 2], [0, 1]).dequantize('conv/w')
    expect([real.name, real.dtype, real.shape]).toEqual(['conv/w', 'float32', [2, 3, 1, 1]])
    expect([...(await real.toTypedArray())]).toEqual([0.5, -1, 1.5, -10, 8, -14])
  })

  it('per tensor', async () => {
    expect([...(await (await quantized([0.25], [-2]).dequantize('conv/w')).toTypedArray())]).toEqual([
      0.75, 0, 1.25, -0.5, 1.75, -1,
    ])
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
    await expect(quantized(scales, zeroPoints).dequantize('conv/w')).rejects.toMatchObject({ code })
  })

  it.skipIf(!hasFixtures)(
    'of a real model, weights lie around 0 and biases have the scale of input and weight',
    async () => {
      const { tmfile: model } = await open(fixturePath('from_onnx_UINT8.tmfile'))
      const convolutions = model!.graph.nodes.filter(({ operator }) => operator === 'Convolution')
      expect(convolutions.length).toBeGreaterThan(50)
      for (const { inputs } of convolutions) {
        const [data, weight, bias] = inputs
        const real = await (await model!.dequantize(weight!)).toTypedArray()
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
