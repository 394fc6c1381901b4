/** Rules of users: patterns of nodes, conditions, and what takes the place of what matched. */
import { checkFlag, checkOptions, readInput } from '../../../caller_input.js'
import { throwIfAborted } from '../../../cancel.js'
import { TileworkError } from '../../../errors.js'
import { ATTRIBUTE_TYPES } from '../../../formats/onnx/schema.js'
import type { Tensor } from '../../../tensor/tensor.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../../onnx/document/check_model.js'
import type { OnnxModel } from '../../onnx/document/model.js'
import { standardDomain } from '../../onnx/document/node.js'
import type { NewAttribute } from '../../onnx/document/types.js'
import { refuseTraining } from '../../onnx/edit/graph_passes.js'
import { importMissingOpsets } from '../../onnx/edit/missing_opsets.js'
import { schemaAt } from '../../onnx/schemas/schemas.js'
import { match, NodePattern, type Pattern } from './pattern.js'
import { type RewriteNode, RewriteValue } from './rewrite_graph.js'
import { rewriteModel } from './rewrite_model.js'
import { MAX_GENERATIONS, type NodeMaker, type NodeRule, type Replacement } from './rewriter.js'
import { hasSameShape } from './same_shape.js'

/** A value of an attribute: a number, text or list by the schema of the operator, or with its type. */
export type RuleAttribute =
  | NewAttribute
  | number
  | bigint
  | string
  | readonly (number | bigint)[]
  | readonly string[]

/** What the functions of a rule get beside what its pattern names. */
export interface RuleContext {
  /** The node that the whole pattern matched. */
  readonly root: RewriteNode
  /** The first output of `root`. */
  readonly output: RewriteValue
  /**
   * A new node in the place of `root`. Numbers, texts and lists get the attribute's type by the schema of the operator; operators
   * without one take attributes as `Graph.addNode`.
   *
   * @param options - the domain of the operator, and how many outputs the node has; default 1
   * @returns its first output; the others are `value.producer.output(1)` and so on
   */
  make(
    opType: string,
    inputs: readonly (RewriteValue | undefined)[],
    attributes?: Readonly<Record<string, RuleAttribute>>,
    options?: { readonly domain?: string; readonly outputs?: number },
  ): RewriteValue
  /** A new constant. */
  makeConstant(tensor: Tensor): RewriteValue
  /** Whether two values have one element type, and one shape for all sizes of symbolic extents. */
  same(one: RewriteValue, other: RewriteValue): boolean
}

/** How a rule is made. */
export interface RuleOptions<Named> {
  /** What it is called in results and errors. */
  readonly name: string
  readonly match: Pattern<Named>
  /** Further conditions; default: none. */
  readonly where?: (found: Named & RuleContext) => boolean
  /**
   * What takes the place of the outputs of the root: a value, or one for each output; undefined where nothing changes. Values are
   * those of the pattern, and what `make` and `makeConstant` return.
   */
  readonly replace: (
    found: Named & RuleContext,
  ) => RewriteValue | readonly (RewriteValue | undefined)[] | undefined
  /** Whether results may be rounded otherwise: `optimize` runs such a rule only with `fuse`. Default false. */
  readonly rounding?: boolean
  /** Operator sets that the model has to import for what `replace` makes, by domain. */
  readonly opsets?: Readonly<Record<string, number>>
}

/** A rule for `rewrite` and `optimize`; `rule` makes it. */
export class Rule {
  readonly name: string
  readonly rounding: boolean
  /** @internal */
  readonly pattern: NodePattern
  /** @internal */
  readonly options: RuleOptions<unknown>

  /** @internal */
  constructor(options: RuleOptions<unknown>, pattern: NodePattern) {
    this.name = options.name
    this.rounding = options.rounding ?? false
    this.pattern = pattern
    this.options = options
  }
}

const RULE_OPTIONS = ['name', 'match', 'where', 'replace', 'rounding', 'opsets'] as const

/**
 * A rule that replaces what a pattern matches.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export function rule<Named>(options: RuleOptions<Named>): Rule {
  checkOptions(options, 'rule', RULE_OPTIONS)
  const given = readInput('The options of rule', () => ({ ...options }))
  const { name, match: pattern, where, replace, rounding = false } = given
  if (typeof name !== 'string' || name === '') wrong('name', name, 'a text')
  if (!(pattern instanceof NodePattern)) wrong('match', pattern, 'a pattern that node() makes')
  if (where !== undefined && typeof where !== 'function') wrong('where', where, 'a function')
  if (typeof replace !== 'function') wrong('replace', replace, 'a function')
  checkFlag(rounding, 'rounding')
  const opsets = readInput('The opsets of rule', () => ({ ...given.opsets }))
  const wrongVersion = Object.values(opsets).find((version) => !Number.isSafeInteger(version) || version < 1)
  if (wrongVersion !== undefined) wrong('a version of opsets', wrongVersion, 'a whole number from 1')
  return new Rule({ ...given, opsets } as unknown as RuleOptions<unknown>, pattern as NodePattern)
}

function wrong(option: string, value: unknown, expected: string): never {
  throw new TileworkError('ERR_ARGUMENT', `${option} of rule is ${valueText(value)}; it must be ${expected}.`)
}

/** What a rule changed. */
export interface RewriteChange {
  readonly rule: string
  /** How often it applied. */
  readonly changes: number
  /** Names of the nodes that were the roots, in the order in which they were replaced; outputs where nodes have no names. */
  readonly nodes: readonly string[]
}

/** Options of `rewrite`. */
export interface RewriteOptions {
  readonly signal?: AbortSignal
}

