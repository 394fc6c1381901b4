/** Errors of weights against what the compressed models decode to. */
import { describe, expect, it } from 'vitest'
import { type DenseTensor, dequantize, tensor } from '../../../lib/index.js'
import {
  OnnxModel,
  quantizeDynamic,
  quantizeStatic,
  quantizeWeights,
  toFloat16,
  type WeightErrorOptions,
  weightErrors,
} from '../../../lib/onnx.js'

const VALUES = Float32Array.from({ length: 70 * 40 }, (_, at) => Math.sin(at * at) * (at % 7))

function modelOf(isTransposed = false): OnnxModel {
  const model = OnnxModel.create({ opset: 21 })
  model.graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['n', isTransposed ? 40 : 70] })
  model.graph.setInitializer('w', tensor(VALUES, { shape: [70, 40] }))
  if (isTransposed) model.graph.addNode({ opType: 'Transpose', inputs: ['w'], outputs: ['t'] })
  model.graph.addNode({
    opType: 'MatMul',
    name: 'm',
    inputs: ['x', isTransposed ? 't' : 'w'],
    outputs: ['y'],
  })
  model.graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
  return model
}

async function floats(graph: OnnxModel['graph'], name: string): Promise<Float32Array> {
  const { cast } = await import('../../../lib/index.js')
  return (await cast(graph.initializer(name) as DenseTensor, 'float32').toTypedArray()) as Float32Array
}

/** The rows of MatMulNBits as numbers, in the order of the weight. */
async function decodedBlocks(model: OnnxModel, isTransposed: boolean): Promise<Float32Array> {
  const [codes, scales] = [await floats(model.graph, 'w_Q4'), await floats(model.graph, 'w_scales')]
  const [k, n] = isTransposed ? [40, 70] : [70, 40]
  const blocks = Math.ceil(k / 32)
  return VALUES.map((_, at) => {
    const [row, column] = [Math.floor(at / 40), at % 40]
    const [line, index] = isTransposed ? [row, column] : [column, row]
    const byte = codes[line * blocks * 16 + (index >> 1)]!
    const code = index % 2 === 0 ? byte & 15 : byte >> 4
    expect(line).toBeLessThan(n)
    return (code - 8) * scales[line * blocks + Math.floor(index / 32)]!
  })
}

function errorsOf(decoded: Float32Array): { readonly max: number; readonly rms: number } {
  const differences = [...decoded].map((number, at) => Math.abs(number - VALUES[at]!))
  const squares = differences.reduce((sum, each) => sum + each * each, 0)
  return { max: Math.max(...differences), rms: Math.sqrt(squares / VALUES.length) }
}

