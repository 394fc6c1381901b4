/** Pairs the tensors of two files: by name, and renamed tensors by content. */
import type { TensorSequence } from '../../formats/format.js'
import { digest } from '../../tensor/digest.js'
import { isPlain } from '../../tensor/plain_storage.js'
import { reorder } from '../../tensor/reorder.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { codesNames } from './named_quantization.js'
import { packedForm } from './packed_weights.js'

export interface TensorPair {
  readonly a: AnyTensor
  readonly b: AnyTensor
}

export interface MatchedTensors {
  /** Pairs of equal names first, then the others, both in the order of the first file. */
  readonly pairs: readonly TensorPair[]
  readonly removed: readonly AnyTensor[]
  readonly added: readonly AnyTensor[]
}

/**
 * Pairs tensors of the same name; several of one name in their order. Of the rest, pairs tensors with their quantized form, then
 * tensors of equal dtype, shape and values, and finally the last tensor of each side if they have the same shape.
 */
export async function matchTensors(
  a: TensorSequence<AnyTensor>,
  b: TensorSequence<AnyTensor>,
  signal: AbortSignal | undefined,
): Promise<MatchedTensors> {
  const byName = new Map<string, AnyTensor[]>()
  for (const tensor of b) appendTo(byName, tensor.name, tensor)
  const pairs = new Map<AnyTensor, AnyTensor>()
  const removed: AnyTensor[] = []
  for (const tensor of a) {
    const other = byName.get(tensor.name)?.shift()
    if (other) pairs.set(tensor, other)
    else removed.push(tensor)
  }
  const added = [...byName.values()].flat()
  const left = { removed, added }
  const take = (found: ReadonlyMap<AnyTensor, AnyTensor>): void => {
    const taken = new Set(found.values())
    for (const [one, other] of found) pairs.set(one, other)
    left.removed = left.removed.filter((tensor) => !found.has(tensor))
    left.added = left.added.filter((tensor) => !taken.has(tensor))
  }
  take(matchCodes(left.removed, left.added))
  take(await matchContents(left.removed, left.added, signal))
  const [one, other] = [left.removed[0], left.added[0]]
  if (left.removed.length === 1 && left.added.length === 1 && one!.shape.join() === other!.shape.join()) {
    pairs.set(one!, other!)
    return { pairs: pairsOf(pairs), removed: [], added: [] }
  }
  return { pairs: pairsOf(pairs), ...left }
}

function pairsOf(pairs: ReadonlyMap<AnyTensor, AnyTensor>): TensorPair[] {
  return Array.from(pairs, ([a, b]) => ({ a, b }))
}

/** Pairs a tensor `w` of one file with its quantized form, such as `w_quantized`, of the other. */
function matchCodes(removed: readonly AnyTensor[], added: readonly AnyTensor[]): Map<AnyTensor, AnyTensor> {
  const matches = new Map<AnyTensor, AnyTensor>()
  for (const [weight, codes] of codesOf(removed, added)) matches.set(weight, codes)
  for (const [weight, codes] of codesOf(added, removed)) matches.set(codes, weight)
  return matches
}

function* codesOf(
  weights: readonly AnyTensor[],
  others: readonly AnyTensor[],
): Generator<[AnyTensor, AnyTensor]> {
  const byName = new Map(others.map((tensor) => [tensor.name, tensor]))
  for (const weight of weights) {
    const codes = codesNames(weight.name).flatMap((name) => byName.get(name) ?? [])
    const found = codes.find(
      (each) => each.shape.join() === weight.shape.join() || packedForm(each, weight) !== undefined,
    )
    if (found) yield [weight, found]
  }
}

async function matchContents(
  removed: readonly AnyTensor[],
  added: readonly AnyTensor[],
  signal: AbortSignal | undefined,
): Promise<Map<AnyTensor, AnyTensor>> {
  const formOf = ({ kind, dtype, shape }: AnyTensor): string => JSON.stringify([kind, dtype, shape])
  // A tensor is read only if the other file has a tensor of the same dtype and shape.
  const forms = new Set(removed.map(formOf))
  const byContent = new Map<string, AnyTensor[]>()
  const candidates = added.filter((tensor) => forms.has(formOf(tensor)))
  for (const tensor of candidates) {
    const content = await contentDigest(tensor, signal)
    if (content !== undefined) appendTo(byContent, formOf(tensor) + content, tensor)
  }
  const matches = new Map<AnyTensor, AnyTensor>()
  const addedForms = new Set(candidates.map(formOf))
  for (const tensor of removed) {
    if (!addedForms.has(formOf(tensor))) continue
    const content = await contentDigest(tensor, signal)
    const other = content === undefined ? undefined : byContent.get(formOf(tensor) + content)?.shift()
    if (other) matches.set(tensor, other)
  }
  return matches
}

function appendTo(lists: Map<string, AnyTensor[]>, key: string, tensor: AnyTensor): void {
  const list = lists.get(key)
  if (list) list.push(tensor)
  else lists.set(key, [tensor])
}

/** Digest of the values in row-major order; undefined for a tensor that cannot be identified by its values. */
async function contentDigest(
  tensor: AnyTensor,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  if (!tensor.hasData || tensor.kind === 'string' || tensor.size === 0) return undefined
  const options = signal ? { signal } : {}
  if (tensor.kind !== 'dense') return digest(tensor, options)
  return digest(isPlain(tensor.storage) ? tensor : reorder(tensor, 'row_major'), options)
}
