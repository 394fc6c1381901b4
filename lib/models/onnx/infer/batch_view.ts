/** What the rules that follow a batch read: shapes before and after a change of input shapes, and lists that no input changes. */
import { usedNames } from '../document/node_names.js'
import { orderedNodes } from '../document/node_order.js'
import { isStandard, mainScope, type Scope } from '../document/scope.js'
import type { Graph, Node, ValueType } from '../document/types.js'
import {
  type Dim,
  type Dims,
  dimsOf,
  isKnown,
  productOf,
  productOfAll,
  quotientOf,
} from '../evaluate/dims.js'
import type { Inference } from './infer.js'

/** A graph with its nodes in topological order. */
interface Place {
  readonly scope: Scope
  readonly nodes: readonly Node[]
}

/** The first dimension of the inputs before and after the change. */
export interface BatchChange {
  readonly from: number
  readonly to: number
}

/**
 * Elements of the dimension with the batch that stand outside of the batch: 4 where a Reshape made 4 rows of a batch into one
 * dimension. Null where that is not known.
 */
type OuterCount = Dim

/** The model between two edits. */
export class BatchView {
  readonly places: readonly Place[]
  readonly change: BatchChange
  readonly #before: Inference
  readonly #after: Inference
  /** Values that depend on no input, by graph. */
  readonly #fixed = new Map<Graph, Set<string>>()

  /** Values whose batch is not the outermost part of its dimension, by graph. */
  readonly #outer = new Map<Graph, Map<string, OuterCount>>()

  constructor(
    model: Parameters<typeof mainScope>[0],
    change: BatchChange,
    before: Inference,
    after: Inference,
  ) {
    this.change = change
    this.#before = before
    this.#after = after
    this.places = [...mainScope(model).all()].map((scope) => ({
      scope,
      nodes: orderedNodes(scope.graph.nodes),
    }))
    for (const place of this.places) this.#collectFixed(place)
    for (const place of this.places) this.#locateBatch(place)
  }

