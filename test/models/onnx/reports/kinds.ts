/**
 * Kinds of faults that public reports showed. Each has the inputs of the third-party folder `reports`, and neighbours: the same fault
 * with another operator, rank, version or element type, or inside a subgraph or function.
 */
import { describe, expect, it } from 'vitest'
import { check, open, serialize, tensor } from '../../../../lib/index.js'
import {
  addFunction,
  Graph,
  inferTypes,
  type NewAttribute,
  type NewNode,
  type OnnxModel,
  OnnxModel as OnnxModelClass,
  type ValueType,
} from '../../../../lib/onnx.js'
import { THIRD_PARTY, thirdPartyPath } from '../../../shared_fixtures.js'
import { type Feeds, randomFloats } from '../../onnx_compress/compare_outputs.js'

const LEAST_NEIGHBOURS = 5

type Cases<Case> = Readonly<Record<string, () => Case | Promise<Case>>>

/** Tests the reported inputs and their neighbours alike, and that there are enough of them. */
export function describeKind<Case>(
  title: string,
  reported: Cases<Case>,
  neighbours: Cases<Case>,
  prove: (given: Case) => Promise<void>,
): void {
  const count = Object.keys(neighbours).length
  describe(title, () => {
    it.each(Object.entries(reported))('reported: %s', THIRD_PARTY, async (_, make) => prove(await make()))
    it.each(Object.entries(neighbours))('neighbour: %s', async (_, make) => prove(await make()))
    it(`has ${count} neighbours`, () => expect(count).toBeGreaterThanOrEqual(LEAST_NEIGHBOURS))
  })
}

export const reportPath = (name: string): string => thirdPartyPath(`reports/${name}`)

export async function reported(name: string): Promise<OnnxModel> {
  return (await open(reportPath(name))).onnx!
}

export async function strictErrors(model: OnnxModel): Promise<readonly string[]> {
  const findings = await check(await serialize(model), { level: 'strict' })
  return findings.flatMap(({ severity, message }) => (severity === 'error' ? [message] : []))
}

/** Declares the types of the outputs, which are inferred. */
export function withOutputTypes(model: OnnxModel): OnnxModel {
  const types = inferTypes(model)
  for (const name of model.graph.outputNames) model.graph.setType(name, types.get(name) ?? { kind: 'none' })
  return model
}

/** Random floats for each input; `change` is applied to each. */
export function feedsOf({ graph }: OnnxModel, change: (value: number) => number = (value) => value): Feeds {
  return Object.fromEntries(
    graph.inputs
      .filter(({ name }) => !graph.hasInitializer(name))
      .map(({ name, type }) => {
        const shape = (type as { readonly shape: readonly number[] }).shape
        return [name, { data: randomFloats(shape, 3).map(change), shape }]
      }),
  )
}

export type Place = 'If' | 'Loop' | 'function'

/** The model with its nodes and initializers in both branches of an If, in the body of a Loop that runs once, or in a function. */
export function movedInto(place: Place, model: OnnxModel): OnnxModel {
  const moved = OnnxModelClass.create({
    opset: Number(model.opsetImports.get('')),
    irVersion: Math.max(8, Number(model.irVersion)),
  })
  for (const { name, type } of model.graph.inputs) moved.graph.addInput(name, type)
  if (place === 'If') addIf(moved, model)
  else if (place === 'Loop') addLoop(moved, model)
  else addCall(moved, model)
  for (const name of model.graph.outputNames) moved.graph.addOutput(name, { kind: 'none' })
  return withOutputTypes(moved)
}

const graphOf = (value: Graph): NewAttribute => ({ type: 'GRAPH', value })
const SCALAR = { dtype: 'bool', shape: [] } as const

const nodesOf = ({ graph }: OnnxModel): NewNode[] =>
  graph.nodes.map(({ opType, domain, inputs, outputs, attributes }) => ({
    opType,
    domain,
    inputs,
    outputs,
    attributes: Object.fromEntries(
      attributes.map(({ name, type, value }) => [name, { type, value } as NewAttribute]),
    ),
  }))

function bodyOf(model: OnnxModel, outputs: readonly string[] = []): Graph {
  const body = Graph.create('body')
  for (const each of model.graph.initializers()) body.setInitializer(each.name, each)
  for (const node of nodesOf(model)) body.addNode(node)
  const types = inferTypes(model)
  for (const name of [...outputs, ...model.graph.outputNames])
    body.addOutput(name, types.get(name) ?? ({ kind: 'none' } as ValueType))
  return body
}

function addIf(to: OnnxModel, model: OnnxModel): void {
  to.graph.setInitializer('condition', tensor([1], SCALAR))
  const branch = graphOf(bodyOf(model))
  to.graph.addNode({
    opType: 'If',
    inputs: ['condition'],
    outputs: [...model.graph.outputNames],
    attributes: { then_branch: branch, else_branch: branch },
  })
}

function addLoop(to: OnnxModel, model: OnnxModel): void {
  const body = Graph.create('body')
  body.addInput('iteration', { kind: 'tensor', dtype: 'int64', shape: [] })
  body.addInput('before', { kind: 'tensor', ...SCALAR })
  body.addNode({ opType: 'Identity', inputs: ['before'], outputs: ['after'] })
  body.addOutput('after', { kind: 'tensor', ...SCALAR })
  const inside = bodyOf(model)
  for (const each of inside.initializers()) body.setInitializer(each.name, each)
  for (const node of nodesOf(model)) body.addNode(node)
  for (const { name, type } of inside.outputs) body.addOutput(name, type)
  to.graph.setInitializer('times', tensor([1n], { dtype: 'int64', shape: [] }))
  to.graph.addNode({
    opType: 'Loop',
    inputs: ['times', ''],
    outputs: [...model.graph.outputNames],
    attributes: { body: graphOf(body) },
  })
}

function addCall(to: OnnxModel, model: OnnxModel): void {
  const { graph } = model
  const inputs = [...graph.inputNames].filter((name) => !graph.hasInitializer(name))
  const constants = [...graph.initializers()].map(
    (value): NewNode => ({
      opType: 'Constant',
      outputs: [value.name],
      attributes: { value: { type: 'TENSOR', value } },
    }),
  )
  const outputs = [...graph.outputNames]
  addFunction(to, {
    domain: 'local',
    name: 'part',
    inputs,
    outputs,
    nodes: [...constants, ...nodesOf(model)],
  })
  to.graph.addNode({ opType: 'part', domain: 'local', inputs, outputs })
}
