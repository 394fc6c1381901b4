/** Reports about the batch: names of it on the command line (08), class tokens (12), and lists that are inputs below IR version 4 (20). */
import { expect } from 'vitest'
import { open, save, tensor } from '../../../../lib/index.js'
import { type OnnxModel, setBatch } from '../../../../lib/onnx.js'
import { runCli } from '../../../cli/run_cli.js'
import { temporaryFolder } from '../../../cli/temporary_folder.js'
import { outputsOf, randomFloats } from '../../onnx_compress/compare_outputs.js'
import { runtime } from '../../onnx_compress/onnxruntime.js'
import { type ModelText, modelOf } from '../../onnx_optimize/model_text.js'
import { describeKind, movedInto, type Place, reported, strictErrors, withOutputTypes } from './kinds.js'

const BATCH = 3

interface BatchCase {
  readonly model: OnnxModel
  /** The names of the batch; default 3 and `N`. */
  readonly batches?: readonly (number | string)[]
}

const list = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt))
const floats = (...shape: number[]) => tensor(randomFloats(shape, 5), { shape })

const shapeOf = (model: OnnxModel, name: string): readonly unknown[] =>
  (model.graph.typeOf(name) as { readonly shape: readonly unknown[] }).shape

/** Each row of the batch gives what the model before gives for it. */
async function expectRows(before: OnnxModel, after: OnnxModel): Promise<void> {
  const shape = shapeOf(before, 'x') as readonly number[]
  const data = randomFloats([BATCH, ...shape.slice(1)], 11)
  const { y } = await outputsOf(after, { x: { data, shape: [BATCH, ...shape.slice(1)] } })
  const length = data.length / BATCH
  const axis = shapeOf(after, 'y').indexOf(shapeOf(after, 'x')[0])
  for (let row = 0; row < BATCH; row++) {
    const feed = { x: { data: data.subarray(row * length, (row + 1) * length), shape } }
    const alone = (await outputsOf(before, feed)).y!
    expect(y!.dims).toEqual(alone.dims.with(axis, BATCH))
    const found = Array.from(y!.data).slice(row * alone.data.length, (row + 1) * alone.data.length)
    for (const [at, value] of Array.from(alone.data).entries()) expect(found[at]).toBeCloseTo(value, 5)
  }
}

async function proveBatch({ model, batches = [BATCH, 'N'] }: BatchCase): Promise<void> {
  for (const batch of batches) {
    const after = model.copy()
    const { blocked } = setBatch(after, batch)
    expect(blocked).toEqual([])
    expect(await strictErrors(after)).toEqual([])
    expect(shapeOf(after, 'x')[0]).toBe(batch)
    expect(shapeOf(after, 'y')).toContain(batch)
    if (runtime) await expectRows(model, after)
  }
}

function model(nodes: string, weights: ModelText['weights'] = {}, x = '1 4 6', opset = 17): OnnxModel {
  return withOutputTypes(modelOf({ inputs: { x: `float32 ${x}` }, weights, nodes, opset }))
}

const places = (make: () => OnnxModel): Record<string, () => BatchCase> =>
  Object.fromEntries(
    (['If', 'Loop'] as const).map((place: Place) => [
      `in ${place}`,
      () => ({ model: movedInto(place, make()) }),
    ]),
  )

const classToken = () =>
  model('e = Expand(token, s); y = Concat<axis=1>(e, x)', { token: floats(1, 1, 6), s: list(1, 1, 6) })

describeKind<BatchCase>(
  '12: a class token that is joined with the batch',
  { Expand: async () => ({ model: await reported('12-set-batch-class-token/in.onnx') }) },
  {
    'a token that is an initializer': () => ({
      model: model('y = Concat<axis=1>(token, x)', { token: floats(1, 1, 6) }),
    }),
    'Expand of a scalar to all dimensions': () => ({
      model: model('e = Expand(token, s); y = Concat<axis=-2>(x, e)', {
        token: tensor([0.5], { dtype: 'float32', shape: [] }),
        s: list(1, 2, 6),
      }),
    }),
    'Tile of the token': () => ({
      model: model('e = Tile(token, s); y = Concat<axis=1>(e, x)', {
        token: floats(1, 1, 6),
        s: list(1, 2, 1),
      }),
    }),
    'ConstantOfShape in front of a product': () => ({
      model: model('e = ConstantOfShape(s); c = Concat<axis=1>(e, x); y = MatMul(c, w)', {
        s: list(1, 1, 6),
        w: floats(6, 3),
      }),
    }),
    'a token in version 11, behind Unsqueeze': () => ({
      model: model(
        'u = Unsqueeze<axes=[0,1]>(token); e = Expand(u, s); y = Concat<axis=1>(e, x)',
        { token: floats(6), s: list(1, 1, 6) },
        '1 4 6',
        11,
      ),
    }),
    'two tokens and positions': () => ({
      model: model('e = Expand(token, s); c = Concat<axis=1>(e, e, x); y = Add(c, p)', {
        token: floats(1, 1, 6),
        s: list(1, 1, 6),
        p: floats(1, 6, 6),
      }),
    }),
    'a token of pictures': () => ({
      model: model(
        'e = Expand(token, s); y = Concat<axis=1>(x, e)',
        { token: floats(1, 1, 1, 1), s: list(1, 2, 3, 3) },
        '1 4 3 3',
      ),
    }),
    ...places(classToken),
  },
  proveBatch,
)

