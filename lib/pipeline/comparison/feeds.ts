/** The values of the inputs of both models: those of the caller, or generated ones. */
import { type Dtype, isDtypeName } from '../../dtype/dtypes.js'
import { TileworkError } from '../../errors.js'
import { integerInputs, type OnnxModel } from '../../models/onnx/index.js'
import { withoutBlocks } from '../../tensor/block_tensor.js'
import { cast } from '../../tensor/cast.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { RunTensor } from '../onnxruntime/run_model.js'
import type { Batches } from './batches.js'
import type { End, InputPair } from './ends.js'
import { type DefaultSizes, InputSizes } from './input_sizes.js'
import { inputValue } from './input_values.js'

export interface FeedOptions {
  /** Values of the caller, by name. */
  readonly given: ReadonlyMap<string, AnyTensor>
  readonly dims: ReadonlyMap<string, number>
  readonly seed: number
  readonly defaults: DefaultSizes
  /** The batch of `a`, where its inputs have the samples of several runs. */
  readonly batches: Batches | undefined
}

export interface FeedInput {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly isGenerated: boolean
}

/** Inputs of both models by name. */
export interface Feeds {
  readonly a: ReadonlyMap<string, RunTensor>
  readonly b: ReadonlyMap<string, RunTensor>
  readonly inputs: readonly FeedInput[]
  /** Whether other default sizes would change a shape. */
  readonly usesDefaults: boolean
}

/**
 * @throws TileworkError ERR_ARGUMENT for values and sizes of the caller that belong to no input; ERR_UNSUPPORTED for inputs that are no
 * tensors or that no value fits in both models; ERR_LIMIT
 */
export function makeFeeds(model: OnnxModel, pairs: readonly InputPair[], options: FeedOptions): Feeds {
  const { given, dims, seed, defaults, batches } = options
  const outer = pairs.filter(({ inner }) => !inner)
  refuseUnknown(outer, given, dims)
  const sizes = new InputSizes(dims, defaults)
  const givenFor = (pair: InputPair): AnyTensor | undefined =>
    given.get(pair.a?.name ?? '') ?? given.get(pair.b?.name ?? '')
  for (const pair of outer) sizes.learn(pair, givenFor(pair))
  const shapes = new Map(outer.filter((pair) => !givenFor(pair)).map((pair) => [pair, sizes.shapeOf(pair)]))
  const meanings = integerInputs(withShapes(model, shapes, batches))
  const feeds = { a: new Map<string, RunTensor>(), b: new Map<string, RunTensor>() }
  const inputs = outer.map((pair): FeedInput => {
    const { name } = (pair.a ?? pair.b)!
    const dtype = dtypeOf((pair.a ?? pair.b)!)
    const own = givenFor(pair)
    const shape = shapes.get(pair)
    const value = shape
      ? inputValue({ name, dtype, shape, meaning: meanings.get(name), seed })
      : checkGiven(own!)
    // In the type of `b` and back, so that both models get equal numbers.
    const ofB = pair.b && inDtypeOf(pair.b, pair.a ? inDtypeOf(pair.a, value) : value)
    if (pair.b) feeds.b.set(pair.b.name, ofB!)
    if (pair.a) feeds.a.set(pair.a.name, inDtypeOf(pair.a, ofB ?? value))
    return { name, dtype, shape: value.shape, isGenerated: shape !== undefined }
  })
  return { ...feeds, inputs, usesDefaults: sizes.usesDefaults }
}

function refuseUnknown(
  pairs: readonly InputPair[],
  given: ReadonlyMap<string, AnyTensor>,
  dims: ReadonlyMap<string, number>,
): void {
  const ends = pairs.flatMap(({ a, b }) => [a, b].filter((end) => end !== undefined))
  const names = new Set(ends.map(({ name }) => name))
  const symbols = new Set(
    ends.flatMap(({ type }) =>
      (type.kind === 'tensor' ? (type.shape ?? []) : []).flatMap((dim) =>
        typeof dim === 'string' ? [dim, ...dim.split('+').map((term) => term.trim())] : [],
      ),
    ),
  )
  const value = [...given.keys()].find((name) => !names.has(name))
  if (value !== undefined)
    refuse(`inputs has ${valueText(value)}, which is no input of the models${listOf(names)}`)
  const size = [...dims.keys()].find((name) => !symbols.has(name))
  if (size !== undefined)
    refuse(`dims has ${valueText(size)}, which no input has as a dimension${listOf(symbols)}`)
}

/** Most names in an error. */
const MAX_NAMED = 8

function listOf(names: ReadonlySet<string>): string {
  const some = [...names].slice(0, MAX_NAMED).map((name) => valueText(name))
  return some.length === 0
    ? '.'
    : `; expected one of: ${some.join(', ')}${names.size > MAX_NAMED ? ', …' : ''}.`
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}

/** A copy of the model whose inputs have the shapes with which it runs: sizes of what they index follow from them. */
function withShapes(
  model: OnnxModel,
  shapes: ReadonlyMap<InputPair, readonly number[]>,
  batches: Batches | undefined,
): OnnxModel {
  const copy = model.copy()
  for (const [{ a }, shape] of shapes) {
    if (a?.type.kind !== 'tensor') continue
    const ofRun = batches?.inputs.has(a.name) ? shape.with(0, batches.a) : shape
    copy.graph.setType(a.name, { ...a.type, shape: ofRun })
  }
  return copy
}

function checkGiven(given: AnyTensor): RunTensor {
  const value = withoutBlocks(given)
  if (value.kind !== 'sparse') return value
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `The value of input ${valueText(value.name)} is sparse; it must be dense.`,
  )
}

function dtypeOf({ name, type }: End): Dtype {
  if (type.kind === 'tensor' && isDtypeName(type.dtype)) return type.dtype
  const what = type.kind === 'tensor' ? 'of an unknown dtype' : `of kind ${type.kind}`
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `Input ${valueText(name)} is ${what}; onnxruntime-node takes tensors.`,
  )
}

/** The value in the element type of an input. @throws TileworkError ERR_UNSUPPORTED for strings beside numbers */
export function inDtypeOf(end: End, value: RunTensor): RunTensor {
  const dtype = dtypeOf(end)
  if (value.dtype === dtype) return value
  if (value.kind === 'string' || dtype === 'string') {
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `Input ${valueText(end.name)} is ${dtype}; its value is ${value.dtype}.`,
    )
  }
  return cast(value, dtype)
}
