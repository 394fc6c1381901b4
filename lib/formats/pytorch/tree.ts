/**
 * Names what a pickle holds: each tensor and each plain value by its path through dicts, lists and attributes, in their order.
 * The walk has a stack of its own, and bounds for depth and for visits: a file may hold a list in itself.
 */
import { FileFault } from '../file_fault.js'
import type { HeapBudget } from './heap_budget.js'
import {
  PickleDict,
  PickleList,
  PickleObject,
  PickleTuple,
  type PickleValue,
  TensorValue,
} from './pickle/values.js'
import { keyText } from './plain_values.js'
import { MAX_SHARED_VISITS } from './schema.js'

/** A tensor or a plain value, and where it is. */
export interface Leaf<Value extends PickleValue = PickleValue> {
  /** The keys of its path, joined by dots. */
  readonly name: string
  /** The path as JSON, which is unique. */
  path(): string
  readonly value: Value
}

export interface TreeBounds {
  readonly heap: HeapBudget
  readonly maxDepth: number
  /** Bytes of the pickle: each visit without sharing has one of its own. */
  readonly pickleBytes: number
  /** File offset of the pickle, for errors. */
  readonly offset: number
}

interface Leaves {
  readonly tensors: Leaf<TensorValue>[]
  readonly values: Leaf[]
}

/** A key and those above it. */
interface Path {
  readonly key: string | number
  readonly parent: Path | undefined
  /** Characters of the joined keys. */
  readonly length: number
}

/** A container whose items are visited. */
interface Frame {
  readonly items: Iterator<readonly [PickleValue, PickleValue]>
  readonly path: Path | undefined
  /** True below an object of TorchScript, whose plain attributes are settings of the program. */
  readonly isScript: boolean
}

/** Bytes of the JavaScript heap of a leaf and of a part of a path, without texts. */
const LEAF_BYTES = 160
const PATH_BYTES = 48
/** What a tensor takes beside its leaf once it is in the list of the file. */
const TENSOR_BYTES = 480

/** @throws FileFault ERR_LIMIT */
export function leavesOf(
  roots: readonly { readonly key?: string; readonly value: PickleValue }[],
  bounds: TreeBounds,
): Leaves {
  const found: Leaves = { tensors: [], values: [] }
  const walk = new TreeWalk(bounds, found)
  for (const { key, value } of roots) {
    walk.visit(value, key === undefined ? undefined : { key, parent: undefined, length: key.length }, false)
    walk.run()
  }
  return found
}

class TreeWalk {
  readonly #bounds: TreeBounds
  readonly #found: Leaves
  readonly #frames: Frame[] = []
  #visits = 0

  constructor(bounds: TreeBounds, found: Leaves) {
    this.#bounds = bounds
    this.#found = found
  }

  run(): void {
    for (let frame = this.#frames.at(-1); frame; frame = this.#frames.at(-1)) {
      const next = frame.items.next()
      if (next.done) {
        this.#frames.pop()
        continue
      }
      const [key, value] = next.value
      this.visit(value, this.#below(frame.path, key), frame.isScript)
    }
  }

  visit(value: PickleValue, path: Path | undefined, isScript: boolean): void {
    const { pickleBytes, maxDepth } = this.#bounds
    if (++this.#visits > pickleBytes + MAX_SHARED_VISITS) {
      throw this.#limit(`The values of the file are in more than ${this.#visits - 1} places`)
    }
    const items = itemsOf(value)
    if (!items) {
      this.#addLeaf(value, path, isScript)
      return
    }
    if (this.#frames.length >= maxDepth) throw this.#limit(`The values are nested more than ${maxDepth} deep`)
    this.#frames.push({ items, path, isScript: isScript || value instanceof PickleObject })
  }

  #below(parent: Path | undefined, key: PickleValue): Path {
    this.#bounds.heap.spend(PATH_BYTES, this.#bounds.offset)
    const text = typeof key === 'number' ? key : keyText(key)
    const own = String(text).length
    return { key: text, parent, length: parent ? parent.length + 1 + own : own }
  }

  #addLeaf(value: PickleValue, path: Path | undefined, isScript: boolean): void {
    const isTensor = value instanceof TensorValue
    if (isScript && !isTensor) return
    const own = LEAF_BYTES + (isTensor ? TENSOR_BYTES : 0)
    this.#bounds.heap.spend(own + 2 * (path?.length ?? 0), this.#bounds.offset)
    const leaf = { name: keysOf(path).join('.'), path: () => JSON.stringify(keysOf(path)), value }
    if (isTensor) this.#found.tensors.push(leaf as Leaf<TensorValue>)
    else this.#found.values.push(leaf)
  }

  #limit(message: string): FileFault {
    return new FileFault('ERR_LIMIT', `${message}.`, this.#bounds.offset)
  }
}

function keysOf(path: Path | undefined): (string | number)[] {
  const keys: (string | number)[] = []
  for (let part = path; part; part = part.parent) keys.push(part.key)
  return keys.reverse()
}

/** Undefined for a value without items. */
function itemsOf(value: PickleValue): Iterator<readonly [PickleValue, PickleValue]> | undefined {
  if (value instanceof PickleDict) return value.entries.entries()
  if (value instanceof PickleList || value instanceof PickleTuple) return value.items.entries()
  if (!(value instanceof PickleObject)) return undefined
  // A class without attributes, or one with a state of its own form.
  return itemsOfState(value.state)
}

function itemsOfState(state: PickleValue): Iterator<readonly [PickleValue, PickleValue]> {
  if (state instanceof PickleDict) return state.entries.entries()
  if (state instanceof PickleTuple || state instanceof PickleList) return state.items.entries()
  const own: [PickleValue, PickleValue][] = state instanceof TensorValue ? [['state', state]] : []
  return own.values()
}
