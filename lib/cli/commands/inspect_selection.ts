/**
 * Which tensors `inspect` lists, and in which order: `--filter`, `--sort`, `--limit`. A selection stores indices, not summaries:
 * the summaries of a million small tensors would take many times the size of the file.
 */
import { type AnyTensor, type TensorList, TileworkError } from '../../index.js'
import { summarizeTensor } from '../../internal.js'
import { type FileSummary, type Listed, SummaryOfFile } from './inspect_summary.js'

export const SORT_KEYS = ['name', 'bytes', 'dtype'] as const

export interface SelectionOptions {
  readonly filter?: string
  readonly sort?: (typeof SORT_KEYS)[number]
  readonly limit?: number
}

export interface Selection {
  /** Summary of every tensor of the file. */
  readonly all: FileSummary
  /** Summary of the tensors that match the filter. */
  readonly matching: FileSummary
  /** The listed tensors in order, computed again by each iteration. */
  readonly listed: ListedTensors
}

export function selectListed(tensors: TensorList, { filter, sort, limit }: SelectionOptions): Selection {
  const all = new SummaryOfFile()
  const matching = filter === undefined ? all : new SummaryOfFile()
  const matches = filter === undefined ? () => true : nameFilter(filter)
  const positions = new Uint32Array(tensors.length)
  const keys = sort === undefined ? undefined : new SortKeys(sort, tensors.length)
  let count = 0
  let index = 0
  for (const tensor of tensors) {
    const listed = listedTensor(tensor, index)
    all.add(listed)
    if (matches(tensor.name)) {
      if (matching !== all) matching.add(listed)
      positions[count++] = index
      keys?.add(listed)
    }
    index++
  }
  const sorted = positions.subarray(0, count)
  if (keys) sorted.sort((one, other) => keys.compare(one, other))
  const listed = new ListedTensors(tensors, limit === undefined ? sorted : sorted.subarray(0, limit))
  return { all: all.finish(), matching: matching.finish(), listed }
}

function listedTensor(tensor: AnyTensor, index: number): Listed {
  return { index, ...summarizeTensor(tensor) }
}

/** A selection of tensors, summarized one by one. */
export class ListedTensors implements Iterable<Listed> {
  readonly #tensors: TensorList
  readonly #positions: Uint32Array

  constructor(tensors: TensorList, positions: Uint32Array) {
    this.#tensors = tensors
    this.#positions = positions
  }

  get length(): number {
    return this.#positions.length
  }

  *[Symbol.iterator](): Iterator<Listed> {
    for (const position of this.#positions) yield listedTensor(this.#tensors.at(position)!, position)
  }
}

/** A text with `*` or `?` is a pattern for the whole name (`*` matches any characters); any other text is a part of the name. */
function nameFilter(pattern: string): (name: string) => boolean {
  if (!/[*?]/.test(pattern)) return (name) => name.includes(pattern)
  const source = pattern
    .replace(/[\\^$.|+()[\]{}]/g, '\\$&')
    // Consecutive stars are merged: several would make a failing match exponential.
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.')
  const whole = new RegExp(`^${source}$`, 'su')
  return (name) => whole.test(name)
}

/** Digits to which numbers in names are padded, so that layer.2 sorts before layer.10. */
const DIGITS = 12

/** Sort keys of the tensors. By bytes the largest come first; ties are resolved by name, then by file order. */
class SortKeys {
  readonly #sort: (typeof SORT_KEYS)[number]
  /** By position in the file. */
  readonly #names: string[]
  readonly #dtypes: string[]
  readonly #byteLengths: Float64Array

  constructor(sort: (typeof SORT_KEYS)[number], length: number) {
    this.#sort = sort
    this.#names = new Array<string>(length)
    this.#dtypes = new Array<string>(sort === 'dtype' ? length : 0)
    this.#byteLengths = new Float64Array(sort === 'bytes' ? length : 0)
  }

  add({ index, name, dtype, byteLength }: Listed): void {
    this.#names[index] = nameKey(name)
    if (this.#sort === 'dtype') this.#dtypes[index] = dtype
    if (this.#sort === 'bytes') this.#byteLengths[index] = byteLength ?? -1
  }

  compare(one: number, other: number): number {
    if (this.#sort === 'bytes') {
      const difference = this.#byteLengths[other]! - this.#byteLengths[one]!
      if (difference !== 0) return difference
    }
    if (this.#sort === 'dtype') {
      const [a, b] = [this.#dtypes[one]!, this.#dtypes[other]!]
      if (a !== b) return a < b ? -1 : 1
    }
    const [a, b] = [this.#names[one]!, this.#names[other]!]
    if (a !== b) return a < b ? -1 : 1
    return one - other
  }
}

function nameKey(name: string): string {
  return name.replace(/\d+/g, (digits) => digits.padStart(DIGITS, '0'))
}

/** @throws TileworkError ERR_ARGUMENT */
export function parseLimit(text: string): number {
  const limit = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(limit)) return limit
  throw new TileworkError('ERR_ARGUMENT', `--limit is "${text}"; it must be a whole number from 0 on.`)
}
