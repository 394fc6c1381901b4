/** Seeded changes of the models of all cases: nodes that break the rules of their operators are refused, whatever they break. */
import { expect, test } from 'vitest'
import { check, serialize, TileworkError, tensor } from '../../../lib/index.js'
import type { NewAttribute, Node, OnnxModel } from '../../../lib/onnx.js'
import { onnxToTmfile, type TmfileModel } from '../../../lib/tmfile.js'
import { fuzzSeed, randomNumbers } from '../../attacks/random_numbers.js'
import { CASES } from './to_tmfile_cases.js'

const COUNT = 2500

type Pick = <Each>(list: readonly Each[]) => Each
type Mutation = (model: OnnxModel, node: Node, pick: Pick) => void

const INTEGERS = [
  0,
  -1,
  1,
  2,
  3,
  5,
  -7,
  64,
  100_000,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 40,
  2n ** 63n - 1n,
]
const FLOATS = [0, -1, 0.5, 1e30, -1e30, Number.NaN, Number.POSITIVE_INFINITY]
const NAMES =
  `axis axes perm kernel_shape pads strides dilations group auto_pad mode alpha beta keepdims to split num_outputs hidden_size
  direction layout output_padding output_shape ceil_mode blocksize epsilon value scales size k transA transB`.split(
    /\s+/,
  )
const EXTENTS = [0, 1, 2, 7, 65_536, 2 ** 31, 2 ** 40]

function attribute(pick: Pick, old: Node['attributes'][number] | undefined): NewAttribute {
  const list = <Each>(values: readonly Each[]): Each[] =>
    Array.from({ length: pick([0, 1, 2, 3, 4, 5, 8]) }, () => pick(values))
  const { value } = old ?? {}
  if (Array.isArray(value) && typeof value[0] === 'number' && pick([true, false]))
    return { type: 'INTS', value: value.with(pick([...value.keys()]), pick(INTEGERS)) as number[] }
  return pick<() => NewAttribute>([
    () => ({ type: 'INT', value: pick(INTEGERS) }),
    () => ({ type: 'INTS', value: list(INTEGERS) }),
    () => ({ type: 'FLOAT', value: pick(FLOATS) }),
    () => ({ type: 'FLOATS', value: list(FLOATS) }),
    () => ({ type: 'STRING', value: pick(['SAME_UPPER', 'SAME_LOWER', 'reflect', 'cubic', '']) }),
  ])()
}

/** A constant of a few elements in the place of another. */
function constant(pick: Pick) {
  const shape = pick([[], [0], [1], [2], [4], [1, 1], [2, 3], [1, 4, 1, 1], [1, 1, 1, 1, 1, 1]])
  const size = shape.reduce((product, extent) => product * extent, 1)
  const integers = Array.from({ length: size }, () => BigInt(pick(INTEGERS)))
  return pick([
    () =>
      tensor(
        Float32Array.from({ length: size }, () => pick(FLOATS)),
        { shape },
      ),
    () => tensor(BigInt64Array.from(integers), { shape }),
    () => tensor(Int8Array.from(integers, Number), { shape }),
    () => tensor(Int32Array.from(integers, Number), { shape }),
  ])()
}

const MUTATIONS: readonly Mutation[] = [
  (_, node, pick) => {
    const old = node.attributes.length > 0 && pick([true, true, false]) ? pick(node.attributes) : undefined
    node.setAttribute(old?.name ?? pick(NAMES), attribute(pick, old))
  },
  (_, node, pick) => {
    node.inputs = node.inputs.slice(0, pick([...node.inputs.keys(), 0]))
  },
  (_, node, pick) => {
    node.inputs = node.inputs.with(pick([...node.inputs.keys()]), '')
  },
  (_, node, pick) => {
    node.inputs = [...node.inputs, ...node.inputs].slice(0, pick([1, 2, 3, 4, 5, 9]))
  },
  (_, node) => {
    node.inputs = node.inputs.toReversed()
  },
  ({ graph }, node, pick) => {
    const all = [...graph.inputs.map(({ name }) => name), ...graph.initializerNames]
    node.inputs = node.inputs.with(pick([...node.inputs.keys()]), pick(all))
  },
  ({ graph }, _, pick) => graph.setInitializer(pick([...graph.initializerNames]), constant(pick)),
  ({ graph }, _, pick) => {
    const { name, type } = pick(graph.inputs)
    if (type.kind !== 'tensor') return
    const shape = type.shape!.map((extent) => pick([Number(extent), Number(extent), pick(EXTENTS)]))
    graph.setType(name, { ...type, shape: shape.slice(0, pick([9, 9, 2])).concat(pick([[], [], [2]])) })
  },
  ({ graph }, _, pick) => {
    const { name, type } = pick(graph.inputs)
    if (type.kind === 'tensor')
      graph.setType(name, { ...type, dtype: pick(['int8', 'uint8', 'int64', 'bool', 'float16']) })
  },
  (model, _, pick) => model.setOpsetImport('', pick([1, 5, 6, 7, 9, 10, 11, 12, 13, 15, 18, 21])),
  (_, node, pick) => {
    node.opType = pick(CASES).operator
  },
  (_, node, pick) => {
    node.outputs = pick([
      [...node.outputs, 'more'],
      [...node.outputs, '', 'more'],
      ['', ...node.outputs],
    ])
  },
]

const REFUSALS: ReadonlySet<string> = new Set(['ERR_UNSUPPORTED', 'ERR_ARGUMENT', 'ERR_GRAPH'])

/** What is wrong with the file of a model that was converted. */
async function faultOf(model: TmfileModel): Promise<string | undefined> {
  try {
    const findings = await check(await serialize(model, { format: 'tmfile' }))
    return findings.find(({ severity }) => severity === 'error')?.message
  } catch (error) {
    return (error as Error).message
  }
}

test('changed nodes are converted to files without errors, or refused', { timeout: 120_000 }, async () => {
  const models = CASES.map(({ net, outputs }) => net.out(...outputs))
  const counts = { converted: 0, refused: 0 }
  const faults: string[] = []
  const random = randomNumbers(fuzzSeed(25))
  const pick: Pick = (list) => list[random(list.length)]!
  for (let number = 0; number < COUNT; number++) {
    const at = random(models.length)
    const model = models[at]!.copy()
    try {
      for (let changes = pick([1, 1, 2, 3]); changes > 0; changes--)
        pick(MUTATIONS)(model, pick(model.graph.nodes), pick)
    } catch {
      // The model refuses the change itself.
      continue
    }
    const label = `${number} ${CASES[at]!.operator}`
    const quantized = pick(['keep', 'dequantize'] as const)
    const made = await onnxToTmfile(model, { quantized }).catch((error: unknown) => error as Error)
    if ('report' in made) {
      counts.converted += 1
      const fault = await faultOf(made.model)
      if (fault !== undefined) faults.push(`${label}: ${fault}`)
    } else if (made instanceof TileworkError && REFUSALS.has(made.code)) counts.refused += 1
    else faults.push(`${label}: ${made.stack?.split('\n').slice(0, 4).join(' ')}`)
  }
  expect(faults).toEqual([])
  expect(counts.converted).toBeGreaterThan(COUNT / 10)
  expect(counts.refused).toBeGreaterThan(COUNT / 4)
})
