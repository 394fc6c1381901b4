/**
 * Attributes that a version of an operator adds, or gives another default, by the schemas of ONNX: a node without the attribute
 * must mean the same afterwards. Each has an adapter, or a default that is the rule of the versions before, as listed here.
 */
import { describe, expect, it } from 'vitest'
import { adapterOf } from '../../../../lib/models/onnx/opset/adapters.js'
import { SCHEMAS } from '../../../../lib/models/onnx/schemas/schema_table.js'
import { schemasOf } from '../../../../lib/models/onnx/schemas/schemas.js'
import { convertOpset, type NewNode, OnnxModel, printModel } from '../../../../lib/onnx.js'
import { lossOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'

/** Changes whose new default is what versions before did, with what they did. */
const AS_BEFORE: Readonly<Record<string, string>> = {
  'ArgMax 12 select_last_index': 'the first of equal elements',
  'ArgMin 12 select_last_index': 'the first of equal elements',
  'Attention 25 left_window_size': 'no window',
  'Attention 25 right_window_size': 'no window',
  'AveragePool 7 count_include_pad': 'padding is not counted',
  'AveragePool 10 ceil_mode': 'rounds down',
  'Cast 19 saturate': 'the types that it is about are new',
  'Cast 24 round_mode': 'the types that it is about are new',
  'CastLike 19 saturate': 'the types that it is about are new',
  'CastLike 24 round_mode': 'the types that it is about are new',
  'DepthToSpace 11 mode': 'depth before columns and rows',
  'DequantizeLinear 13 axis': 'scales were single numbers',
  'DequantizeLinear 21 block_size': 'no blocks',
  'DequantizeLinear 23 output_dtype': 'the type of the scale',
  'GRU 3 direction': 'forward, which the schema misspelt',
  'GRU 3 linear_before_reset': 'the reset gate before the product',
  'GRU 14 layout': 'sequences first',
  'GatherND 12 batch_dims': 'no batch',
  'LSTM 14 layout': 'sequences first',
  'LpPool 18 ceil_mode': 'rounds down',
  'MaxPool 8 storage_order': 'row-major',
  'MaxPool 10 ceil_mode': 'rounds down',
  'QuantizeLinear 13 axis': 'scales were single numbers',
  'QuantizeLinear 19 saturate': 'the types that it is about are new',
  'QuantizeLinear 21 block_size': 'no blocks',
  'QuantizeLinear 21 output_dtype': 'the type of the zero point',
  'QuantizeLinear 23 precision': 'that of the scale',
  'RNN 14 layout': 'sequences first',
  'Range 27 stash_type': 'the types that it is about are new',
  'Reshape 14 allowzero': 'a 0 copies the dimension',
  'Resize 18 antialias': 'none',
  'Resize 18 keep_aspect_ratio_policy': 'the sizes as they are',
  'ScatterElements 16 reduction': 'replaces',
  'ScatterND 16 reduction': 'replaces',
  'Shape 15 start': 'all dimensions',
  'SpaceToDepth 28 mode': 'depth before columns and rows',
  'TopK 11 largest': 'the largest',
  'TopK 11 sorted': 'sorted',
}

/** Every change of a default, as `operator version attribute`. */
function changedDefaults(): string[] {
  return Object.keys(SCHEMAS['']!).flatMap((name) => {
    const versions = schemasOf('', name)!
    return versions.slice(1).flatMap((later, at) => {
      const before = versions[at]!.attributes
      return [...later.attributes.values()]
        .filter(({ name: attribute, defaultText }) => {
          const old = before.get(attribute)
          return defaultText !== undefined && old?.defaultText !== defaultText
        })
        .map((each) => `${name} ${later.since} ${each.name}`)
    })
  })
}

const adapted = (change: string): boolean => {
  const [name = '', version] = change.split(' ')
  return adapterOf(name, Number(version)) !== undefined
}

it('has an adapter or an explanation for every default that is new', () => {
  const changes = changedDefaults()
  expect(changes.length).toBeGreaterThan(50)
  expect(changes.filter((change) => !adapted(change)).sort()).toEqual(Object.keys(AS_BEFORE).sort())
})

const int = (value: number) => ({ type: 'INT', value }) as const
const ROI_ALIGN: Readonly<Record<string, NewNode['attributes']>> = {
  plain: { output_height: int(2), output_width: int(2) },
  'with samples': { output_height: int(3), output_width: int(2), sampling_ratio: int(2) },
  scaled: { output_height: int(2), output_width: int(2), spatial_scale: { type: 'FLOAT', value: 0.5 } },
  'of maxima': { output_height: int(2), output_width: int(2), mode: { type: 'STRING', value: 'max' } },
  'of one number': {},
}

function roiAlign(attributes: NewNode['attributes'], opset: number): OnnxModel {
  const model = OnnxModel.create({ opset, irVersion: 6 })
  const { graph } = model
  graph.addInput('x', { kind: 'tensor', dtype: 'float32', shape: [1, 1, 8, 8] })
  graph.addInput('rois', { kind: 'tensor', dtype: 'float32', shape: [2, 4] })
  graph.addInput('batches', { kind: 'tensor', dtype: 'int64', shape: [2] })
  graph.addNode({
    opType: 'RoiAlign',
    inputs: ['x', 'rois', 'batches'],
    outputs: ['y'],
    ...(attributes && { attributes }),
  })
  graph.addOutput('y', { kind: 'tensor', dtype: 'float32' })
  return model
}

describe.each(Object.entries(ROI_ALIGN))('RoiAlign %s', (_, attributes) => {
  it.each([16, 18, 21])('gives the same numbers in version %i', async (version) => {
    const before = roiAlign(attributes, 10)
    const model = before.copy()
    convertOpset(model, version)
    expect(await printModel(model)).toContain('coordinate_transformation_mode: string = "output_half_pixel"')
    if (!runtime) return
    const feeds = {
      x: { data: randomFloats([64]), shape: [1, 1, 8, 8] },
      rois: { data: Float32Array.of(1, 1, 5, 5, 0.4, 2.7, 7, 7.9), shape: [2, 4] },
      batches: { data: BigInt64Array.of(0n, 0n), shape: [2] },
    }
    expect(await lossOf(before, model, feeds)).toBe(0)
  })

  it('stays as it is from version 16 on', async () => {
    const model = roiAlign(attributes, 16)
    const before = await printModel(model)
    convertOpset(model, 22)
    expect(await printModel(model)).toBe(before.replace('"" : 16', '"" : 22'))
  })
})