/**
 * Replaces what rules match, in the main graph, in subgraphs and in bodies of functions, until none matches. Changes the model in
 * place; inputs and outputs keep names, order and types.
 *
 * Nodes are looked at in topological order, and each by the rules in their order; the first that matches and says yes applies. New
 * nodes are looked at as well. A pattern does not reach across graphs, and nodes below its root whose outputs others use as well do
 * not match, unless the pattern keeps them. Types and shapes follow from inputs and operators, not from declared types.
 *
 * @returns what each rule changed, in their order
 * @throws TileworkError ERR_ARGUMENT for what is no rule, and for a rule that throws or returns anything else than values;
 * ERR_LIMIT for a rule that finds something to do in what it made, eight times in a row; ERR_UNSUPPORTED for a model with training
 * graphs; ERR_GRAPH for a cycle of nodes; ERR_ABORTED. The model is as it was then
 */
export async function rewrite(
  model: OnnxModel,
  rules: readonly Rule[],
  options: RewriteOptions = {},
): Promise<readonly RewriteChange[]> {
  checkModel(model, 'rewrite')
  checkOptions(options, 'rewrite', ['signal'])
  const list = checkRules('rewrite', rules)
  throwIfAborted(readInput('The options of rewrite', () => options.signal))
  refuseTraining(model.graph)
  const nodes = new Map(list.map(({ name }) => [name, [] as string[]]))
  rewriteModel(
    model,
    () => list.map(nodeRuleOf),
    ({ name }, node) => nodes.get(name)!.push(titleOf(node)),
  )
  importOpsets(
    model,
    list.filter(({ name }) => nodes.get(name)!.length > 0),
  )
  return list.map(({ name }) => ({ rule: name, changes: nodes.get(name)!.length, nodes: nodes.get(name)! }))
}

/** Its name, or that of an output. */
export function titleOf({ source: { name }, baseName }: RewriteNode): string {
  return name === '' ? baseName : name
}

/** @throws TileworkError ERR_ARGUMENT */
export function checkRules(where: string, rules: readonly Rule[]): readonly Rule[] {
  const list = readInput(`The rules of ${where}`, () => [...rules])
  const names = new Set<string>()
  for (const each of list) {
    if (!(each instanceof Rule)) {
      const message = `${where} got ${valueText(each)} among its rules; rule() makes rules.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    if (names.has(each.name)) {
      const message = `${where} got two rules of the name ${valueText(each.name)}; each needs one of its own.`
      throw new TileworkError('ERR_ARGUMENT', message)
    }
    names.add(each.name)
  }
  return list
}

/** Imports the operator sets that the new nodes of rules are of, where the model has none of the domain. */
export function importOpsets(model: OnnxModel, rules: readonly Rule[]): void {
  for (const { options } of rules) importMissingOpsets(model, Object.entries(options.opsets ?? {}))
}

/** The rule as the rewriter runs it. */
export function nodeRuleOf({ name, pattern, options: { where, replace } }: Rule): NodeRule {
  const { domain, opTypes } = pattern
  return {
    name,
    operators: opTypes.map((opType) => ({ opType, domain })),
    maxGenerations: MAX_GENERATIONS,
    apply(root, maker) {
      const found = match(pattern, root)
      if (!found) return undefined
      try {
        const named = { ...found.bound, ...contextOf(root, maker) }
        if (where && where(named) !== true) return undefined
        return checkReplacement(name, replace(named))
      } catch (error) {
        if (error instanceof TileworkError) throw error
        const message = `The rule ${valueText(name)} throws at the node ${valueText(titleOf(root))}.`
        throw new TileworkError('ERR_ARGUMENT', message, { cause: error })
      }
    },
  }
}

function contextOf(root: RewriteNode, maker: NodeMaker): RuleContext {
  return {
    root,
    output: root.outputs.find((output) => output !== undefined)!,
    make: (opType, inputs, attributes = {}, options = {}) => {
      const version = root.context.opsetOf(standardDomain(options.domain ?? ''))
      const typed = Object.entries(attributes).map(
        ([name, value]) =>
          [name, typedAttribute(value, { opType, domain: options.domain ?? '', version, name })] as const,
      )
      return maker.make(opType, inputs, Object.fromEntries(typed), options)
    },
    makeConstant: maker.constant,
    same: (one, other) => one.dtype !== undefined && one.dtype === other.dtype && hasSameShape(one, other),
  }
}

interface AttributePlace {
  readonly opType: string
  readonly domain: string
  readonly version: number
  readonly name: string
}

/** With the type that the schema of the operator gives the attribute. */
function typedAttribute(
  value: RuleAttribute,
  { opType, domain, version, name }: AttributePlace,
): NewAttribute {
  if (typeof value === 'object' && 'type' in value) return value
  const code = schemaAt(standardDomain(domain), opType, version)?.attributes.get(name)?.type
  const type = code === undefined ? undefined : ATTRIBUTE_TYPES[code]
  if (type === undefined) {
    const message = `The type of the attribute ${valueText(name)} of ${opType} is not known; give it as { type, value }.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return { type, value } as NewAttribute
}

function checkReplacement(name: string, replacement: unknown): Replacement | undefined {
  const values = Array.isArray(replacement) ? replacement : [replacement]
  if (values.every((value) => value === undefined || value instanceof RewriteValue))
    return replacement as Replacement | undefined
  const message = `The rule ${valueText(name)} returns ${valueText(replacement)}; it must return values, as make() does.`
  throw new TileworkError('ERR_ARGUMENT', message)
}