/** As exporters wrote it before IR version 4: each initializer is an input as well. */
function withOldInitializers(before: OnnxModel): OnnxModel {
  const old = before.copy()
  old.irVersion = 3
  for (const name of old.graph.initializerNames) {
    const { dtype, shape } = old.graph.initializer(name)!
    old.graph.addInput(name, { kind: 'tensor', dtype: dtype as 'float32', shape })
  }
  return old
}

const reshape =
  (...target: number[]) =>
  () => ({
    model: withOldInitializers(model('y = Reshape(x, s)', { s: list(...target) }, '1 4 6', 8)),
  })

describeKind<BatchCase>(
  '20: lists that are initializers and inputs, below IR version 4',
  {
    'IR version 3': async () => ({ model: await reported('20-setbatch-ir3/ir3.onnx') }),
    'IR version 8': async () => ({ model: await reported('20-setbatch-ir3/ir8.onnx') }),
  },
  {
    'a target with the rest': reshape(1, -1),
    'a target of four dimensions': reshape(1, 2, 2, 6),
    'a target in front of a product': () => ({
      model: withOldInitializers(
        model('r = Reshape(x, s); y = MatMul(r, w)', { s: list(1, 24), w: floats(24, 5) }, '1 4 6', 7),
      ),
    }),
    'two nodes of one target': () => ({
      model: withOldInitializers(
        model('a = Reshape(x, s); b = Relu(a); y = Reshape(b, s)', { s: list(1, 24) }, '1 4 6', 9),
      ),
    }),
    Expand: () => ({
      model: withOldInitializers(
        model(
          'e = Expand(token, s); y = Concat<axis=1>(e, x)',
          { token: floats(1, 1, 6), s: list(1, 1, 6) },
          '1 4 6',
          8,
        ),
      ),
    }),
    'an initial state of a recurrent node': () => ({
      model: withOldInitializers(
        model(
          't = Transpose<perm=[1,0,2]>(x); all, last = RNN<hidden_size=2>(t, w, r, , , h); y = Transpose<perm=[1,0,2]>(last)',
          { w: floats(1, 2, 6), r: floats(1, 2, 2), h: floats(1, 1, 2) },
          '1 4 6',
          7,
        ),
      ),
    }),
    'a class token': () => ({
      model: withOldInitializers(
        model('y = Concat<axis=1>(token, x)', { token: floats(1, 1, 6) }, '1 4 6', 8),
      ),
    }),
  },
  proveBatch,
)

const inFolder = temporaryFolder()

/** What the command writes is what the function makes. */
async function proveName({ model: given, batches = ['N'] }: BatchCase): Promise<void> {
  const [from, to] = [inFolder('in.onnx'), inFolder('out.onnx')]
  await save(from, given)
  for (const batch of batches) {
    const { code, stderr } = await runCli(['edit', from, '--set-batch', String(batch), '-o', to])
    expect([code, stderr]).toEqual([0, expect.not.stringContaining('tilework:')])
    const after = (await open(to)).onnx!
    expect(shapeOf(after, 'x')[0]).toBe(batch === '?' ? null : batch)
    expect(await strictErrors(after)).toEqual([])
    if (runtime) await expectRows(given, after)
  }
}

describeKind<BatchCase>(
  '08: a name of the batch on the command line',
  { 'a Reshape': async () => ({ model: await reported('08-set-batch-name/in.onnx'), batches: ['N', 3] }) },
  {
    'a longer name': () => ({ model: reshape(1, 24)().model, batches: ['batch_size'] }),
    'a name beyond ASCII, with blanks': () => ({ model: model('y = Relu(x)'), batches: ['Größe 2'] }),
    'a dimension that stays open': () => ({ model: model('y = Softmax(x)'), batches: ['?'] }),
    'a class token': () => ({ model: classToken(), batches: ['N', 3] }),
    'a recurrent node': () => ({
      model: model(
        't = Transpose<perm=[1,0,2]>(x); all, last = GRU<hidden_size=2>(t, w, r, , , h); y = Transpose<perm=[1,0,2]>(last)',
        { w: floats(1, 6, 6), r: floats(1, 6, 2), h: floats(1, 1, 2) },
      ),
      batches: ['N', 3],
    }),
    'a target in a branch': () => ({
      model: movedInto('If', model('y = Reshape(x, s)', { s: list(1, 24) })),
      batches: ['N', 3],
    }),
  },
  proveName,
)
