/** The shapes of inputs on which two models run: fixed dimensions, sizes that the caller gives, and small defaults. */
import { TileworkError } from '../../errors.js'
import type { ValueType } from '../../models/onnx/index.js'
import type { AnyTensor } from '../../tensor/tensor.js'
import { valueText } from '../../value_text.js'
import type { End, InputPair } from './ends.js'

/** Sizes of dimensions that nothing fixes. */
export interface DefaultSizes {
  /** Of the first axis, which is the batch in most models. */
  readonly first: number
  readonly other: number
}

/**
 * Default sizes in the order in which they are tried until the first model runs. A batch of 2 finds mistakes that one of 1 hides; 8
 * is enough for sequences; the larger ones are for images, which lose half of each edge several times.
 */
export const DEFAULT_SIZES: readonly DefaultSizes[] = [
  { first: 2, other: 8 },
  { first: 1, other: 8 },
  { first: 1, other: 32 },
  { first: 1, other: 64 },
  { first: 1, other: 224 },
]

/** Most elements of all generated inputs, 1 GiB of float32: the numbers of a shape are those of a file (CWE-789). */
const MAX_INPUT_ELEMENTS = 2 ** 28

/** Names of dimensions, with their sizes. */
export class InputSizes {
  readonly #sizes: Map<string, number>
  #elements = 0
  /** Whether a default was used, so that another one may help. */
  usesDefaults = false

  /** @param dims - sizes that the caller gives, by name */
  constructor(
    readonly dims: ReadonlyMap<string, number>,
    readonly defaults: DefaultSizes,
  ) {
    this.#sizes = new Map(dims)
  }

  /**
   * Notes the sizes of names that one of the models, or a value of the caller, fixes.
   *
   * @throws TileworkError ERR_UNSUPPORTED where the models fix different shapes; ERR_ARGUMENT where the caller gives another size
   */
  learn({ a, b }: InputPair, given: AnyTensor | undefined): void {
    const shapes = [shapeOf(a?.type), shapeOf(b?.type)].filter((shape) => shape !== undefined)
    const [one, other] = shapes
    if (one && other && !canBeEqual(one, other)) {
      throw new TileworkError(
        'ERR_UNSUPPORTED',
        `Input ${valueText(b!.name)} is [${textOf(one)}] in a and [${textOf(other)}] in b: they take no equal inputs.`,
      )
    }
    for (const shape of shapes) {
      const fixed = given?.shape ?? (shape === one ? other : one)
      for (const [axis, dim] of shape.entries()) {
        const size = fixed?.[axis]
        if (isName(dim) && typeof size === 'number') this.#fix(dim, size, b ?? a!)
      }
    }
  }

  #fix(dim: string, size: number, { name }: End): void {
    const own = this.dims.get(dim)
    if (own !== undefined && own !== size) {
      throw new TileworkError(
        'ERR_ARGUMENT',
        `dims has ${own} for ${valueText(dim)}, which is ${size} in input ${valueText(name)}.`,
      )
    }
    if (!this.#sizes.has(dim)) this.#sizes.set(dim, size)
  }

  /** @throws TileworkError ERR_UNSUPPORTED for an input of unknown rank; ERR_LIMIT */
  shapeOf({ a, b }: InputPair): readonly number[] {
    const [one, other] = [shapeOf(a?.type), shapeOf(b?.type)]
    const name = valueText((a ?? b)!.name)
    const shape = one ?? other
    if (!shape) {
      throw new TileworkError('ERR_UNSUPPORTED', `Input ${name} declares no shape; give its values.`)
    }
    const found = shape.map((dim, axis) => this.#sizeOf(dim, other?.[axis] ?? null, axis))
    this.#elements += found.reduce((product, size) => product * size, 1)
    if (this.#elements > MAX_INPUT_ELEMENTS) {
      throw new TileworkError(
        'ERR_LIMIT',
        `Input ${name} has the shape [${found.join(', ')}]; more than ${MAX_INPUT_ELEMENTS} elements are not generated.`,
      )
    }
    return found
  }

  #sizeOf(dim: Dim, other: Dim, axis: number): number {
    const fixed = [dim, other].find((each) => typeof each === 'number')
    if (fixed !== undefined) return fixed as number
    for (const each of [dim, other]) {
      const size = isName(each) ? this.#named(each) : undefined
      if (size !== undefined) return size
    }
    this.usesDefaults = true
    const size = axis === 0 ? this.defaults.first : this.defaults.other
    for (const each of [dim, other]) if (isName(each)) this.#sizes.set(each, size)
    return size
  }

  /** The size of a name, or of a sum of names and numbers such as `past_sequence_length + 1`. */
  #named(name: string): number | undefined {
    const known = this.#sizes.get(name)
    if (known !== undefined) return known
    const terms = (TOTALS.get(name) ?? name).split('+').map((term) => term.trim())
    if (terms.length === 1) return undefined
    const sizes = terms.map((term) => (/^\d{1,9}$/.test(term) ? Number(term) : this.#lengthOf(term)))
    return sizes.reduce((sum, size) => sum + size, 0)
  }

  #lengthOf(name: string): number {
    const size = this.#sizes.get(name) ?? this.defaults.other
    if (!this.#sizes.has(name)) this.usesDefaults = true
    this.#sizes.set(name, size)
    return size
  }
}

/** Names that exporters of language models give to sums of two other dimensions. */
const TOTALS: ReadonlyMap<string, string> = new Map([
  ['total_sequence_length', 'past_sequence_length + sequence_length'],
])

/** A size, a name, or null where nothing is known. */
type Dim = number | string | null

function isName(dim: Dim): dim is string {
  return typeof dim === 'string'
}

/** Negative sizes and empty names say nothing. */
function shapeOf(type: ValueType | undefined): readonly Dim[] | undefined {
  if (type?.kind !== 'tensor') return undefined
  return type.shape?.map((dim) => {
    if (typeof dim === 'string') return dim === '' ? null : dim
    return dim === null || dim < 0 ? null : Number(dim)
  })
}

function canBeEqual(one: readonly Dim[], other: readonly Dim[]): boolean {
  return (
    one.length === other.length &&
    one.every(
      (dim, axis) => typeof dim !== 'number' || typeof other[axis] !== 'number' || dim === other[axis],
    )
  )
}

function textOf(shape: readonly Dim[]): string {
  return shape.map((dim) => dim ?? '?').join(', ')
}
