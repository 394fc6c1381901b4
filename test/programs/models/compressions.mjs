/** What test/programs/models.mjs does to models of packages beside the edits of ./actions.mjs. */
import { TARGETS } from './targets.mjs'

/** A model may have nothing that a target changes, and operators that an adapter to a later operator set does not know. */
const REFUSALS = ['ERR_UNSUPPORTED', 'ERR_GRAPH']

const compressions = Object.entries(TARGETS).filter(([name]) => name !== 'optimized')

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
        return nodes.length + tensors.length > 0 ? {} : undefined
      },
    },
  ]),
)
