/** tmfile to ONNX: every operator, what is refused, names, quantization, batch, and layouts. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { TO_ONNX } from '../../../lib/bridges/onnx_tmfile/to_onnx/table.js'
import { cast, check, convert, type DenseTensor, open, save, serialize, tensor } from '../../../lib/index.js'
import type { ValueType } from '../../../lib/onnx.js'
import { inferTypes } from '../../../lib/onnx.js'
import * as tmfile from '../../../lib/tmfile.js'
import {
  createNode,
  insertNode,
  replaceConstant,
  setOutputs,
  stripNames,
  stripWeights,
  type TmfileModel,
  type TmfileTensor,
  tmfileToOnnx,
} from '../../../lib/tmfile.js'
import { THIRD_PARTY, thirdPartyPath } from '../../shared_fixtures.js'
import { modelOf, OPERATOR_CASES, type OperatorCase } from './operator_cases.mjs'

const library = { ...tmfile, tensor }

const elements = ({ shape }: TmfileTensor) => shape!.reduce((product, extent) => product * extent, 1)

const opTypes = ({ graph }: { graph: { nodes: readonly { opType: string }[] } }) =>
  graph.nodes.map(({ opType }) => opType)

describe('operators', () => {
  it.each(OPERATOR_CASES.map((each, at): [number, string, OperatorCase] => [at, each.operator, each]))(
    'case %i: %s',
    async (_, operator, given) => {
      const { model } = await tmfileToOnnx(modelOf(given, library))
      expect(opTypes(model)).toEqual(given.opTypes)
      expect(await check(await serialize(model))).toEqual([])
      // The shapes that the runtime infers, and those that ONNX infers.
      for (const { name, type } of model.graph.outputs) {
        const inferred = inferTypes(model).get(name)
        if (inferred && 'shape' in inferred && 'shape' in type)
          expect([operator, type.shape]).toEqual([operator, inferred.shape])
      }
    },
  )

  it('every row of the table has a case', () => {
    const covered = new Set(OPERATOR_CASES.map(({ operator }) => operator))
    expect(TO_ONNX.map(({ operator }) => operator).filter((operator) => !covered.has(operator))).toEqual([])
  })
})

/** A convolution with ReLU6 behind it, as files have them. */
function smallModel(change: (graph: TmfileModel['graph']) => void = () => {}): TmfileModel {
  const given = OPERATOR_CASES.find(({ opTypes: made }) => String(made) === 'Conv,Clip')!
  const model = modelOf(given, library)
  change(model.graph)
  return model
}

const shapeOf = (end: { readonly type: ValueType }) => ('shape' in end.type ? end.type.shape : undefined)

describe('names', () => {
  it('of tensors and nodes stay, and the linear part of an activated node has its own', async () => {
    const { graph } = (await tmfileToOnnx(smallModel())).model
    expect(graph.nodes.map(({ name, inputs, outputs }) => [name, inputs[0], outputs])).toEqual([
      ['node', 'input0', ['node__linear']],
      ['node__activation', 'node__linear', ['node']],
    ])
    expect(graph.nodes[0]!.inputs.slice(1)).toEqual(['constant0', 'constant1'])
  })

  it('are made where the file has none', async () => {
    const model = smallModel()
    stripNames(model)
    const { graph } = (await tmfileToOnnx(model)).model
    expect(graph.inputs.map(({ name }) => name)).toEqual(['tensor_0'])
    expect(new Set(graph.nodes.map(({ name }) => name)).size).toBe(2)
  })
})

