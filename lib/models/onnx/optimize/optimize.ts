/** Passes that make a model simpler and keep what it computes: `optimize`. */

import { checkOptions, readInput } from '../../../caller_input.js'
import { throwIfAborted } from '../../../cancel.js'
import { TileworkError } from '../../../errors.js'
import { checkTexts } from '../../../formats/onnx/protobuf/field_input.js'
import { nearestText } from '../../../nearest_names.js'
import { valueText } from '../../../value_text.js'
import { checkModel } from '../document/check_model.js'
import type { OnnxModel } from '../document/model.js'
import { refuseTraining, sortNodes } from '../edit/graph_passes.js'
import { removeDropout, removeIdentity } from './bypass.js'
import { addDefaultAttributes, removeDefaultAttributes, removeOptionalOutputs } from './defaults.js'
import { mergeEqualNodes } from './equal_nodes.js'
import { foldShapes } from './fold_shapes.js'
import { foldWeights } from './fold_weights.js'
import { type Body, runInFunctions } from './functions.js'
import { deduplicate, liftConstants, liftInitializers } from './initializers.js'
import { inlineFunctions } from './inline.js'
import { fixNames } from './names.js'
import { removeUnusedFunctions, removeUnusedOpsets, removeUnusedValues } from './unused.js'

/** Name of a pass of `optimize`. */
export type OptimizePass =
  | 'sort'
  | 'inline-functions'
  | 'remove-unused-functions'
  | 'lift-constants'
  | 'lift-initializers'
  | 'remove-identity'
  | 'remove-dropout'
  | 'remove-default-attributes'
  | 'deduplicate-initializers'
  | 'merge-equal-nodes'
  | 'fold-shapes'
  | 'fold-weights'
  | 'remove-unused'
  | 'remove-optional-outputs'
  | 'remove-unused-opsets'
  | 'add-default-attributes'
  | 'fix-names'

type Pass = {
  readonly name: OptimizePass
  /** What it does, for the documentation. */
  readonly description: string
  /** True: it runs only where `only` names it. */
  readonly isOnRequest?: boolean
} & (
  | {
      readonly isOfFunctions?: undefined
      /** @returns number of changes; 0 where the model is as it was */
      readonly run: (model: OnnxModel) => number | Promise<number>
    }
  | {
      /** It runs on the bodies of functions as well, one after the other. */
      readonly isOfFunctions: true
      readonly run: (body: Body) => number | Promise<number>
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
    name: 'remove-identity',
    description: 'removes `Identity` nodes, except between an input or a weight and an output',
    isOfFunctions: true,
    run: removeIdentity,
  },
  {
    name: 'remove-dropout',
    description: 'removes `Dropout` nodes that are not in training and whose mask is not used',
    isOfFunctions: true,
    run: removeDropout,
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
    name: 'merge-equal-nodes',
    description:
      'keeps one of several nodes with equal operator, inputs and attributes (common subexpressions)',
    isOfFunctions: true,
    run: mergeEqualNodes,
  },
  {
    name: 'fold-shapes',
    description:
      'replaces arithmetic of fixed shapes and of small constants by its result, where the file does not grow',
    run: foldShapes,
  },
  {
    name: 'fold-weights',
    description:
      'applies `Transpose`, `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze` and float `Cast` to weights that nothing else uses',
    run: foldWeights,
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
    isOnRequest: true,
    run: addDefaultAttributes,
  },
  {
    name: 'fix-names',
    description:
      'gives every node a name of its own, and values of subgraphs names that no value around them has',
    isOnRequest: true,
    run: fixNames,
  },
]

/** Options of `optimize`. */
export interface OptimizeOptions {
  /** Passes to run, always in their documented order. Default: all but `add-default-attributes` and `fix-names`. */
  readonly only?: readonly OptimizePass[]
  /** Stops between two passes; the model is valid then. */
  readonly signal?: AbortSignal
}

/** What a pass changed. */
export interface OptimizeChange {
  readonly pass: OptimizePass
  /** Number of nodes, initializers, attributes or the like; 0 where there was nothing to do. */
  readonly changes: number
}

/** A pass can make work for earlier ones; they are repeated, at most so often. */
const MAX_PASS_ROUNDS = 8

/**
 * Runs passes that make the model simpler or smaller and keep its outputs; docs/onnx.md lists them in their order. Changes the
 * model in place, and nothing where it is optimized already. Inputs and outputs keep names, order and types.
 *
 * Passes are repeated until none finds anything to do. Below IR version 4 those that add initializers do nothing. Bodies of
 * functions stay as they are, but for default attributes.
 *
 * @returns what each pass changed, in their order
 * @throws TileworkError ERR_ARGUMENT; ERR_UNSUPPORTED for a model with training graphs; ERR_GRAPH for a cycle of nodes;
 * ERR_LIMIT for functions that grow to more than 1,048,576 nodes; ERR_ABORTED; errors of reading tensors
 */
export async function optimize(
  model: OnnxModel,
  options: OptimizeOptions = {},
): Promise<readonly OptimizeChange[]> {
  checkModel(model, 'optimize')
  const { passes, signal } = checkOptimizeOptions(options)
  throwIfAborted(signal)
  refuseTraining(model.graph)
  const counts = new Map(passes.map(({ name }) => [name, 0]))
  let last: OptimizePass | undefined
  for (let round = 0; round < MAX_PASS_ROUNDS; round++) {
    for (const pass of passes) {
      const { name } = pass
      // All others have run since then without a change.
      if (round > 0 && name === last) return report(counts)
      throwIfAborted(signal)
      const changes =
        (await pass.run(model)) + (pass.isOfFunctions ? await runInFunctions(model, pass.run) : 0)
      if (changes === 0) continue
      counts.set(name, counts.get(name)! + changes)
      last = name
    }
    if (last === undefined) break
  }
  return report(counts)
}

function report(counts: ReadonlyMap<OptimizePass, number>): readonly OptimizeChange[] {
  return [...counts].map(([pass, changes]) => ({ pass, changes }))
}

function sort({ graph }: Body): number {
  return [graph, ...graph.subgraphs()].filter(sortNodes).length
}

function checkOptimizeOptions(options: OptimizeOptions): {
  readonly passes: readonly Pass[]
  readonly signal: AbortSignal | undefined
} {
  checkOptions(options, 'optimize', ['only', 'signal'])
  const { only, signal } = readInput('The options of optimize', () => ({ ...options }))
  if (only === undefined) return { passes: PASSES.filter(({ isOnRequest }) => !isOnRequest), signal }
  const names = readInput('The passes of optimize', () => [...checkTexts('only of optimize', only)])
  const known = PASSES.map<string>(({ name }) => name)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const message = `optimize has no pass ${valueText(unknown)}${nearestText(unknown, known)}`
    throw new TileworkError('ERR_ARGUMENT', message)
  }
  return { passes: PASSES.filter(({ name }) => names.includes(name)), signal }
}
