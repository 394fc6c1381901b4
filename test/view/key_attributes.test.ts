/** The words in the boxes of a graph: what they say of a node in each format. */
import { describe, expect, it } from 'vitest'
import { keyAttributes } from '../../lib/view/server/key_attributes.js'

function textOf(operator: string, attributes: Readonly<Record<string, string>>): string {
  return keyAttributes({
    operator,
    name: '',
    inputs: [],
    outputs: [],
    attributes: new Map(Object.entries(attributes)),
  })
}

describe('keyAttributes', () => {
  it.each([
    [
      'Conv',
      { kernel_shape: '[3, 3]', strides: '[2, 2]', pads: '[1, 1, 1, 1]', group: '1' },
      'stride 2, pad 1',
    ],
    ['Conv', { strides: '[1, 2]', pads: '[0, 1, 0, 1]', group: '8' }, 'stride 1×2, pad 0×1×0×1, group 8'],
    ['MaxPool', { kernel_shape: '[2, 3]', strides: '[1, 1]', pads: '[0, 0, 0, 0]' }, '2×3'],
    [
      'Pooling',
      { kernel_h: '3', kernel_w: '3', stride_h: '2', stride_w: '2', pad_h0: '0', pad_w0: '0' },
      '3×3, stride 2',
    ],
    [
      'Convolution',
      { strides: '2, 2', dilations: '1, 1', pads_begin: '1, 1', pads_end: '0, 0' },
      'stride 2, pad 1×1×0×0',
    ],
    ['Cast', { to: '1' }, 'to float32'],
    ['Transpose', { perm: '[0, 3, 1, 2]' }, 'to 0×3×1×2'],
    ['MatMulNBits', { K: '1024', N: '256', bits: '4', block_size: '32' }, 'K 1024, N 256, bits 4, block 32'],
    ['Resize', { mode: '"linear"', coordinate_transformation_mode: '"half_pixel"' }, 'mode linear'],
    ['Add', { mode: '"linear"' }, ''],
    ['Transpose', { perm: `[${Array.from({ length: 20 }, (_, at) => at).join(', ')}]` }, ''],
  ])('%s %o is "%s"', (operator, attributes, text) => expect(textOf(operator, attributes)).toBe(text))
})
