/**
 * Whether the nodes of a model mean the same in an earlier operator set. An earlier definition has fewer types, attributes and inputs;
 * from version 13 on, a node that it allows means the same in both, except where a version changed what nodes mean. Of these, reductions
 * have an earlier form: axes that were an attribute.
 */
import { ownEntry } from '../../../own_entry.js'
import { typeKeyOf } from '../check/type_constraints.js'
import type { OnnxModel } from '../document/model.js'
import { standardDomain } from '../document/node.js'
import { isStandard, mainScope, type Scope } from '../document/scope.js'
import type { Attribute, Node } from '../document/types.js'
import { isKnown } from '../evaluate/dims.js'
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

/** From this version on, axes of reductions are an input. */
const AXES_INPUT = 18

/** What an earlier version needs of the nodes of the main graph and its subgraphs. */
export interface Lowering {
  /** Why nodes do not mean the same there. */
  readonly refused: readonly (readonly [node: Node, reason: string])[]
  /** Axes of reductions that become attributes; undefined for all axes. */
  readonly reductions: ReadonlyMap<Node, readonly number[] | undefined>
}

export function planLowering(model: OnnxModel, from: number, version: number): Lowering {
  const inference = inferModel(model)
  const refused: [Node, string][] = []
  const reductions = new Map<Node, readonly number[] | undefined>()
  for (const scope of mainScope(model).all()) {
    for (const node of scope.graph.nodes) {
      if (standardDomain(node.domain) !== '') continue
      const typeOf = (name: string): string | undefined => keyOf(inference.types, scope, name)
      const isReduction = from >= AXES_INPUT && version < AXES_INPUT && isChangedReduction(node)
      const axes = isReduction ? axesOf(node, (name) => listIn(inference, scope, name)) : undefined
      const reason =
        typeof axes === 'string' ? axes : whyNot(node, { from, version, isLowered: isReduction }, typeOf)
      if (reason !== undefined) refused.push([node, reason])
      else if (isReduction) reductions.set(node, axes as readonly number[] | undefined)
    }
  }
  return { refused, reductions }
}

/** Gives reductions their axes as attributes. */
export function lowerReductions(reductions: Lowering['reductions']): void {
  for (const [node, axes] of reductions) {
    const [data = '', constant = ''] = node.inputs
    node.inputs = [data]
    node.removeAttribute('noop_with_empty_axes')
    if (axes) node.setAttribute('axes', { type: 'INTS', value: [...axes] })
    const { graph } = node
    const producer = graph?.producerOf(constant)
    if (!graph || constant === '' || graph.usersOf(constant).length > 0 || graph.outputNames.has(constant))
      continue
    if (graph.hasInitializer(constant) && !graph.inputNames.has(constant)) graph.removeInitializer(constant)
    else if (producer && isStandard(producer, 'Constant')) graph.removeNode(producer)
  }
}

function isChangedReduction({ opType }: Node): boolean {
  return opType.startsWith('Reduce') && CHANGED.get(AXES_INPUT)?.has(opType) === true
}

/** Undefined for all axes, or the reason of a refusal. */
function axesOf(
  node: Node,
  listOf: (name: string) => readonly number[] | undefined,
): readonly number[] | undefined | string {
  const name = node.inputs[1] ?? ''
  const axes = name === '' ? [] : listOf(name)
  if (!axes) return 'its axes are no constant'
  if (axes.length > 0) return axes
  const isNoOp = Number(node.attribute('noop_with_empty_axes')?.value ?? 0) !== 0
  return isNoOp ? 'noop_with_empty_axes is a younger attribute' : undefined
}

/** The numbers of a value that no input of the model changes. */
function listIn({ known }: Inference, scope: Scope, name: string): readonly number[] | undefined {
  const graph = scope.ownerOf(name)?.graph
  const list = graph && known.get(graph)?.get(name)?.value?.list
  return list?.every(isKnown) ? list : undefined
}

function keyOf(types: Inference['types'], scope: Scope, name: string): string | undefined {
  const graph = scope.ownerOf(name)?.graph
  const type = graph && types.get(graph)?.get(name)
  return type && typeKeyOf(type)
}

function whyNot(
  node: Node,
  {
    from,
    version,
    isLowered,
  }: { readonly from: number; readonly version: number; readonly isLowered: boolean },
  typeOf: (name: string) => string | undefined,
): string | undefined {
  const { opType } = node
  const [present, earlier] = [schemaAt('', opType, from), schemaAt('', opType, version)]
  if (!present) return 'the operator is not known'
  if (!earlier) return `version ${present.since} introduced it`
  for (let next = version + 1; next <= from; next++)
    if (CHANGED.get(next)?.has(opType) && !(isLowered && next === AXES_INPUT))
      return `version ${next} changed what it means`
  if (present.since === earlier.since) return undefined
  const isGone = ({ name }: { readonly name: string }): boolean =>
    isLowered && name === 'noop_with_empty_axes'
  const attributes = node.attributes.filter((each) => !isGone(each))
  return (
    whyNoAttributes(opType, attributes, earlier, version) ??
    whyNoValues(
      isLowered ? node.inputs.slice(0, 1) : node.inputs,
      [present.inputs, earlier.inputs],
      'input',
      typeOf,
    ) ??
    whyNoValues(node.outputs, [present.outputs, earlier.outputs], 'output', typeOf)
  )
}

function whyNoAttributes(
  opType: string,
  attributes: readonly Attribute[],
  earlier: Schema,
  version: number,
): string | undefined {
  for (const attribute of attributes) {
    const { name } = attribute
    if (!earlier.attributes.has(name)) return `${name} is a younger attribute`
    const text = attribute.type === 'STRING' ? attribute.text : ''
    const since = ownEntry(ownEntry(ownEntry(YOUNG_VALUES, opType) ?? {}, name) ?? {}, text)
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
