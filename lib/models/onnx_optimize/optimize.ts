/** Passes that make a model simpler and keep what it computes: `optimize`. */

import { checkFlag, checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { checkTexts } from '../../formats/onnx/protobuf/field_input.js'
import { nearestText } from '../../nearest_names.js'
import { valueText } from '../../value_text.js'
import { checkModel } from '../onnx/document/check_model.js'
import type { OnnxModel } from '../onnx/document/model.js'
import { forgetNodeNames, nodeNamesOf } from '../onnx/document/node_names.js'
import { refuseTraining, sortNodes } from '../onnx/edit/graph_passes.js'
import { inlineFunctions } from '../onnx/edit/inline_functions.js'
import { addDefaultAttributes, removeDefaultAttributes, removeOptionalOutputs } from './defaults.js'
import { deduplicate, liftConstants, liftInitializers } from './initializers.js'
import { clearMetadata } from './metadata.js'
import { fixNames } from './names.js'
import { fixOutputs } from './outputs.js'
import { type Body, runInFunctions } from './rewrite/functions.js'
import type { RewriteNode } from './rewrite/rewrite_graph.js'
import { rewriteModel } from './rewrite/rewrite_model.js'
import type { NodeRule } from './rewrite/rewriter.js'
import { checkRules, importOpsets, nodeRuleOf, type Rule, titleOf } from './rewrite/rules.js'
import { BRANCHES } from './rules/branches.js'
import { equalNodesRule } from './rules/equal_nodes.js'
import { foldRule, type Growth } from './rules/fold.js'
import { foldWeightsRule } from './rules/fold_weights.js'
import { channelSumRule, normalizationRules, type Rounding } from './rules/fuse_channels.js'
import { factorRule } from './rules/fuse_factors.js'
import { FUSE_GELU, FUSE_GEMM, FUSE_HARD_SWISH, FUSE_LAYER_NORMALIZATION, FUSE_PAD } from './rules/fusions.js'
import { MOVEMENTS } from './rules/movements.js'
import { DROPOUT, IDENTITY, NO_OPS } from './rules/no_ops.js'
import { PAIRS } from './rules/pairs.js'
import { SHAPES } from './rules/shapes.js'
import { TRANSPOSES } from './rules/transposes.js'
import { removeUnusedFunctions, removeUnusedOpsets, removeUnusedValues } from './unused.js'

/** Name of a pass of `optimize`. */
export type OptimizePass =
  | 'sort'
  | 'inline-functions'
  | 'remove-unused-functions'
  | 'lift-constants'
  | 'lift-initializers'
  | 'remove-default-attributes'
  | 'deduplicate-initializers'
  | 'remove-identity'
  | 'remove-dropout'
  | 'remove-no-ops'
  | 'merge-neighbours'
  | 'inline-branches'
  | 'merge-equal-nodes'
  | 'simplify-shapes'
  | 'fold-shapes'
  | 'fold-weights'
  | 'fuse-conv-bn'
  | 'fuse-conv-add'
  | 'fuse-pad'
  | 'fuse-gemm'
  | 'fuse-gelu'
  | 'fuse-layernorm'
  | 'fuse-hardswish'
  | 'remove-unused'
  | 'remove-optional-outputs'
  | 'remove-unused-opsets'
  | 'add-default-attributes'
  | 'fix-names'
  | 'fix-outputs'
  | 'clear-metadata'

/** What rules of one run share. */
interface RuleLimits {
  readonly growth: Growth
  readonly rounding: Rounding
}

type Pass = {
  readonly name: OptimizePass
  /** What it does, for the documentation. */
  readonly description: string
  /** It runs only where `only` names it, or with `fuse` as well, because outputs may be rounded otherwise. Default: always. */
  readonly runs?: 'on request' | 'with fuse'
} & (
  | {
      readonly isOfFunctions?: undefined
      readonly rules?: undefined
      /** @returns number of changes; 0 where the model is as it was */
      readonly run: (model: OnnxModel) => number | Promise<number>
    }
  | {
      /** It runs on the bodies of functions as well, one after the other. */
      readonly isOfFunctions: true
      readonly rules?: undefined
      readonly run: (body: Body) => number | Promise<number>
    }
  | {
      /** Rules that run together with those of the other passes, also on the bodies of functions. */
      readonly rules: (body: Body, limits: RuleLimits) => readonly NodeRule[]
    }
)

/** In the order in which they run. */
export const PASSES: readonly Pass[] = [
  {
    name: 'sort',
    description: 'puts the nodes into topological order',
    isOfFunctions: true,
    run: sort,
  },
  {
    name: 'inline-functions',
    description:
      'replaces calls of functions of the model by their nodes, where both have the same operator sets',
    run: inlineFunctions,
  },
  {
    name: 'remove-unused-functions',
    description: 'removes functions that no node calls',
    run: removeUnusedFunctions,
  },
  {
    name: 'lift-constants',
    description: 'turns `Constant` nodes into initializers, except outputs of their graph',
    run: liftConstants,
  },
  {
    name: 'lift-initializers',
    description: 'moves initializers of subgraphs to the main graph',
    run: liftInitializers,
  },
  {
    name: 'remove-default-attributes',
    description: 'removes attributes that equal the default of their operator',
    run: removeDefaultAttributes,
  },
  {
    name: 'deduplicate-initializers',
    description: 'keeps one of several equal initializers, strings included',
    run: deduplicate,
  },
  {
    name: 'remove-identity',
    description: 'removes `Identity` nodes, except between an input or a weight and an output',
    rules: () => IDENTITY,
  },
  {
    name: 'remove-dropout',
    description: 'removes `Dropout` nodes that are not in training and whose mask is not used',
    rules: () => DROPOUT,
  },
  {
    name: 'remove-no-ops',
    description:
      'removes nodes that give an input as it is: neutral operands, casts to the same type, movements that move nothing',
    rules: () => NO_OPS,
  },
  {
    name: 'merge-neighbours',
    description:
      'makes one node or none of two: inverse and repeated ones, casts, transposes, reshapes, slices, joins and splits',
    rules: () => [...PAIRS, ...TRANSPOSES, ...MOVEMENTS],
  },
  {
    name: 'inline-branches',
    description:
      'puts the branch of an `If` with a constant condition in its place, and a `Loop` that runs once or never',
    rules: () => BRANCHES,
  },
  {
    name: 'merge-equal-nodes',
    description:
      'keeps one of several nodes with equal operator, inputs and attributes (common subexpressions)',
    rules: (body) => [equalNodesRule(body)],
  },
  {
    name: 'simplify-shapes',
    description: 'shortens arithmetic of shapes of which some extents are symbolic',
    rules: () => SHAPES,
  },
  {
    name: 'fold-shapes',
    description:
      'replaces arithmetic of fixed shapes and of small constants by its result, where the file does not grow',
    rules: (_, { growth }) => [foldRule(growth)],
  },
  {
    name: 'fold-weights',
    description:
      'applies `Transpose`, `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Slice`, `Concat` and float `Cast` to weights that nothing else uses',
    rules: (_, { growth }) => [foldWeightsRule(growth)],
  },
  {
    name: 'fuse-conv-bn',
    description:
      'folds `BatchNormalization` and products by channel into the weights of `Conv`, `ConvTranspose` and `Gemm` before them, and constant factors into those of `Conv`, `ConvTranspose`, `MatMul` and `Gemm` behind them',
    runs: 'with fuse',
    rules: (_, { rounding }) => [...normalizationRules(rounding), factorRule(rounding)],
  },
  {
    name: 'fuse-conv-add',
    description: 'adds constants by channel to the bias of `Conv` and `ConvTranspose`',
    runs: 'with fuse',
    rules: (_, { rounding }) => [channelSumRule(rounding)],
  },
  {
    name: 'fuse-pad',
    description: 'lets `Conv` and `AveragePool` pad with zeros themselves',
    runs: 'with fuse',
    rules: () => FUSE_PAD,
  },
  {
    name: 'fuse-gemm',
    description: 'makes `Gemm` of a product of matrices and a sum, and of a transposed factor',
    runs: 'with fuse',
    rules: () => FUSE_GEMM,
  },
  {
    name: 'fuse-gelu',
    description: 'makes `Gelu` of its formulas with `Erf` and `Tanh`, from operator set 20 on',
    runs: 'with fuse',
    rules: () => FUSE_GELU,
  },
  {
    name: 'fuse-layernorm',
    description: 'makes `LayerNormalization` of its formula, from operator set 17 on',
    runs: 'with fuse',
    rules: () => FUSE_LAYER_NORMALIZATION,
  },
  {
    name: 'fuse-hardswish',
    description: 'makes `HardSwish` of its formulas, from operator set 14 on',
    runs: 'with fuse',
    rules: () => FUSE_HARD_SWISH,
  },
  {
    name: 'remove-unused',
    description: 'removes nodes and initializers that no output depends on',
    isOfFunctions: true,
    run: removeUnusedValues,
  },
  {
    name: 'remove-optional-outputs',
    description: 'omits optional outputs of nodes that nothing uses',
    isOfFunctions: true,
    run: removeOptionalOutputs,
  },
  {
    name: 'remove-unused-opsets',
    description: 'removes imports of operator sets that no node is of',
    run: removeUnusedOpsets,
  },
  {
    name: 'add-default-attributes',
    description: 'writes the default of every attribute that a node lacks',
    runs: 'on request',
    run: addDefaultAttributes,
  },
  {
    name: 'fix-names',
    description:
      'gives every node a name of its own, and values of subgraphs names that no value around them has',
    runs: 'on request',
    run: fixNames,
  },
  {
    name: 'fix-outputs',
    description:
      'puts an `Identity` before outputs that are inputs or weights, and before all but one of those that are listed twice; the input gets another name',
    runs: 'on request',
    isOfFunctions: true,
    run: fixOutputs,
  },
  {
    name: 'clear-metadata',
    description: 'removes doc strings and metadata of graphs, functions and nodes; those of the model stay',
    runs: 'on request',
    run: clearMetadata,
  },
]

/** The rules of all passes that have some, with or without those that round. @internal */
export function rulesOfAllPasses(body: Body, fuse: boolean): readonly NodeRule[] {
  const limits: RuleLimits = { growth: { left: 0 }, rounding: { largest: 0 } }
  const passes = PASSES.filter(({ runs }) => fuse || runs !== 'with fuse')
  return passes.flatMap(({ rules }) => rules?.(body, limits) ?? [])
}

/** Options of `optimize`. */
export interface OptimizeOptions {
  /**
   * Passes to run, always in their documented order. Default: all but `add-default-attributes`, `fix-names`,
   * `fix-outputs`, `clear-metadata` and those whose results are rounded otherwise.
   */
  readonly only?: readonly OptimizePass[]
  /** Whether passes run, too, whose results are rounded otherwise: those whose names begin with `fuse`. Default false. */
  readonly fuse?: boolean
  /** Rules that run together with those of the passes; the ones that round only with `fuse`. See `rule`. */
  readonly with?: readonly Rule[]
  /** Bytes that constants may add to the file beyond what goes. Default 0. */
  readonly maxGrowth?: number
  /** Stops between two passes; the model is valid then. */
  readonly signal?: AbortSignal
}

/** What a pass changed. */
export interface OptimizeChange {
  /** A pass, or the name of a rule of `with`. */
  readonly pass: OptimizePass | (string & {})
  /** Number of nodes, initializers, attributes or the like; 0 where there was nothing to do. */
  readonly changes: number
  /** Names of the nodes that were replaced, or of their outputs, in order; only of passes that replace nodes one by one. */
  readonly nodes?: readonly string[]
  /** Of a pass that makes new weights: the largest error of an element, as a part of the largest element. */
  readonly largestError?: number
}

/** A pass can make work for earlier ones; they are repeated, at most so often. */
const MAX_PASS_ROUNDS = 8

/**
 * Runs passes that make the model simpler or smaller and keep its outputs; docs/onnx.md lists them in their order. Changes the
 * model in place, and nothing where it is optimized already. Inputs and outputs keep names, order and types.
 *
 * Passes are repeated until none finds anything to do, on bodies of functions as far as they need no types. Below IR version 4 they
 * add no initializers.
 *
 * @returns what each pass changed, in their order
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for a model with training graphs; ERR_GRAPH for a cycle of nodes;
 * ERR_LIMIT for functions that grow to more than 1,048,576 nodes, and for rules without an end; ERR_ABORTED; errors of reading tensors
 */
export async function optimize(
  model: OnnxModel,
  options: OptimizeOptions = {},
): Promise<readonly OptimizeChange[]> {
  checkModel(model, 'optimize')
  const { passes, rules, maxGrowth, signal } = checkOptimizeOptions(options)
  throwIfAborted(signal)
  refuseTraining(model.graph)
  const changes = new Changes([...passes.map(({ name }) => name), ...rules.map(({ name }) => name)])
  const steps = stepsOf(passes, rules, { growth: { left: maxGrowth }, changes })
  try {
    await repeat(steps, model, signal)
  } finally {
    forgetNodeNames(model.graph)
  }
  return changes.list
}

async function repeat(steps: readonly Step[], model: OnnxModel, signal?: AbortSignal): Promise<void> {
  let last: Step | undefined
  for (let round = 0; round < MAX_PASS_ROUNDS; round++) {
    for (const step of steps) {
      // All others have run since then without a change.
      if (round > 0 && step === last) return
      throwIfAborted(signal)
      if (await step(model)) last = step
    }
    if (last === undefined) return
  }
}

/** What was changed so far. */
class Changes {
  readonly #counts: Map<string, number>
  readonly #roundings = new Map<string, Rounding>()
  readonly #nodes = new Map<string, string[]>()

  constructor(names: readonly string[]) {
    this.#counts = new Map(names.map((name) => [name, 0]))
  }

  add(name: string, count: number): void {
    this.#counts.set(name, this.#counts.get(name)! + count)
  }

  /** A node that goes. */
  note(name: string, node: RewriteNode): void {
    this.add(name, 1)
    const nodes = this.#nodes.get(name) ?? []
    this.#nodes.set(name, nodes)
    nodes.push(titleOf(node))
  }

  /** Where the rules of a pass note errors of what they make. */
  rounding(name: string): Rounding {
    const rounding = this.#roundings.get(name) ?? { largest: 0 }
    this.#roundings.set(name, rounding)
    return rounding
  }

  get list(): readonly OptimizeChange[] {
    return [...this.#counts].map(([pass, changes]) => {
      const { largest: largestError = 0 } = this.#roundings.get(pass) ?? {}
      const nodes = this.#nodes.get(pass)
      return { pass, changes, ...(nodes && { nodes }), ...(largestError > 0 && { largestError }) }
    })
  }
}

