/** Which tensors `inspect` lists, and in which order: `--filter`, `--sort`, `--limit`. */
import { summarizeTensor, type Tensor, type TensorSummary, TileworkError } from '../../index.js'

export const SORT_KEYS = ['name', 'bytes', 'dtype'] as const

export interface SelectionOptions {
  readonly filter?: string
  readonly sort?: (typeof SORT_KEYS)[number]
  readonly limit?: number
}

/** A tensor of the file and its place there, which `--tensor '#INDEX'` takes. */
export interface Listed {
  readonly index: number
  readonly summary: TensorSummary & { readonly index: number }
}

export interface Selection {
  /** Every tensor of the file, in file order. */
  readonly all: readonly Listed[]
  /** Those that match the filter. */
  readonly matching: readonly Listed[]
  /** Those of them that are listed, in order. */
  readonly listed: readonly Listed[]
}

export function selectListed(
  tensors: Iterable<Tensor>,
  { filter, sort, limit }: SelectionOptions,
): Selection {
  const all: Listed[] = []
  for (const tensor of tensors) {
    const index = all.length
    all.push({ index, summary: { index, ...summarizeTensor(tensor) } })
  }
  const matches = filter === undefined ? undefined : nameFilter(filter)
  const matching = matches ? all.filter(({ summary }) => matches(summary.name)) : all
  const sorted = sort === undefined ? matching : sortedBy(sort, matching)
  return { all, matching, listed: limit === undefined ? sorted : sorted.slice(0, limit) }
}

/** With `*` or `?` a pattern for the whole name, of which `*` matches any characters; otherwise a part of the name. */
function nameFilter(pattern: string): (name: string) => boolean {
  if (!/[*?]/.test(pattern)) return (name) => name.includes(pattern)
  const source = pattern
    .replace(/[\\^$.|+()[\]{}]/g, '\\$&')
    // Runs of stars are one: several would make a failing match exponential.
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.')
  const whole = new RegExp(`^${source}$`, 'su')
  return (name) => whole.test(name)
}

/** Longest run of digits in a key: layer.2 sorts before layer.10. */
const DIGITS = 12

function sortedBy(sort: (typeof SORT_KEYS)[number], tensors: readonly Listed[]): Listed[] {
  const keyed = tensors.map((listed) => ({ listed, key: nameKey(listed.summary.name) }))
  keyed.sort((one, other) => compare(sort, one, other))
  return keyed.map(({ listed }) => listed)
}

interface Keyed {
  readonly listed: Listed
  readonly key: string
}

/** Largest first by bytes; names decide between equals, then the order of the file. */
function compare(sort: (typeof SORT_KEYS)[number], one: Keyed, other: Keyed): number {
  const [a, b] = [one.listed.summary, other.listed.summary]
  if (sort === 'bytes' && a.byteLength !== b.byteLength) return (b.byteLength ?? -1) - (a.byteLength ?? -1)
  if (sort === 'dtype' && a.dtype !== b.dtype) return a.dtype < b.dtype ? -1 : 1
  if (one.key !== other.key) return one.key < other.key ? -1 : 1
  return one.listed.index - other.listed.index
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