describe('refusals', () => {
  it('name every node with its operator and the reason', async () => {
    const model = smallModel()
    for (const [operator, name] of [
      ['Region', 'boxes'],
      ['Reorg', 'moved'],
      ['ReLu', 'behind'],
    ] as const) {
      const inputs = [name === 'behind' ? 'moved' : 'node']
      insertNode(model, createNode(model, { operator, name, inputs }), model.graph.nodes.length)
    }
    setOutputs(model, ['boxes', 'behind'])
    const message = expect.stringMatching(
      /2 nodes have no counterpart:\n {2}"boxes" \(Region\): .*\n {2}"moved" \(Reorg\): /,
    )
    await expect(tmfileToOnnx(model)).rejects.toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED', message }),
    )
  })

  it('name the first of many nodes with one reason', async () => {
    const model = smallModel()
    for (let at = 0; at < 12; at++) {
      const name = `moved${at}`
      const inputs = ['node']
      insertNode(model, createNode(model, { operator: 'Reorg', name, inputs }), model.graph.nodes.length)
    }
    setOutputs(
      model,
      Array.from({ length: 12 }, (_, at) => `moved${at}`),
    )
    await expect(tmfileToOnnx(model)).rejects.toThrow(
      /12 nodes have no counterpart:\n {2}"moved0", "moved1", "moved2" and 9 more \(Reorg\): [^\n]*$/,
    )
  })

  it('leave out nodes that no output needs', async () => {
    const model = smallModel()
    const node = createNode(model, { operator: 'Region', name: 'boxes', inputs: ['node'] })
    insertNode(model, node, model.graph.nodes.length)
    expect((await tmfileToOnnx(model)).report.nodes).toBe(1)
  })

  it('of parameters that do not fit', async () => {
    const model = smallModel(({ nodes }) => Object.assign(nodes.at(-1)!.params, { activation: 4 }))
    await expect(tmfileToOnnx(model)).rejects.toThrow('activation 4 is unknown')
    const moved = modelOf(OPERATOR_CASES.find(({ operator }) => operator === 'Transpose')!, library)
    Object.assign(moved.graph.nodes.at(-1)!.params, { tr_shape: 1 })
    await expect(tmfileToOnnx(moved)).rejects.toThrow(/"node" \(Transpose\): its parameter tr_shape is 1/)
    const flat = smallModel()
    insertNode(
      flat,
      createNode(flat, { operator: 'Reshape', name: 'flat', inputs: ['node'], params: { re_shape: [7] } }),
      flat.graph.nodes.length,
    )
    setOutputs(flat, ['flat'])
    await expect(tmfileToOnnx(flat)).rejects.toThrow(
      /"flat" \(Reshape\): its parameters do not fit its inputs \[1,5,4,6\]/,
    )
  })

  it('of an input without a shape, and of layouts that contradict each other', async () => {
    const model = smallModel(({ tensors }) => {
      tensors[0]!.shape = null
    })
    await expect(tmfileToOnnx(model)).rejects.toThrow(/no complete shape of "input0"/)
    const { report } = await tmfileToOnnx(model, { inputShapes: { input0: [2, 4, 6, 8] } })
    expect(report.inputs).toEqual({ input0: [2, 4, 6, 8] })
    const twice = smallModel((graph) => Object.assign(graph, { modelLayout: 1 }))
    await expect(tmfileToOnnx(twice)).rejects.toThrow('converts the shapes of such a file twice')
  })

  it.each([
    [{ inputShapes: { data: [1, 4, 6, 8] } }, /the inputs are "input0"/],
    [{ inputShapes: { input0: [1, 0] } }, /inputShapes\["input0"\]/],
    [{ batch: 0 }, /batch is 0/],
    [{ weights: 'int8' }, /weights is "int8"; expected one of: float32, float16/],
    [{ shapes: {} }, /unknown option "shapes"/i],
  ])('of the options %j', async (options, message) => {
    await expect(tmfileToOnnx(smallModel(), options as never)).rejects.toThrow(message)
  })
})

describe('the batch', () => {
  it('is set, left open, or refused where a node depends on it', async () => {
    const three = await tmfileToOnnx(smallModel(), { batch: 3 })
    expect(three.model.graph.outputs.map(shapeOf)).toEqual([[3, 5, 4, 6]])
    const open = await tmfileToOnnx(smallModel(), { batch: 'N' })
    expect(open.model.graph.inputs.map(shapeOf)).toEqual([['N', 4, 6, 8]])
    expect(open.model.graph.outputs.map(shapeOf)).toEqual([['N', 5, 4, 6]])
    const flat = smallModel()
    insertNode(
      flat,
      createNode(flat, {
        operator: 'Reshape',
        name: 'flat',
        inputs: ['node'],
        params: { re_shape: [-1, 12] },
      }),
      flat.graph.nodes.length,
    )
    setOutputs(flat, ['flat'])
    await expect(tmfileToOnnx(flat, { batch: 'N' })).rejects.toThrow(/these nodes depend on its size: "flat"/)
  })

  it('changes targets of Reshape that begin with the old one', async () => {
    const model = smallModel()
    insertNode(
      model,
      createNode(model, {
        operator: 'Reshape',
        name: 'flat',
        inputs: ['node'],
        params: { re_shape: [1, 120] },
      }),
      model.graph.nodes.length,
    )
    setOutputs(model, ['flat'])
    const { graph } = (await tmfileToOnnx(model, { batch: 4 })).model
    expect(graph.outputs.map(shapeOf)).toEqual([[4, 120]])
    expect(model.graph.nodes.at(-1)!.params).toMatchObject({ re_shape: [1, 120] })
  })
})

