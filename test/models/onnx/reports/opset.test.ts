/** Report 05: attributes whose default is another rule in a later version of their operator. */
import { expect } from 'vitest'
import { tensor } from '../../../../lib/index.js'
import { convertOpset, type OnnxModel } from '../../../../lib/onnx.js'
import { lossOf } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { type ModelText, modelOf } from '../../onnx_optimize/model_text.js'
import { describeKind, feedsOf, movedInto, reported, strictErrors, withOutputTypes } from './kinds.js'

interface OpsetCase {
  readonly model: OnnxModel
  readonly targets: readonly number[]
  /** Attributes or operators of the result, by operator. */
  readonly wanted: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

async function proveOpset({ model, targets, wanted }: OpsetCase): Promise<void> {
  for (const target of targets) {
    const after = model.copy()
    convertOpset(after, target)
    expect(await strictErrors(after)).toEqual([])
    const nodes = [...after.graph.allNodes(), ...after.functions.flatMap((each) => each.nodes)]
    for (const [opType, attributes] of Object.entries(wanted)) {
      const found = nodes.find((node) => node.opType === opType)
      const values = Object.keys(attributes).map((name) => [name, plainValue(found?.attribute(name)?.value)])
      expect(Object.fromEntries(values)).toEqual(attributes)
    }
    if (runtime) expect(await lossOf(model, after, feedsOf(model))).toBe(0)
  }
}

const plainValue = (value: unknown): unknown =>
  value instanceof Uint8Array ? new TextDecoder().decode(value) : value

const one = (text: ModelText, targets: readonly number[], wanted: OpsetCase['wanted']) => (): OpsetCase => ({
  model: withOutputTypes(modelOf(text)),
  targets,
  wanted,
})

const roiAlign = (attributes: string, opset = 10): ModelText => ({
  inputs: { x: 'float32 1 1 8 8' },
  weights: {
    r: tensor(Float32Array.of(1, 1, 5, 5, 0.4, 2.7, 7, 7.9), { shape: [2, 4] }),
    b: tensor(BigInt64Array.of(0n, 0n)),
  },
  nodes: `y = RoiAlign<${attributes}>(x, r, b)`,
  opset,
})
const HALF_PIXEL = { RoiAlign: { coordinate_transformation_mode: 'output_half_pixel' } }

describeKind<OpsetCase>(
  '05: defaults that are another rule in a later version',
  {
    RoiAlign: async () => ({
      model: withOutputTypes(await reported('05-opset-roialign/roialign10.onnx')),
      targets: [16, 18, 21],
      wanted: HALF_PIXEL,
    }),
  },
  {
    'RoiAlign of maxima': one(roiAlign('mode=max, output_height=2, output_width=3'), [16, 21], HALF_PIXEL),
    ...Object.fromEntries(
      (['If', 'Loop', 'function'] as const).map((place) => [
        `RoiAlign in ${place}`,
        () => ({
          model: movedInto(
            place,
            withOutputTypes(modelOf(roiAlign('output_height=2, sampling_ratio=2', 15))),
          ),
          targets: [16, 19],
          wanted: HALF_PIXEL,
        }),
      ]),
    ),
    'the axis of Softmax': one(
      { inputs: { x: 'float32 2 3 4' }, nodes: 'y = Softmax(x)', opset: 11 },
      [13, 18],
      { Softmax: { axis: -1 }, Flatten: { axis: 1 } },
    ),
    'the axis of LogSoftmax of rank 2': one(
      { inputs: { x: 'float32 3 4' }, nodes: 'y = LogSoftmax(x)', opset: 12 },
      [13],
      { LogSoftmax: { axis: -1 } },
    ),
    'the axis of Hardmax in a branch': () => ({
      model: movedInto(
        'If',
        withOutputTypes(modelOf({ inputs: { x: 'float32 2 3 4' }, nodes: 'y = Hardmax(x)', opset: 12 })),
      ),
      targets: [13],
      wanted: { Hardmax: {} },
    }),
    'coordinates of Resize': one(
      {
        inputs: { x: 'float32 1 1 4 4' },
        weights: { s: tensor(Float32Array.of(1, 1, 2, 1.5)) },
        nodes: 'y = Resize<mode=linear>(x, s)',
        opset: 10,
      },
      [11, 13, 18],
      { Resize: { coordinate_transformation_mode: 'asymmetric' } },
    ),
    'coordinates of Upsample': one(
      {
        inputs: { x: 'float32 1 1 4 4' },
        weights: { s: tensor(Float32Array.of(1, 1, 2, 3)) },
        nodes: 'y = Upsample<mode=nearest>(x, s)',
        opset: 9,
      },
      [11, 19],
      { Resize: { coordinate_transformation_mode: 'asymmetric', nearest_mode: 'floor' } },
    ),
    'training of BatchNormalization and Dropout': one(
      {
        inputs: { x: 'float32 2 3 4 4' },
        weights: Object.fromEntries(
          ['s', 'b', 'm', 'v'].map((name, at) => [name, tensor(Float32Array.of(1 + at, 2, 0.5))]),
        ),
        nodes: 'd = Dropout<ratio=0.5>(x); y = BatchNormalization<epsilon=0.1>(d, s, b, m, v)',
        opset: 8,
      },
      [9, 13, 15, 22],
      {},
    ),
  },
  proveOpset,
)