  /** Follows the place of the batch inside its dimension, which only Reshape changes. */
  #locateBatch({ scope, nodes }: Place): void {
    const outer = new Map<string, OuterCount>()
    this.#outer.set(scope.graph, outer)
    for (const node of nodes) {
      const site = new BatchSite(this, scope, node)
      const isReshape = isStandard(node, 'Reshape')
      const found = isReshape ? placeInTarget(site)?.outer : passedOn(site)
      if (found !== 1 && found !== undefined) for (const name of node.outputs) outer.set(name, found)
    }
  }

  outerCount(scope: Scope, name = ''): OuterCount {
    const owner = scope.ownerOf(name)
    const found = owner && this.#outer.get(owner.graph)?.get(name)
    return found === undefined ? 1 : found
  }

  #collectFixed({ scope, nodes }: Place): void {
    const fixed = new Set<string>()
    this.#fixed.set(scope.graph, fixed)
    for (const node of nodes) {
      if ([...usedNames(node)].some((name) => name !== '' && !this.isFixed(scope, name))) continue
      for (const name of node.outputs) fixed.add(name)
    }
  }

  /** True for a value that no input changes. */
  isFixed(scope: Scope, name: string): boolean {
    const owner = scope.ownerOf(name)
    if (!owner) return false
    return this.#fixed.get(owner.graph)?.has(name) || owner.constant(name) !== undefined
  }

  /** Elements of a short list of integers that no input changes. */
  fixedList(scope: Scope, name: string): readonly number[] | undefined {
    const owner = scope.ownerOf(name)
    if (!owner || !this.isFixed(scope, name)) return undefined
    const values = this.#after.known.get(owner.graph)?.get(name)?.value?.list
    return values?.every(isKnown) ? values : undefined
  }

  dimsBefore(scope: Scope, name = ''): Dims | undefined {
    return shapeIn(this.#before, scope, name)
  }

  dimsAfter(scope: Scope, name = ''): Dims | undefined {
    return shapeIn(this.#after, scope, name)
  }
}

function shapeIn({ types }: Inference, scope: Scope, name: string): Dims | undefined {
  const owner = scope.ownerOf(name)
  return owner && shapeOf(types.get(owner.graph)?.get(name))
}

export function shapeOf(type: ValueType | undefined): Dims | undefined {
  return type?.kind === 'tensor' ? dimsOf(type.shape) : undefined
}

/** A node with the shapes around it. */
export class BatchSite {
  readonly view: BatchView
  readonly scope: Scope
  readonly node: Node
  /** Read once: a node may have a hundred thousand. */
  readonly inputs: readonly string[]

  constructor(view: BatchView, scope: Scope, node: Node) {
    this.view = view
    this.scope = scope
    this.node = node
    this.inputs = node.inputs
  }

  before(input: number): Dims | undefined {
    return this.view.dimsBefore(this.scope, this.inputs[input])
  }

  after(input: number): Dims | undefined {
    return this.view.dimsAfter(this.scope, this.inputs[input])
  }

  get outputBefore(): Dims | undefined {
    return this.view.dimsBefore(this.scope, this.node.outputs[0])
  }

  outerCount(input: number): OuterCount {
    return this.view.outerCount(this.scope, this.inputs[input])
  }

  /** Axes of an input whose number of elements changed to another number. */
  changedAxes(input: number): readonly number[] {
    const [before, after] = [this.before(input), this.after(input)]
    if (!before || before.length !== after?.length) return []
    return before.flatMap((dim, axis) =>
      isKnown(dim) && isKnown(after[axis]) && dim !== after[axis] ? [axis] : [],
    )
  }

  /** The elements of an input that is a list of integers which no input of the model changes; of an attribute in old versions. */
  list(input: number, attribute?: string): readonly number[] | undefined {
    const given = attribute === undefined ? undefined : this.node.attribute(attribute)?.value
    if (Array.isArray(given)) return (given as readonly (number | bigint)[]).map(Number)
    const name = this.inputs[input] ?? ''
    return name === '' ? undefined : this.view.fixedList(this.scope, name)
  }

  isFixed(input: number): boolean {
    const name = this.inputs[input] ?? ''
    return name !== '' && this.view.isFixed(this.scope, name)
  }

  int(attribute: string, absent: number): number {
    const value = this.node.attribute(attribute)?.value
    return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : absent
  }
}

/** Where the batch is in the result of a Reshape: in which dimension, and behind how many of its elements. */
interface BatchPlace {
  readonly axis: number
  readonly outer: OuterCount
}

/**
 * Reshape keeps the order of elements, so the batch stays between the same outer and inner elements. Undefined where it is not
 * known, or no dimension has it as a factor.
 */
export function placeInTarget(site: BatchSite): BatchPlace | undefined {
  const [axis, ...others] = site.changedAxes(0)
  const [before, old] = [site.before(0), site.outputBefore]
  if (axis === undefined || others.length > 0 || !before || !old) return undefined
  const outside = productOf(productOfAll(before.slice(0, axis)), site.outerCount(0))
  if (outside === null) return undefined
  const { from } = site.view.change
  let start: Dim = 1
  for (const [at, dim] of old.entries()) {
    const end: Dim = productOf(start, dim)
    const contains = isKnown(start) && isKnown(outside) && isKnown(end) && start < outside && end > outside
    if ((start === outside || contains) && quotientOf(dim, from) !== null) {
      const isEnd = start === outside && at > 0 && endsBefore(site, old, at, axis)
      const own = isEnd ? at - 1 : at
      return { axis: own, outer: isEnd ? old[own]! : quotientOf(outside, start) }
    }
    start = end
  }
  return undefined
}

/**
 * Between two dimensions a batch of 1 may belong to the end of the first or to the start of the second: to the first where the
 * second and all behind it stay as they are, or where the first is the one that the target leaves open.
 */
function endsBefore(site: BatchSite, old: Dims, at: number, axis: number): boolean {
  if (site.view.change.from !== 1 || old[at] === 1) return false
  const inner = site.before(0)!.slice(axis + 1)
  const isSame = inner.length === old.length - at && inner.every((dim, index) => dim === old[at + index])
  return isSame || site.list(1, 'shape')?.[at - 1] === -1
}

/** A node other than Reshape moves the dimension with the batch as a whole, or its place is not known any more. */
function passedOn(site: BatchSite): OuterCount | undefined {
  const { view, scope } = site
  const inputs = site.inputs.flatMap((name, input) => {
    const outer = view.outerCount(scope, name)
    return outer === 1 ? [] : [{ outer, input }]
  })
  const [first] = inputs
  if (!first) return undefined
  const axis = site.changedAxes(first.input)[0]
  const dim = axis === undefined ? undefined : site.before(first.input)![axis]
  const isWhole =
    site.outputBefore?.includes(dim ?? null) && inputs.every(({ outer }) => outer === first.outer)
  return isWhole ? first.outer : null
}