describe('constants', () => {
  const isHalf = (graph: TmfileModel['graph']) => {
    for (const each of graph.tensors.filter(({ role }) => role === 'constant')) {
      const half = cast(tensor(new Float32Array(elements(each)), { shape: each.shape! }), 'float16')
      Object.assign(each, {
        dtype: 'float16',
        buffer: { byteLength: half.storage.byteLength, data: { tensor: half } },
      })
    }
  }

  it('without data are zeros, or refused', async () => {
    const model = smallModel()
    stripWeights(model)
    const { report, model: made } = await tmfileToOnnx(model)
    expect([...report.zeros].sort()).toEqual(['constant0', 'constant1'])
    const weights = made.graph.initializer('constant0') as DenseTensor
    expect([...(await weights.toTypedArray())].every((each) => each === 0)).toBe(true)
    await expect(tmfileToOnnx(model, { absentWeights: 'refuse' })).rejects.toThrow(/"constant\d" has no data/)
  })

  it('of float16 become float32, or stay behind a Cast', async () => {
    const plain = (await tmfileToOnnx(smallModel(isHalf))).model.graph
    expect(plain.initializer('constant0')!.dtype).toBe('float32')
    const kept = (await tmfileToOnnx(smallModel(isHalf), { weights: 'float16' })).model.graph
    expect(kept.initializer('constant0')!.dtype).toBe('float16')
    expect(kept.nodes.map(({ opType }) => opType)).toEqual(['Cast', 'Cast', 'Conv', 'Clip'])
  })
})

