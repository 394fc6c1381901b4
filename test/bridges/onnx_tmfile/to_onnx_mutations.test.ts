/** Seeded changes of the tmfiles of all cases: what an engine cannot compute is refused, whatever is wrong with it. */
import { expect, test } from 'vitest'
import { check, serialize, TileworkError, tensor } from '../../../lib/index.js'
import * as tmfile from '../../../lib/tmfile.js'
import { type TmfileModel, type TmfileNode, tmfileToOnnx } from '../../../lib/tmfile.js'
import { fuzzSeed, randomNumbers } from '../../attacks/random_numbers.js'
import { modelOf, OPERATOR_CASES } from './operator_cases.mjs'

const COUNT = 3000

type Pick = <Each>(list: readonly Each[]) => Each
type Mutation = (model: TmfileModel, node: TmfileNode, pick: Pick) => void

const VALUES = [0, -1, 1, 2, 3, 5, -7, 64, 100_000, 2 ** 31 - 1, -(2 ** 31), 2 ** 40, 0.5, 1e30, Number.NaN]
const EXTENTS = [0, -1, 1, 2, 7, 65_536, 2 ** 31 - 1]

const MUTATIONS: readonly Mutation[] = [
  (_, node, pick) => {
    const params = node.params as Record<string, unknown>
    const name = pick(Object.keys(params))
    const list = Array.from({ length: pick([0, 1, 2, 3, 4, 5, 8]) }, () => pick(VALUES))
    params[name] = pick([pick(VALUES), pick(VALUES), list, null, 'text'] as const)
  },
  (_, node, pick) => {
    const params = node.params as Record<string, unknown>
    const name = pick(Object.keys(params))
    params[name] = Array.isArray(params[name])
      ? (params[name] as number[]).map(() => pick(VALUES))
      : pick(VALUES)
  },
  (_, node, pick) => {
    node.inputs = node.inputs.slice(0, pick([...node.inputs.keys(), 0]))
  },
  (_, node, pick) => {
    node.inputs = [...node.inputs, ...node.inputs].slice(0, pick([1, 2, 3, 4, 5, 9]))
  },
  (_, node) => {
    node.inputs = node.inputs.toReversed()
  },
  ({ graph }, _, pick) => {
    const { shape } = pick(graph.tensors)
    if (shape && shape.length > 0) shape[pick([...shape.keys()])] = pick(EXTENTS)
  },
  ({ graph }, _, pick) => {
    const each = pick(graph.tensors)
    each.shape = pick([null, [], [2], [1, 4, 6], [1, 2, 3, 4, 5]])
  },
  ({ graph }, _, pick) => {
    pick(graph.tensors).dtype = pick(['float16', 'int8', 'uint8', 'int32'])
  },
  ({ graph }, _, pick) => {
    pick(graph.tensors).role = pick(['constant', 'variable', 'input'])
  },
  ({ graph }, _, pick) => {
    graph.modelLayout = pick([0, 1])
    graph.graphLayout = pick([graph.modelLayout, 0])
  },
]

const REFUSALS: ReadonlySet<string> = new Set(['ERR_UNSUPPORTED', 'ERR_ARGUMENT', 'ERR_GRAPH'])

test('changed nodes are converted to models without errors, or refused', { timeout: 120_000 }, async () => {
  const counts = { converted: 0, refused: 0 }
  const faults: string[] = []
  const random = randomNumbers(fuzzSeed(25))
  const pick: Pick = (list) => list[random(list.length)]!
  for (let number = 0; number < COUNT; number++) {
    const given = pick(OPERATOR_CASES)
    const model = modelOf(given, { ...tmfile, tensor })
    const node = model.graph.nodes.find(({ operator }) => operator === given.operator)!
    for (let changes = pick([1, 1, 2, 3]); changes > 0; changes--) pick(MUTATIONS)(model, node, pick)
    const label = `${number} ${given.operator} ${JSON.stringify(node.params)}`
    const batch = pick([undefined, 2, 'N'])
    const made = await tmfileToOnnx(model, batch === undefined ? {} : { batch }).catch(
      (error: unknown) => error as Error,
    )
    if ('report' in made) {
      counts.converted += 1
      const findings = await check(await serialize(made.model))
      const fault = findings.find(({ severity }) => severity === 'error')
      if (fault) faults.push(`${label}: ${fault.message}`)
    } else if (made instanceof TileworkError && REFUSALS.has(made.code)) counts.refused += 1
    else faults.push(`${label}: ${made.stack?.split('\n').slice(0, 4).join(' ')}`)
  }
  expect(faults).toEqual([])
  expect(counts.converted).toBeGreaterThan(COUNT / 10)
  expect(counts.refused).toBeGreaterThan(COUNT / 4)
})
