/** What test/programs/models.mjs does to models of packages beside the edits of ./actions.mjs. */
import { TARGETS } from './targets.mjs'

/**
 * A model may have nothing that a target changes, operators that an adapter to a later operator set does not know, and values
 * without a range: empty ones and those that are not finite.
 */
const REFUSALS = ['ERR_UNSUPPORTED', 'ERR_GRAPH', 'ERR_ARGUMENT']

/** Passes are among the edits; with float16 inputs a model takes others. */
const LEFT_OUT = ['optimized', 'fp16-io']

/** Smaller outputs, such as probabilities of what is not there, have no relative error that says something. */
const LEAST_SCALE = 1e-3

const compressions = Object.entries(TARGETS).filter(([name]) => !LEFT_OUT.includes(name))

export const COMPRESSIONS = Object.fromEntries(
  compressions.map(([name, { most, run }]) => [
    `to ${name}`,
    {
      isLossy: true,
      refusals: REFUSALS,
      tolerance: most,
      run: async ({ onnx, model, ask }) => {
        const isStatic = name.startsWith('static')
        const { ranges } = isStatic ? await ask({ name: model.name, ranges: true }) : {}
        const { nodes, tensors } = await run(onnx, ranges)
        return nodes.length + tensors.length > 0 ? { request: { leastScale: LEAST_SCALE } } : undefined
      },
    },
  ]),
)