describe('quantized models', () => {
  const record = (scale: number, zeroPoint = 0, count = 1) => ({
    scales: new Float32Array(count).fill(scale),
    zeroPoints: new Int32Array(count).fill(zeroPoint),
    widths: new Int32Array(count),
  })

  /** Weights with one record per channel, a bias without any. */
  const int8 = ({ tensors }: TmfileModel['graph']) => {
    const [input, weight, bias, output] = ['input0', 'constant0', 'constant1', 'node'].map(
      (name) => tensors.find((each) => each.name === name)!,
    )
    Object.assign(input!, { dtype: 'int8', quantization: record(0.1) })
    Object.assign(output!, { dtype: 'int8', quantization: record(0.2) })
    const store = (target: TmfileTensor, dtype: 'int8' | 'int32', quantization: unknown) => {
      const codes = tensor(Array(elements(target)).fill(3), { dtype, shape: target.shape! })
      const buffer = { byteLength: codes.storage.byteLength, data: { tensor: codes } }
      Object.assign(target, { dtype, quantization, buffer })
    }
    store(weight!, 'int8', record(0.01, 0, 5))
    store(bias!, 'int32', null)
  }

  it('have QuantizeLinear and DequantizeLinear around float operators', async () => {
    const { model } = await tmfileToOnnx(smallModel(int8))
    expect(opTypes(model)).toEqual([
      ...['DequantizeLinear', 'DequantizeLinear', 'DequantizeLinear', 'Conv', 'Clip', 'QuantizeLinear'],
    ])
    expect(model.graph.inputs.map(({ type }) => 'dtype' in type && type.dtype)).toEqual(['int8'])
    expect(model.graph.outputs.map(({ name, type }) => [name, 'dtype' in type && type.dtype])).toEqual([
      ['node', 'int8'],
    ])
    const bias = model.graph.nodes.find(({ inputs }) => inputs[0] === 'constant1')!
    const scales = (await (
      model.graph.initializer(bias.inputs[1]!) as DenseTensor
    ).toTypedArray()) as Float32Array
    expect([...scales]).toEqual(Array(5).fill(Math.fround(Math.fround(0.01) * Math.fround(0.1))))
    expect(await check(await serialize(model))).toEqual([])
  })

  it('have float inputs and outputs, or are floats altogether, by option', async () => {
    const ends = (await tmfileToOnnx(smallModel(int8), { ends: 'float32' })).model.graph
    expect(
      ends.nodes.map(({ opType }) => opType).filter((opType) => opType === 'QuantizeLinear').length,
    ).toBe(2)
    expect(
      [...ends.inputs, ...ends.outputs].map(({ name, type }) => [name, 'dtype' in type && type.dtype]),
    ).toEqual([
      ['input0', 'float32'],
      ['node', 'float32'],
    ])
    const floats = (await tmfileToOnnx(smallModel(int8), { quantized: 'dequantize' })).model
    expect(opTypes(floats)).not.toContain('QuantizeLinear')
  })

  it('whose activations have no scales are refused where a bias needs them, and floats elsewhere', async () => {
    const model = smallModel((graph) => {
      int8(graph)
      for (const each of graph.tensors) if (each.role !== 'constant') each.quantization = null
    })
    await expect(tmfileToOnnx(model)).rejects.toThrow(
      'its bias "constant1" is int32, and its data or weights have no scales',
    )
    const node = model.graph.nodes.at(-1)!
    node.inputs = node.inputs.slice(0, 2)
    const { report, model: made } = await tmfileToOnnx(model)
    expect(report.notes).toEqual([
      'Activations are integers without scales in the file; they are floats here.',
    ])
    expect(opTypes(made)).toEqual(['DequantizeLinear', 'Conv', 'Clip'])
  })

  it('with a zero point that their type does not have are refused', async () => {
    const model = smallModel((graph) => {
      int8(graph)
      graph.tensors[0]!.quantization = record(0.1, 300)
    })
    await expect(tmfileToOnnx(model)).rejects.toThrow('has the zero point 300; int8 ranges from -128 to 127')
  })
})

describe('NHWC models', () => {
  /** The weights hold their own flat index, in the order of the file. */
  const nhwc = (outputs: number, inputs: number) => {
    const model = smallModel((graph) => Object.assign(graph, { graphLayout: 1, modelLayout: 1 }))
    const count = outputs * 9 * inputs
    const weights = tensor(
      Float32Array.from({ length: count }, (_, at) => at),
      { shape: [outputs, 3, 3, inputs] },
    )
    replaceConstant(model, 'constant0', weights)
    model.graph.tensors[0]!.shape = [1, 6, 8, 4]
    Object.assign(model.graph.nodes.at(-1)!.params, { group: 4 / inputs, output_channel: outputs })
    model.graph.nodes.at(-1)!.inputs.pop()
    return model
  }

  it('become NCHW, with their weights turned', async () => {
    const { graph } = (await tmfileToOnnx(nhwc(5, 4))).model
    expect(graph.inputs.map(shapeOf)).toEqual([[1, 4, 6, 8]])
    expect(graph.outputs.map(shapeOf)).toEqual([[1, 5, 4, 6]])
    const weights = graph.initializer('constant0') as DenseTensor
    expect(weights.shape).toEqual([5, 4, 3, 3])
    const values = await weights.toTypedArray()
    expect([...values.slice(0, 10)]).toEqual([0, 4, 8, 12, 16, 20, 24, 28, 32, 1])
  })

  it('have depthwise weights in the order height, width, output', async () => {
    const { graph } = (await tmfileToOnnx(nhwc(4, 1))).model
    const weights = graph.initializer('constant0') as DenseTensor
    expect(weights.shape).toEqual([4, 1, 3, 3])
    expect([...(await weights.toTypedArray()).slice(0, 10)]).toEqual([0, 4, 8, 12, 16, 20, 24, 28, 32, 1])
  })

  it.each([
    [[1, -1], [1, 120], 'Transpose Reshape'],
    [[1, 4, 6, 5], [1, 5, 4, 6], 'Reshape'],
    [[1, 6, 4, 5], [1, 5, 6, 4], 'Reshape'],
    [[1, 4, 3, 10], [1, 10, 4, 3], 'Transpose Reshape Transpose'],
    [[1, 12, 10], [1, 10, 12], 'Transpose Reshape Transpose'],
  ])('reshape to %j as images of n, h, w, c', async (target, shape, made) => {
    const model = nhwc(5, 4)
    const params = { re_shape: target }
    const node = createNode(model, { operator: 'Reshape', name: 'flat', inputs: ['node'], params })
    insertNode(model, node, model.graph.nodes.length)
    setOutputs(model, ['flat'])
    const { graph } = (await tmfileToOnnx(model)).model
    expect(graph.outputs.map(shapeOf)).toEqual([shape])
    expect(opTypes({ graph }).join(' ')).toBe(`Conv Clip ${made}`)
  })

  it('keep NHWC inputs by option', async () => {
    const { graph } = (await tmfileToOnnx(nhwc(5, 4), { inputLayout: 'NHWC' })).model
    expect(graph.inputs.map(shapeOf)).toEqual([[1, 6, 8, 4]])
    expect(graph.nodes[0]!.opType).toBe('Transpose')
  })
})