/** Part of a round. @returns false where it changed nothing */
type Step = (model: OnnxModel) => Promise<boolean>

interface Surroundings {
  readonly growth: Growth
  readonly changes: Changes
}

/** Each pass is a step, but for those with rules, which are one together, with those of the caller. */
function stepsOf(passes: readonly Pass[], rules: readonly Rule[], around: Surroundings): readonly Step[] {
  const withRules = passes.filter((pass) => pass.rules !== undefined)
  const rewriting: Step = (model) => rewriteBy(withRules, rules, model, around)
  const steps = passes.flatMap((pass): Step[] => {
    if (pass.rules) return pass === withRules[0] ? [rewriting] : []
    return [
      async (model) => {
        const count =
          (await pass.run(model)) + (pass.isOfFunctions ? await runInFunctions(model, pass.run) : 0)
        around.changes.add(pass.name, count)
        return count > 0
      },
    ]
  })
  return withRules.length === 0 && rules.length > 0 ? [...steps, rewriting] : steps
}

async function rewriteBy(
  passes: readonly Pass[],
  own: readonly Rule[],
  model: OnnxModel,
  { growth, changes }: Surroundings,
): Promise<boolean> {
  const passOf = new Map<NodeRule, string>()
  const applied = new Set<string>()
  const rulesOf = (body: Body): readonly NodeRule[] => {
    const found = passes.flatMap(({ name, rules }) =>
      rules!(body, { growth, rounding: changes.rounding(name) }).map((rule) => ({ name, rule })),
    )
    const all = [...found, ...own.map((each) => ({ name: each.name, rule: nodeRuleOf(each) }))]
    for (const { name, rule } of all) passOf.set(rule, name)
    return all.map(({ rule }) => rule)
  }
  let hasChanged = true
  const note = (rule: NodeRule, node: RewriteNode): void => {
    const name = passOf.get(rule)!
    hasChanged = true
    applied.add(name)
    changes.note(name, node)
  }
  // A run infers values once, at its beginning; more may follow for what is behind a change.
  for (let run = 0; run < MAX_PASS_ROUNDS && hasChanged; run++) {
    hasChanged = false
    rewriteModel(model, rulesOf, note)
  }
  importOpsets(
    model,
    own.filter(({ name }) => applied.has(name)),
  )
  return applied.size > 0
}

