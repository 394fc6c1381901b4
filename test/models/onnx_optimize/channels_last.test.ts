/** channelsLast: inputs and outputs as NHWC, and the Transposes that stay. */
import { describe, expect, it } from 'vitest'
import { check, serialize, tensor } from '../../../lib/index.js'
import { channelsLast, OnnxModel } from '../../../lib/onnx.js'
import { runtime } from '../onnx_compress/onnxruntime.js'
import { modelOf, textsOf } from './model_text.js'

const IMAGE = { x: 'float32 N 3 8 6' }
const filter = tensor(
  Float32Array.from({ length: 54 }, (_, at) => Math.sin(at)),
  { shape: [2, 3, 3, 3] },
)

describe('channelsLast', () => {
  it('puts Transposes around operators that take channels first', async () => {
    const model = modelOf({
      inputs: IMAGE,
      weights: { w: filter },
      nodes: 'a = Conv(x, w); b = Relu(a); y = Neg(b)',
    })
    model.graph.setType('y', { kind: 'tensor', dtype: 'float32', shape: ['N', 2, 6, 4] })
    expect(await channelsLast(model)).toEqual({
      inputs: ['x'],
      outputs: ['y'],
      transposes: { before: 0, after: 2 },
    })
    expect(model.graph.inputs[0]!.type).toMatchObject({ shape: ['N', 8, 6, 3] })
    expect(model.graph.outputs[0]!.type).toMatchObject({ shape: ['N', 6, 4, 2] })
    expect(textsOf(model.graph)[0]).toBe('x_channels_first = Transpose<perm=[0,3,1,2]>(x)')
    expect(
      (await check(await serialize(model), { level: 'strict' })).filter(
        ({ severity }) => severity === 'error',
      ),
    ).toEqual([])
  })

  it('cancels them against those of an exporter, and through elementwise operators', async () => {
    const model = modelOf({
      inputs: IMAGE,
      nodes: 'a = Transpose<perm=[0,2,3,1]>(x); b = Relu(a); y = Transpose<perm=[0,3,1,2]>(b)',
    })
    model.graph.setType('y', { kind: 'tensor', dtype: 'float32', shape: ['N', 3, 8, 6] })
    const { transposes } = await channelsLast(model)
    expect(transposes).toEqual({ before: 2, after: 0 })
    expect(textsOf(model.graph)).toEqual(['y = Relu(x)'])
  })

  it('changes what it is told, of three to five axes', async () => {
    const model = modelOf({
      inputs: { x: 'float32 2 3 8', z: 'float32 1 2 3 4 5' },
      nodes: 'y = Relu(x); v = Exp(z)',
      outputs: 'y v',
    })
    await channelsLast(model, { inputs: ['x', 'z'], outputs: [] })
    expect(model.graph.inputs.map(({ type }) => (type as { shape: unknown }).shape)).toEqual([
      [2, 8, 3],
      [1, 3, 4, 5, 2],
    ])
    expect(textsOf(model.graph).filter((each) => each.includes('Transpose'))).toEqual([
      'z_channels_first = Transpose<perm=[0,4,1,2,3]>(z)',
      'x_channels_first = Transpose<perm=[0,2,1]>(x)',
    ])
  })

  it('keeps what goes in and out as it is, and consumers of an output', async () => {
    const type = { kind: 'tensor', dtype: 'float32', shape: [1, 2, 3, 4] } as const
    const model = OnnxModel.create()
    model.graph.addInput('x', type)
    model.graph.addOutput('x', type)
    model.graph.addNode({
      opType: 'MaxPool',
      inputs: ['x'],
      outputs: ['p'],
      attributes: { kernel_shape: { type: 'INTS', value: [1, 1] } },
    })
    model.graph.addNode({
      opType: 'Softmax',
      inputs: ['p'],
      outputs: ['q'],
      attributes: { axis: { type: 'INT', value: 1 } },
    })
    for (const name of ['p', 'q']) model.graph.addOutput(name, type)
    const same = await serialize(model)
    await expect(channelsLast(model, { inputs: [] })).rejects.toThrow('"x" is an input and an output')
    expect(Buffer.from(await serialize(model)).equals(same)).toBe(true)
    await channelsLast(model)
    expect(
      model.graph.outputs.map(({ name, type: { ...own } }) => [name, (own as { shape: unknown }).shape]),
    ).toEqual([
      ['x', [1, 3, 4, 2]],
      ['p', [1, 3, 4, 2]],
      ['q', [1, 3, 4, 2]],
    ])
    expect(textsOf(model.graph)).toContain('p = Transpose<perm=[0,2,3,1]>(p_channels_first)')
    expect(
      (await check(await serialize(model), { level: 'strict' })).filter(
        ({ severity }) => severity === 'error',
      ),
    ).toEqual([])
  })

  it.each([
    [{ inputs: ['none'] }, 'The graph has no input "none".'],
    [
      { outputs: ['y'] },
      'The output "y" is no dense tensor of a known rank; channelsLast takes 3 to 5 axes.',
    ],
    [{ inputs: ['flat'] }, 'The input "flat" is a tensor of 2 axes; channelsLast takes 3 to 5 axes.'],
  ])('refuses %j', async (options, message) => {
    const model = modelOf({ inputs: { ...IMAGE, flat: 'float32 2 3' }, nodes: 'y = Relu(x)' })
    const before = await serialize(model)
    await expect(channelsLast(model, options)).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_ARGUMENT', message }),
    )
    expect(Buffer.from(await serialize(model)).equals(before)).toBe(true)
  })
})

describe.skipIf(!runtime)('in onnxruntime', () => {
  it('gives the same bits in another order', async () => {
    const nodes = 'a = Conv<pads=[1,1,1,1]>(x, w); b = MaxPool<kernel_shape=[2,2]>(a); y = Sigmoid(b)'
    const made = (): OnnxModel => {
      const model = modelOf({ inputs: { x: 'float32 2 3 8 6' }, weights: { w: filter }, nodes })
      model.graph.setType('y', { kind: 'tensor', dtype: 'float32', shape: [2, 2, 7, 5] })
      return model
    }
    const [first, last] = [made(), made()]
    await channelsLast(last)
    const image = Float32Array.from({ length: 288 }, (_, at) => Math.cos(at * 7))
    const before = await outputOf(first, image, [2, 3, 8, 6])
    const after = await outputOf(last, reordered(image, [2, 3, 48]), [2, 8, 6, 3])
    expect(Buffer.from(after.buffer)).toEqual(Buffer.from(reordered(before, [2, 2, 35]).buffer))
  })
})

/** The last two of three axes swapped. */
function reordered(
  values: Float32Array,
  [batch, rows, columns]: readonly [number, number, number],
): Float32Array {
  return Float32Array.from({ length: batch * rows * columns }, (_, at) => {
    const [image, inside] = [Math.floor(at / (rows * columns)), at % (rows * columns)]
    return values[image * rows * columns + (inside % rows) * columns + Math.floor(inside / rows)]!
  })
}

async function outputOf(
  model: OnnxModel,
  image: Float32Array,
  shape: readonly number[],
): Promise<Float32Array> {
  const options = { graphOptimizationLevel: 'disabled', intraOpNumThreads: 1 }
  const session = await runtime!.InferenceSession.create(await serialize(model), options)
  const results = await session.run({ x: new runtime!.Tensor('float32', image, shape) })
  return results.y!.data
}