describe('real files', THIRD_PARTY, () => {
  const shapes = { retinaface_benchmark: { data: [1, 3, 240, 320] } }
  it.each([
    ['FaceLandmark2d', 66],
    ['from_onnx_UINT8', 77],
    ['mnist', 8],
    ['mobilenet_benchmark', 29],
    ['mssd_benchmark', 83],
    ['retinaface_benchmark', 77],
    ['squeezenet_v1.1_benchmark', 40],
    ['yolov3_tiny_benchmark', 35],
  ])('%s becomes ONNX', async (name, nodes) => {
    const file = await open(thirdPartyPath(`tmfile/${name}.tmfile`))
    const inputShapes = (shapes as Record<string, Record<string, number[]>>)[name] ?? {}
    const { model, report } = await tmfileToOnnx(file.tmfile!, { inputShapes })
    expect(report.nodes).toBe(nodes)
    expect(await check(await serialize(model))).toEqual([])
  })

  it('boxes of a detector are those of one image for each of the batch', async () => {
    const file = await open(thirdPartyPath('tmfile/mssd_benchmark.tmfile'))
    const { graph } = (await tmfileToOnnx(file.tmfile!, { batch: 2 })).model
    expect(graph.outputs.map(shapeOf)).toEqual([
      [2, 7668],
      [2, 40257],
      [2, 2, 7668, 1],
    ])
    await expect(tmfileToOnnx(file.tmfile!, { batch: 'N' })).rejects.toThrow('The batch cannot stay open')
  })

  it('a detector ends where its boxes are decoded', async () => {
    const file = await open(thirdPartyPath('tmfile/mssd_benchmark.tmfile'))
    const { model, report } = await tmfileToOnnx(file.tmfile!)
    expect(model.graph.outputs.map(shapeOf)).toEqual([
      [1, 7668],
      [1, 40257],
      [1, 2, 7668, 1],
    ])
    expect(report.notes).toEqual([
      '"detection_out" (DetectionOutput) has no counterpart; its inputs are outputs.',
      '94 constants have no data in the file and became zeros; tilework edit --fill-weights gives them values before.',
    ])
  })
})

describe('convert', () => {
  it('keeps the graph of a tmfile that becomes ONNX', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tilework-to-onnx-'))
    try {
      const [input, output] = [join(folder, 'model.tmfile'), join(folder, 'model.onnx')]
      await save(input, smallModel())
      const { graph, droppedNodes } = await convert(input, output, { batch: 'N' })
      expect([graph?.nodes, droppedNodes]).toEqual([1, 0])
      const file = await open(output)
      expect(opTypes(file.onnx!)).toEqual(['Conv', 'Clip'])
      expect(file.onnx!.graph.inputs.map(shapeOf)).toEqual([['N', 4, 6, 8]])
      file.close()
      const options = { layout: 'byxf' } as const
      await expect(convert(input, output, options)).rejects.toThrow(
        'layout changes tensors, which would no longer fit the graph',
      )
      const weights = await convert(input, output, { weightsOnly: true, replaceGraph: true })
      expect(weights.tensors.map(({ name }) => name).sort()).toEqual(['constant0', 'constant1'])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
