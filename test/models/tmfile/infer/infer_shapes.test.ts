/** Shapes that follow from the shape of an input, by operator and on real models. */

import { describe, expect, it } from 'vitest'
import { open } from '../../../../lib/index.js'
import type { TmfileNodeDescription } from '../../../../lib/tmfile.js'
import { createNode, insertNode, setInputShape } from '../../../../lib/tmfile.js'
import { smallModel } from '../../../formats/tmfile/tmfile_bytes.js'
import { THIRD_PARTY, thirdPartyPath } from '../../../shared_fixtures.js'

type Params = Readonly<Record<string, unknown>>

/** The shape of the output of one node behind an input. */
function outputShape(
  operator: string,
  params: Params,
  input: number[],
  more: readonly string[] = [],
): unknown {
  const model = smallModel()
  model.graph.inputs[0]!.outputs[0]!.shape = null
  const description = { operator, inputs: ['data', ...more], outputs: ['out'], params }
  insertNode(model, createNode(model, description as TmfileNodeDescription))
  const { unknown } = setInputShape(model, 'data', input)
  const out = model.graph.tensors.find(({ name }) => name === 'out')!
  expect(unknown.includes(out)).toBe(out.shape === null)
  return out.shape
}

describe('the rule of an operator', () => {
  const kernel3 = { kernel_h: 3, kernel_w: 3, stride_h: 2, stride_w: 2 }
  const same = { pad_h0: -1, pad_h1: -1, pad_w0: -1, pad_w1: -1 }
  const pad1 = { pad_h0: 1, pad_h1: 1, pad_w0: 1, pad_w1: 1 }
  const strides = { stride_n: 1, stride_c: 1, stride_h: 1, stride_w: 1 }
  const dilated = { dilation_h: 1, dilation_w: 1 }
  it.each([
    ['Convolution', { ...kernel3, ...dilated, ...pad1, output_channel: 8 }, [1, 3, 8, 9], [1, 8, 4, 5]],
    ['Convolution', { ...kernel3, ...dilated, ...same, output_channel: 8 }, [1, 3, 7, 8], [1, 8, 4, 4]],
    [
      'Convolution',
      { ...kernel3, dilation_h: 2, dilation_w: 2, output_channel: 8 },
      [1, 3, 9, 9],
      [1, 8, 3, 3],
    ],
    ['Convolution', { ...kernel3, ...dilated, output_channel: 8 }, [1, 3, 2, 2], null],
    ['Deconvolution', { ...kernel3, ...dilated, ...pad1, num_output: 4 }, [1, 3, 4, 4], [1, 4, 7, 7]],
    ['Pooling', { ...kernel3 }, [1, 3, 8, 8], [1, 3, 3, 3]],
    ['Pooling', { ...kernel3, caffe_flavor: 1 }, [1, 3, 8, 8], [1, 3, 4, 4]],
    ['Pooling', { ...kernel3, ...pad1, caffe_flavor: 1 }, [1, 3, 7, 7], [1, 3, 4, 4]],
    ['Pooling', { ...kernel3, ...pad1, caffe_flavor: 2 }, [1, 3, 8, 8], [1, 3, 4, 4]],
    ['Pooling', { ...kernel3, global: 1 }, [2, 3, 8, 8], [2, 3, 1, 1]],
    ['Pooling', { ...kernel3, stride_h: 0 }, [1, 3, 8, 8], null],
    ['ReLu', {}, [1, 3, 5, 6], [1, 3, 5, 6]],
    ['Softmax', { axis: 1 }, [1, 3], [1, 3]],
    ['Flatten', { axis: 1, end_axis: 3 }, [2, 3, 4, 5], [2, 60]],
    ['Flatten', { axis: 1, end_axis: -1 }, [2, 3, 4, 5], [2, 60]],
    ['Flatten', { axis: 0, end_axis: 1 }, [2, 3, 4, 5], null],
    ['Permute', { order0: 0, order1: 2, order2: 3, order3: 1 }, [1, 3, 4, 5], [1, 4, 5, 3]],
    ['Transpose', { tr_shape: [0, 2, 1] }, [1, 3, 4], [1, 4, 3]],
    ['Transpose', { tr_shape: [0, 2, 2] }, [1, 3, 4], null],
    ['Reshape', { re_shape: [1, -1] }, [1, 3, 4], [1, 12]],
    ['Reshape', { re_shape: [0, -1], is_onnx: 1 }, [2, 3, 4], [2, 12]],
    ['Reshape', { re_shape: [0, -1] }, [2, 3, 4], [1, 24]],
    ['Reshape', { re_shape: [2, 0, -1] }, [2, 3, 4], [2, 12]],
    ['Reshape', { re_shape: [-3, 0], is_mxnet: 1 }, [2, 3, 4], [6, 4]],
    ['Reshape', { re_shape: [0, -4, -1, 3, -2], is_mxnet: 1 }, [2, 3, 4], [2, 1, 3, 4]],
    ['Reshape', { re_shape: [5, -1] }, [2, 3, 4], null],
    ['Reshape', { re_shape: [-1, -1] }, [2, 3, 4], null],
    ['Reshape', { re_shape: [1, 12], reverse: 1 }, [1, 3, 4], [12, 1]],
    ['Upsample', { scale: 2 }, [1, 3, 4, 5], [1, 3, 8, 10]],
    [
      'Interp',
      { height_scale: 2, width_scale: 2, output_height: 1, output_width: 1 },
      [1, 3, 4, 5],
      [1, 3, 8, 10],
    ],
    ['Interp', { output_height: 7, output_width: 6 }, [1, 3, 4, 5], [1, 3, 7, 6]],
    ['Resize', { scale_x: 2, scale_y: 3 }, [1, 3, 4, 5], [1, 3, 8, 15]],
    ['Squeeze', { dim_0: 1, dim_1: 2, dim_2: -2, dim_3: -2 }, [1, 3, 1, 1], [1, 3]],
    ['Unsqueeze', { axises: [1] }, [2, 3], [2, 1, 3]],
    ['Expanddims', { axis: 0 }, [2, 3], [1, 2, 3]],
    ['SwapAxis', { dim_0: 0, dim_1: 2 }, [2, 3, 4], [4, 3, 2]],
    ['Slice', { axis: 1, isonnx: 1, begin: 1, end: 9, step: 2 }, [1, 6, 4, 4], [1, 3, 4, 4]],
    ['Slice', { axis: -1, ismxnet: 1, begin: 1, end: 3 }, [1, 6, 4, 4], [1, 6, 4, 2]],
    ['Slice', { begins: [0, 1, 0], sizes: [2, 1, -1] }, [2, 3, 4], [2, 1, 4]],
    ['StridedSlice', { begin_h: 1, end_h: -1, ...strides }, [1, 3, 8, 8], [1, 3, 6, 8]],
    ['Pad', { pad_h_0: 1, pad_w_1: 2 }, [1, 3, 4, 5], [1, 3, 5, 7]],
    ['Reduction', { dim_0: 2, dim_1: 3, dim_2: -2, dim_3: -2, keepdim: 0 }, [1, 3, 4, 5], [1, 3]],
    ['Reduction', { dim_0: -2, dim_1: -2, dim_2: -2, dim_3: -2, keepdim: 0 }, [1, 3, 4, 5], [1]],
    ['ReduceL2', { axis: 2, keepdim: 1 }, [1, 3, 4, 5], [1, 3, 1, 1]],
    ['DepthToSpace', { block_size: 2 }, [1, 8, 4, 5], [1, 2, 8, 10]],
    ['PriorBox', {}, [1, 3, 4, 5], null],
    [
      'PriorBox',
      { min_size: [16], max_size: [32], aspect_ratio: [2], flip: 1 },
      [1, 3, 4, 5],
      [1, 2, 4 * 5 * 4 * 4, 1],
    ],
    ['ReLu', {}, [1, 3, -1, 6], null],
  ])('%s %j of %j gives %j', (operator, params, input, expected) => {
    expect(outputShape(operator, params, input)).toEqual(expected)
  })

  it.each([
    ['Concat', { axis: 1 }, [1, 6, 4, 4]],
    ['Concat', { axis: -1 }, [1, 3, 4, 8]],
    ['Concat', { axis: 4 }, null],
    ['Eltwise', {}, [1, 3, 4, 4]],
  ])('%s %j of two tensors gives %j', (operator, params, expected) => {
    expect(outputShape(operator, params, [1, 3, 4, 4], ['data'])).toEqual(expected)
  })

  it('FullyConnected needs weights of the size of its input', () => {
    // conv/w is [2, 3, 1, 1].
    expect(outputShape('FullyConnected', { num_output: 2 }, [4, 3], ['conv/w'])).toEqual([4, 2])
    expect(outputShape('FullyConnected', { num_output: 2 }, [4, 3, 1, 1], ['conv/w'])).toEqual([4, 2, 1, 1])
    expect(outputShape('FullyConnected', { num_output: 2 }, [4, 5], ['conv/w'])).toBe(null)
  })
})

