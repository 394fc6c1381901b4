/**
 * Whether the nodes of a model mean the same in an earlier operator set. An earlier definition has fewer types, attributes and inputs;
 * from version 13 on, a node that it allows means the same in both, except where a version changed what nodes mean.
 */
import { ownEntry } from '../../../own_entry.js'
import { typeKeyOf } from '../check/type_constraints.js'
import type { OnnxModel } from '../document/model.js'
import { standardDomain } from '../document/node.js'
import { mainScope, type Scope } from '../document/scope.js'
import type { Node } from '../document/types.js'
import { type Inference, inferModel } from '../infer/infer.js'
import { type Parameter, parameterAt, type Schema, schemaAt } from '../schemas/schemas.js'
import { CHANGED } from './versions.js'

/**
 * The earliest version to which models are converted down. Version 13 is the last that relaxed rules which schemas do not state, such as
 * negative axes.
 */
export const LOWEST_TARGET = 13

/** Values of attributes that are younger than the attribute. */
const YOUNG_VALUES: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>> = {
  Pad: { mode: { wrap: 19 } },
  Resize: { coordinate_transformation_mode: { half_pixel_symmetric: 19 } },
  ScatterElements: { reduction: { max: 18, min: 18 } },
  ScatterND: { reduction: { max: 18, min: 18 } },
}

/** Why nodes of the main graph and its subgraphs do not mean the same in an earlier version, each with its node. */
export function whyNotLower(model: OnnxModel, from: number, version: number): [node: Node, reason: string][] {
  const { types } = inferModel(model)
  const found: [Node, string][] = []
  for (const scope of mainScope(model).all()) {
    for (const node of scope.graph.nodes) {
      if (standardDomain(node.domain) !== '') continue
      const reason = whyNot(node, { from, version }, (name) => keyOf(types, scope, name))
      if (reason !== undefined) found.push([node, reason])
    }
  }
  return found
}

function keyOf(types: Inference['types'], scope: Scope, name: string): string | undefined {
  const graph = scope.ownerOf(name)?.graph
  const type = graph && types.get(graph)?.get(name)
  return type && typeKeyOf(type)
}

function whyNot(
  node: Node,
  { from, version }: { readonly from: number; readonly version: number },
  typeOf: (name: string) => string | undefined,
): string | undefined {
  const { opType } = node
  const [present, earlier] = [schemaAt('', opType, from), schemaAt('', opType, version)]
  if (!present) return 'the operator is not known'
  if (!earlier) return `version ${present.since} introduced it`
  for (let next = version + 1; next <= from; next++)
    if (CHANGED.get(next)?.has(opType)) return `version ${next} changed what it means`
  if (present.since === earlier.since) return undefined
  return (
    whyNoAttributes(node, earlier, version) ??
    whyNoValues(node.inputs, [present.inputs, earlier.inputs], 'input', typeOf) ??
    whyNoValues(node.outputs, [present.outputs, earlier.outputs], 'output', typeOf)
  )
}

function whyNoAttributes(node: Node, earlier: Schema, version: number): string | undefined {
  for (const attribute of node.attributes) {
    const { name } = attribute
    if (!earlier.attributes.has(name)) return `${name} is a younger attribute`
    const text = attribute.type === 'STRING' ? attribute.text : ''
    const since = ownEntry(ownEntry(ownEntry(YOUNG_VALUES, node.opType) ?? {}, name) ?? {}, text)
    if (since !== undefined && since > version) return `version ${since} introduced ${name} ${text}`
  }
  return undefined
}

function whyNoValues(
  names: readonly string[],
  [present, earlier]: readonly [readonly Parameter[], readonly Parameter[]],
  what: 'input' | 'output',
  typeOf: (name: string) => string | undefined,
): string | undefined {
  for (const [at, name] of names.entries()) {
    if (name === '') continue
    const [now, then] = [parameterAt(present, at), parameterAt(earlier, at)]
    if (!then) return `${what} ${at} is younger`
    if (now && [...now.types].every((key) => then.types.has(key))) continue
    const key = typeOf(name)
    if (key === undefined) return `the type of ${what} ${at} is not known`
    if (!then.types.has(key)) return `the type of ${what} ${at} is younger`
  }
  // An input that is optional now may have been required.
  const least = earlier.findLastIndex(({ option }) => option === 'single')
  return names.length <= least ? `${what} ${least} was required` : undefined
}