describe('weightErrors', () => {
  it.each([false, true])('of blocks are those of the codes, transposed: %s', async (isTransposed) => {
    const model = modelOf(isTransposed)
    const [error] = await weightErrors(model, { form: 'blocks' })
    await quantizeWeights(model)
    const expected = errorsOf(await decodedBlocks(model, isTransposed))
    expect(error).toMatchObject({ name: 'w', node: 'm', opType: 'MatMul', elements: 2800 })
    expect(error!.max).toBeCloseTo(expected.max, 6)
    expect(error!.rms).toBeCloseTo(expected.rms, 6)
  })

  it('of 8 bits and float16 are those of the stored values', async () => {
    const model = modelOf()
    const [int8] = await weightErrors(model, { form: 'int8', perChannel: true })
    const [half] = await weightErrors(model, { form: 'float16' })
    const [codes, halves] = [model.copy(), model.copy()]
    await quantizeDynamic(codes, { weightType: 'int8', perChannel: true })
    const decoded = dequantize(codes.graph.initializer('w_quantized') as DenseTensor, {
      scale: [...(await floats(codes.graph, 'w_scale'))],
      axis: 1,
    })
    expect(int8!.max).toBeCloseTo(errorsOf((await decoded.toTypedArray()) as Float32Array).max, 6)
    await toFloat16(halves)
    expect(half!.rms).toBeCloseTo(errorsOf(await floats(halves.graph, 'w')).rms, 8)
    expect(half!.sqnr).toBeGreaterThan(int8!.sqnr)
  })

  it.each([
    { opType: 'Gather', inputs: ['w', 'i'], attributes: {} },
    { opType: 'Gemm', inputs: ['x', 'w'], attributes: { transB: { type: 'INT', value: 1 } } },
  ] as const)(
    'of 8 bits are those of quantizeDynamic for $opType',
    async ({ opType, inputs, attributes }) => {
      const model = OnnxModel.create({ opset: 21 })
      const { graph } = model
      graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: ['n', 40] })
      graph.addInput('i', { kind: 'tensor', dtype: 'int64', shape: ['n'] })
      graph.setInitializer('w', tensor(VALUES, { shape: [70, 40] }))
      graph.addNode({ opType, name: 'm', inputs, outputs: ['y'], attributes })
      graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
      const options = { perChannel: true, reduceRange: true } as const
      const [error] = await weightErrors(model, { form: 'int8', ...options })
      await quantizeDynamic(model, { weightType: 'int8', ...options })
      const isTransposed = opType === 'Gemm'
      const part = (name: string): Promise<Float32Array> =>
        floats(graph, `w${isTransposed ? '_Transposed' : ''}_${name}`)
      const [stored, scale, zeroPoint] = [
        await part('quantized'),
        await part('scale'),
        await part('zero_point'),
      ]
      const decoded = VALUES.map((_, at) => {
        const [row, column] = [Math.floor(at / 40), at % 40]
        const code = stored[isTransposed ? column * 70 + row : at]!
        const channel = scale.length === 1 ? 0 : row
        return (code - zeroPoint[channel]!) * scale[channel]!
      })
      expect(error!.max).toBeCloseTo(errorsOf(decoded).max, 5)
      expect(error!.rms).toBeCloseTo(errorsOf(decoded).rms, 5)
    },
  )

  it.each(['int4', 'uint4', 'int16', 'uint16'] as const)(
    'of %s are those of the stored values',
    async (form) => {
      for (const perChannel of [false, true]) {
        const model = modelOf()
        const [error] = await weightErrors(model, { form, perChannel })
        const range = { min: -1, max: 1 }
        await quantizeStatic(model, {
          weightType: form,
          perChannel,
          raiseOpset: true,
          ranges: { x: range, y: range },
        })
        const part = async (name: string): Promise<number[]> => [...(await floats(model.graph, `w_${name}`))]
        const [scale, zeroPoint] = [await part('scale'), await part('zero_point')]
        const codes = model.graph.initializer('w_quantized') as DenseTensor
        expect(codes.dtype).toBe(form)
        const decoded = dequantize(
          codes,
          perChannel ? { scale, zeroPoint, axis: 1 } : { scale: scale[0]!, zeroPoint: zeroPoint[0]! },
        )
        expect(error!.max).toBeCloseTo(errorsOf((await decoded.toTypedArray()) as Float32Array).max, 6)
      }
    },
  )

  it.each([
    { opType: 'Conv', form: 'int8', axis: 0 },
    { opType: 'Conv', form: 'uint8', axis: 0 },
    { opType: 'Conv', form: 'int4', axis: 0 },
    { opType: 'ConvTranspose', form: 'int8', axis: 1 },
    { opType: 'ConvTranspose', form: 'uint16', axis: 1 },
  ] as const)(
    'of $form per channel are those of quantizeStatic for $opType',
    async ({ opType, form, axis }) => {
      const model = OnnxModel.create({ opset: 21 })
      const { graph } = model
      graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 10, 8, 8] })
      graph.setInitializer('w', tensor(VALUES, { shape: [10, 10, 7, 4] }))
      graph.addNode({ opType, name: 'c', inputs: ['x', 'w'], outputs: ['y'] })
      graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
      const options = { perChannel: true, static: true } as const
      const [error] = await weightErrors(model, { form, ...options })
      const [oneScale] = await weightErrors(model, { form, static: true })
      expect(oneScale!.rms).not.toBe(error!.rms)
      const range = { min: -1, max: 1 }
      await quantizeStatic(model, { weightType: form, perChannel: true, ranges: { x: range, y: range } })
      const part = async (name: string): Promise<number[]> => [...(await floats(graph, `w_${name}`))]
      const decoded = dequantize(graph.initializer('w_quantized') as DenseTensor, {
        scale: await part('scale'),
        zeroPoint: await part('zero_point'),
        axis,
      })
      expect(error!.max).toBeCloseTo(errorsOf((await decoded.toTypedArray()) as Float32Array).max, 6)
    },
  )

  it('of 8 bits leave transposed convolutions out, as quantizeDynamic does', async () => {
    const model = OnnxModel.create({ opset: 21 })
    const { graph } = model
    graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 10, 8, 8] })
    graph.setInitializer('w', tensor(VALUES, { shape: [10, 10, 7, 4] }))
    graph.addNode({ opType: 'ConvTranspose', inputs: ['x', 'w'], outputs: ['y'] })
    graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
    expect(await weightErrors(model, { form: 'int8' })).toEqual([])
    expect(await weightErrors(model, { form: 'float16' })).toHaveLength(1)
  })

  it('grow with fewer bits, and are worst first', async () => {
    const model = modelOf()
    model.graph.setInitializer('v', tensor(new Float32Array(1600).fill(0.5), { shape: [40, 40] }))
    model.graph.addNode({ opType: 'MatMul', name: 'exact', inputs: ['y', 'v'], outputs: ['z'] })
    const rms = async (options: WeightErrorOptions): Promise<number> =>
      (await weightErrors(model, options))[0]!.rms
    const two = await rms({ form: 'blocks', bits: 2 })
    const four = await rms({ form: 'blocks', symmetric: false })
    const eight = await rms({ form: 'blocks', bits: 8 })
    expect(two).toBeGreaterThan(four)
    expect(four).toBeGreaterThan(eight)
    const errors = await weightErrors(model, { form: 'bnb4' })
    expect(errors.map(({ name }) => name)).toEqual(['w', 'v'])
    expect(errors[1]!.sqnr).toBe(Number.POSITIVE_INFINITY)
  })

  it.each([
    {},
    { form: 'q4' },
    { form: 'blocks', bits: 3 },
    { form: 'blocks', blockSize: 8 },
    { form: 'int8', perChannel: 1 },
    { form: 'int8', static: 1 },
  ])('refuses the options %j', async (options) => {
    await expect(weightErrors(modelOf(), options as never)).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
  })
})
