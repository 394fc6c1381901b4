/** Which inputs and outputs of two models belong together. */
import { TileworkError } from '../../errors.js'
import type { Graph, OnnxModel, ValueType } from '../../models/onnx/index.js'
import { valueText } from '../../value_text.js'

/** A value of a model. */
export interface End {
  readonly name: string
  readonly type: ValueType
}

/** What an input of one of the models gets; at least one side is there. */
export interface InputPair {
  /** Absent for an input of `b` that is a value inside `a`. */
  readonly a?: End
  readonly b?: End
  /** The value inside `a` from which the input of `b` is taken. */
  readonly inner?: End
}

/** An output of `b`, and the output or value of `a` that it should equal. One side may be missing. */
export interface OutputPair {
  readonly a?: End
  readonly b?: End
}

export interface Ends {
  readonly inputs: readonly InputPair[]
  readonly outputs: readonly OutputPair[]
}

export interface EndOptions {
  /** Names in `a` with those in `b`. */
  readonly renamed: ReadonlyMap<string, string>
  readonly isPart: boolean
  /** Names of inputs for which the caller has values: those with defaults need one only then. */
  readonly given: ReadonlySet<string>
}

/**
 * Inputs and outputs belong together by name. Those that are left belong together by position, where both models have equally
 * many; of a part of a model they are values of that name inside it.
 *
 * @throws TileworkError ERR_ARGUMENT for an input of `b` that nothing of `a` gives
 */
export function matchEnds(a: OnnxModel, b: OnnxModel, options: EndOptions): Ends {
  const back = new Map([...options.renamed].map(([from, to]) => [to, from]))
  const innerOf = (name: string): End | undefined => {
    const own = back.get(name) ?? name
    return options.isPart && a.graph.value(own) ? { name: own, type: a.graph.typeOf(own) } : undefined
  }
  const [inputsOfA, inputsOfB] = [neededInputs(a.graph, options.given), neededInputs(b.graph, options.given)]
  const inputs = paired(inputsOfA, inputsOfB, back, options.isPart).map((pair): InputPair => {
    if (pair.a || !pair.b) return pair
    const inner = innerOf(pair.b.name)
    if (inner) return { b: pair.b, inner }
    throw new TileworkError('ERR_ARGUMENT', `a has no input ${valueText(pair.b.name)}, which b needs.`)
  })
  const outputs = paired(a.graph.outputs, b.graph.outputs, back, options.isPart).flatMap((pair) => {
    if (!pair.b) return options.isPart ? [] : [pair]
    const own = pair.a ?? innerOf(pair.b.name)
    return [{ b: pair.b, ...(own && { a: own }) }]
  })
  return { inputs, outputs }
}

/** Without inputs that have a default, of which initializers of an early IR version are the only value. */
function neededInputs(graph: Graph, given: ReadonlySet<string>): readonly End[] {
  return graph.inputs.filter(({ name }) => !graph.hasInitializer(name) || given.has(name))
}

/** Pairs in the order of `b`; then those of `a` that are left. */
function paired(
  a: readonly End[],
  b: readonly End[],
  back: ReadonlyMap<string, string>,
  isPart: boolean,
): { readonly a?: End; readonly b?: End }[] {
  const left = new Map(a.map((end) => [end.name, end]))
  const byName = b.map(({ name }) => {
    const own = left.get(back.get(name) ?? name)
    if (own) left.delete(own.name)
    return own
  })
  const hasPositions = a.length === b.length && !isPart
  const pairs = b.map((end, at) => {
    const other = byName[at] ?? (hasPositions ? left.get(a[at]!.name) : undefined)
    if (other) left.delete(other.name)
    return { b: end, ...(other && { a: other }) }
  })
  return [...pairs, ...[...left.values()].map((end) => ({ a: end }))]
}
