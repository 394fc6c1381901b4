/** Files that the runtime loads and that kill it: findings of a check, errors of a strict one. */

import { describe, expect, it } from 'vitest'
import { cast, check, open, serialize, tensor } from '../../../lib/index.js'
import type { TmfileModel } from '../../../lib/tmfile.js'
import {
  castWeights,
  insertNode,
  nodesOfMixedTypes,
  quantizeConstant,
  replaceConstant,
} from '../../../lib/tmfile.js'
import { THIRD_PARTY, thirdPartyFiles, thirdPartyPath } from '../../shared_fixtures.js'
import { node, smallModel, variable } from './tmfile_bytes.js'

async function errorsOf(model: TmfileModel): Promise<string[]> {
  const findings = await check(await serialize(model), { level: 'strict' })
  return findings
    .filter(({ severity }) => severity === 'error')
    .map(({ code, message }) => `${code}: ${message}`)
}

function changed(change: (graph: TmfileModel['graph'], model: TmfileModel) => void): TmfileModel {
  const model = smallModel()
  change(model.graph, model)
  return model
}

const convolution = ({ nodes }: TmfileModel['graph']) =>
  nodes.find(({ operator }) => operator === 'Convolution')!

const pooling = (params: object) =>
  changed((graph, model) => {
    const pool = node('pool', 'Pooling', [graph.tensors[3]!], [variable('pool')], {
      kernel_h: 2,
      kernel_w: 2,
      ...params,
    })
    insertNode(model, pool)
  })

it('a small model has no error', async () => {
  expect(await errorsOf(smallModel())).toEqual([])
})

describe.each<[string, TmfileModel, RegExp]>([
  [
    'a weight of another type than the data',
    changed((_, model) =>
      replaceConstant(
        model,
        'conv/w',
        cast(tensor([1, 2, 3, 4, 5, 6], { shape: [2, 3, 1, 1], dtype: 'float32' }), 'float16'),
      ),
    ),
    /ERR_DTYPE: nodes\[\d\] "conv" \(Convolution\) takes tensors\[1\] "conv\/w", which is float16; with data of float32 it must be float32/,
  ],
  [
    'a Const node that makes a variable',
    changed((graph) => Object.assign(graph.tensors[1]!, { role: 'variable', buffer: null })),
    /ERR_VALUE: .*whose tensor type is 1; it must be 2/,
  ],
  [
    'a Pooling without a stride',
    pooling({ stride_h: 0, stride_w: 1 }),
    /ERR_RANGE: .*has stride_h 0; it must be at least 1/,
  ],
  [
    'a Pooling with a huge pad',
    pooling({ stride_h: 1, stride_w: 1, pad_w0: 2 ** 30 }),
    /ERR_RANGE: .*has pad_w0 1073741824; beyond 16384/,
  ],
  [
    'a kernel that the weights do not have',
    changed((graph) => Object.assign(convolution(graph).params, { kernel_h: 3 })),
    /ERR_RANGE: .*has kernel_h 3, and weights of the shape \[2, 3, 1, 1\]/,
  ],
  [
    'more output channels than the weights have',
    changed((graph) => Object.assign(convolution(graph).params, { output_channel: 3 })),
    /ERR_RANGE: .*has 3 output channels, and weights of the shape \[2, 3, 1, 1\]/,
  ],
  [
    'a negative number of output channels',
    changed((graph) => Object.assign(convolution(graph).params, { output_channel: -2 })),
    /ERR_RANGE: .*has output_channel -2; the runtime writes in front of the output/,
  ],
  [
    'a Concat along an axis that its inputs do not have',
    changed((graph, model) =>
      insertNode(model, node('both', 'Concat', [graph.tensors[3]!], [variable('both')], { axis: 4 })),
    ),
    /ERR_RANGE: .*has axis 4; its inputs have 4 axes/,
  ],
])('%s', (_, model, message) => {
  it('is an error', async () => {
    const errors = await errorsOf(model)
    expect(errors.join('\n')).toMatch(message)
  })
})

it('a global Pooling needs no stride', async () => {
  expect(await errorsOf(pooling({ global: 1, stride_h: 0, stride_w: 0 }))).toEqual([])
})

describe('types of a whole model', () => {
  it('are named after a single constant was quantized', async () => {
    const model = smallModel()
    await quantizeConstant(model, 'conv/w', 'int8')
    expect(nodesOfMixedTypes(model).map(({ name }) => name)).toEqual(['conv'])
  })

  it('change together in castWeights', async () => {
    const model = smallModel()
    castWeights(model, 'float16')
    expect(nodesOfMixedTypes(model)).toEqual([])
    expect(new Set(model.graph.tensors.map(({ dtype }) => dtype))).toEqual(new Set(['float16']))
    expect(await errorsOf(model)).toEqual([])
    castWeights(model, 'float32')
    expect(new Set(model.graph.tensors.map(({ dtype }) => dtype))).toEqual(new Set(['float32']))
  })

  it('let halves of quantized models stay', () => {
    const model = smallModel()
    const slopes = { ...model.graph.tensors[2]!, name: 'slopes', dtype: 'float16' as const }
    const data = { ...variable('codes'), dtype: 'uint8' as const }
    model.graph.tensors.push(data)
    insertNode(model, node('slopes', 'Const', [], [slopes]))
    insertNode(model, node('prelu', 'PReLU', [data, slopes], [variable('prelu')]), model.graph.nodes.length)
    castWeights(model, 'float32')
    expect(slopes.dtype).toBe('float16')
    expect(nodesOfMixedTypes(model)).toEqual([])
  })
})

it('an output that a node reads is noted', async () => {
  const model = changed((graph, own) =>
    insertNode(own, node('relu', 'ReLu', [graph.tensors[3]!], [variable('relu')])),
  )
  const findings = await check(await serialize(model))
  expect(findings.map(({ code, severity, message }) => [code, severity, message.slice(0, 48)])).toEqual([
    ['OUTPUT_READ', 'warning', 'Nodes read 1 of the graph outputs: tensors[3] "c'],
  ])
})

describe('real files', THIRD_PARTY, () => {
  it.each(thirdPartyFiles('tmfile').map(({ path }) => path))('%s has no such error', async (path) => {
    const file = await open(thirdPartyPath(path))
    expect(nodesOfMixedTypes(file.tmfile!)).toEqual([])
    expect(
      (await check(thirdPartyPath(path), { level: 'strict' })).filter(({ severity }) => severity === 'error'),
    ).toEqual([])
  })
})

it.each([
  [[2], false],
  [[1, 2, 3, 4], false],
  [[1, 2, 3, 4, 5], true],
  [null, true],
])('a Reshape of an NHWC model to %j is an error: %j', async (target, isError) => {
  const model = changed((graph, own) => {
    Object.assign(graph, { graphLayout: 1 })
    insertNode(own, node('flat', 'Reshape', [graph.tensors[3]!], [variable('flat')], { re_shape: target }))
  })
  expect((await errorsOf(model)).some((error) => error.includes('NHWC models with 1 to 4 only'))).toBe(
    isError,
  )
})
