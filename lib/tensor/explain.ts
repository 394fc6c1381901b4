/** How the bytes of a tensor come about: what is stored, what is computed, and by which plans. */
import type { Explanation } from '../layout/plan.js'
import { checkOnlyDense } from './check_tensor.js'
import { asStored, type StoredTensor } from './dense.js'
import { FusedTensor } from './fused.js'
import { JoinedTensor } from './joined.js'
import type { DenseTensor } from './tensor.js'

/** What computes a tensor. */
export interface TensorExplanation {
  /** In the order in which they run; none where the storage is read as it is. */
  readonly plans: readonly Explanation[]
  /** All of it as printable lines, without a trailing line break. */
  readonly text: string
}

/**
 * Says how a read of the whole tensor would come by its bytes, without reading any: for each plan the kernel, the ways in
 * which elements are moved, the loops, the parts for threads and the kind of stores, each with its reason.
 *
 * @throws TileworkError ERR_ARGUMENT unless it is a dense tensor; what making a plan throws, for example ERR_OVERFLOW
 */
export function explain(tensor: DenseTensor): TensorExplanation {
  const steps: Step[] = []
  // A chain of recipes has a limit, and each is one plan.
  const open: StoredTensor[] = [asStored(checkOnlyDense(tensor, 'explain', 'are computed'))]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    steps.push(stepOf(next))
    if (next instanceof FusedTensor) open.push(next.recipe.base)
    if (next instanceof JoinedTensor) for (const part of next.recipe.parts) open.push(part)
  }
  // Bases run first.
  steps.reverse()
  return {
    plans: steps.flatMap(({ plan }) => (plan === undefined ? [] : [plan])),
    text: steps.map(({ text }) => text).join('\n'),
  }
}

interface Step {
  readonly text: string
  readonly plan?: Explanation
}

function stepOf(tensor: StoredTensor): Step {
  const { name, dtype, shape, storage } = tensor
  const what = `"${name}" ${dtype} [${shape.join(',')}]`
  if (tensor instanceof FusedTensor) {
    const plan = tensor.explain()
    const { device } = tensor.recipe
    return { plan, text: `${what}: ${plan.text}${device === undefined ? '' : `\n  device  ${device}`}` }
  }
  if (tensor instanceof JoinedTensor) {
    const { parts, axis } = tensor.recipe
    return { text: `${what}: ${parts.length} tensors joined along axis ${axis}, each written to its place` }
  }
  return { text: `${what}: ${storage.byteLength} bytes in ${storage.layout}, read as they are stored` }
}