function sort({ graph }: Body): number {
  // Kept for the passes behind this one, and read first: then the graph knows whether it has subgraphs.
  nodeNamesOf(graph)
  return [graph, ...graph.subgraphs()].filter(sortNodes).length
}

interface CheckedOptions {
  readonly passes: readonly Pass[]
  readonly rules: readonly Rule[]
  readonly maxGrowth: number
  readonly signal: AbortSignal | undefined
}

function checkOptimizeOptions(options: OptimizeOptions): CheckedOptions {
  checkOptions(options, 'optimize', ['only', 'fuse', 'with', 'maxGrowth', 'signal'])
  const given = readInput('The options of optimize', () => ({ ...options }))
  const { only, fuse = false, with: rules = [], maxGrowth = 0, signal } = given
  checkFlag(fuse, 'fuse')
  if (!Number.isSafeInteger(maxGrowth) || maxGrowth < 0) {
    const message = `maxGrowth is ${valueText(maxGrowth)}; it must be a number of bytes.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const own = checkRules('optimize', rules).filter(({ rounding }) => fuse || !rounding)
  const known = PASSES.map<string>(({ name }) => name)
  const taken = own.find(({ name }) => known.includes(name))
  if (taken) {
    const message = `optimize has a pass ${valueText(taken.name)}; a rule needs another name.`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  const checked = { rules: own, maxGrowth, signal }
  const isFusion = ({ runs }: Pass): boolean => fuse && runs === 'with fuse'
  if (only === undefined)
    return { ...checked, passes: PASSES.filter((pass) => pass.runs === undefined || isFusion(pass)) }
  const names = readInput('The passes of optimize', () => [...checkTexts('only of optimize', only)])
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const message = `optimize has no pass ${valueText(unknown)}${nearestText(unknown, known)}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return { ...checked, passes: PASSES.filter((pass) => names.includes(pass.name) || isFusion(pass)) }
}