describe('real models', THIRD_PARTY, () => {
  it.each(['mnist', 'FaceLandmark2d', 'yolov3_tiny_benchmark'])(
    'every stored shape of %s follows from its input',
    async (name) => {
      const model = (await open(thirdPartyPath(`tmfile/${name}.tmfile`))).tmfile!
      const input = model.graph.inputs[0]!.outputs[0]!
      const stored = model.graph.tensors.map(({ shape }) => shape && [...shape])
      const shape = input.shape!
      setInputShape(model, input, [shape[0]!, shape[1]!, shape[2]! * 2, shape[3]! * 2])
      expect(model.graph.tensors.map(({ shape }) => shape)).not.toEqual(stored)
      expect(setInputShape(model, input, shape).unknown).toEqual([])
      expect(model.graph.tensors.map(({ shape }) => shape)).toEqual(stored)
    },
  )

  it('a detector of another size', async () => {
    const model = (await open(thirdPartyPath('tmfile/retinaface_benchmark.tmfile'))).tmfile!
    const { unknown, blocked } = setInputShape(model, model.graph.inputs[0]!.outputs[0]!, [1, 3, 480, 640])
    expect([unknown, blocked]).toEqual([[], []])
    const sizes = model.graph.outputs.map(({ outputs }) => outputs[0]!.shape!.slice(2))
    // As measured with the reference.
    expect(sizes).toContainEqual([60, 80])
  })

  it('names what is unknown', async () => {
    const model = (await open(thirdPartyPath('tmfile/mssd_benchmark.tmfile'))).tmfile!
    const pooled = model.graph.nodes.find(({ operator }) => operator === 'Permute')!
    const node = createNode(model, { operator: 'RPN', name: 'regions', inputs: [pooled.inputs[0]!] })
    insertNode(model, node)
    const input = model.graph.inputs[0]!.outputs[0]!
    const { unknown } = setInputShape(model, input, [1, 3, 320, 320])
    expect(unknown).toEqual(node.outputs)
    expect(node.outputs[0]!.shape).toBe(null)
  })
})
