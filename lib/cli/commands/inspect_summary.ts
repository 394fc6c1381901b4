/** Summary of a file: elements and bytes by dtype, and its largest tensors. */
import type { TensorSummary } from '../../index.js'
import { formatBytes, formatNumber } from '../text/byte_count.js'
import { printableName } from '../text/printable.js'

/** A tensor of the file and its place there, which `--tensor '#INDEX'` takes. */
export interface Listed extends TensorSummary {
  readonly index: number
}

interface Totals {
  tensors: number
  /** Number of elements; for sparse tensors, of entries. */
  parameters: number
  byteLength: number
}

/** The `summary` of `tilework inspect --json`. Fields may be added, never changed. */
export interface FileSummary extends Readonly<Totals> {
  /** Totals by dtype, most bytes first. */
  readonly dtypes: Readonly<Record<string, Readonly<Totals>>>
  /** The largest tensors, largest first. */
  readonly largest: readonly {
    readonly index: number
    readonly name: string
    readonly byteLength: number
  }[]
}

const LARGEST = 3

/** Accumulates the summary of a file tensor by tensor. */
export class SummaryOfFile {
  readonly #totals = emptyTotals()
  readonly #dtypes = new Map<string, Totals>()
  readonly #largest: Listed[] = []

  add(listed: Listed): void {
    let ofDtype = this.#dtypes.get(listed.dtype)
    if (ofDtype === undefined) {
      ofDtype = emptyTotals()
      this.#dtypes.set(listed.dtype, ofDtype)
    }
    add(this.#totals, listed)
    add(ofDtype, listed)
    keepLargest(this.#largest, listed)
  }

  finish(): FileSummary {
    const dtypes = [...this.#dtypes].sort(([, one], [, other]) => other.byteLength - one.byteLength)
    return {
      ...this.#totals,
      dtypes: Object.fromEntries(dtypes),
      largest: this.#largest.map(({ index, name, byteLength }) => ({
        index,
        name,
        byteLength: byteLength ?? 0,
      })),
    }
  }
}

function emptyTotals(): Totals {
  return { tensors: 0, parameters: 0, byteLength: 0 }
}

function add(totals: Totals, { shape, entryCount, byteLength }: TensorSummary): void {
  totals.tensors += 1
  totals.parameters += entryCount ?? shape.reduce((product, extent) => product * extent, 1)
  totals.byteLength += byteLength ?? 0
}

function keepLargest(largest: Listed[], listed: Listed): void {
  const bytesOf = ({ byteLength }: Listed): number => byteLength ?? 0
  if (bytesOf(listed) === 0) return
  if (largest.length === LARGEST && bytesOf(largest[LARGEST - 1]!) >= bytesOf(listed)) return
  const at = largest.findIndex((other) => bytesOf(other) < bytesOf(listed))
  largest.splice(at === -1 ? largest.length : at, 0, listed)
  largest.length = Math.min(largest.length, LARGEST)
}

/** From this number of tensors on, the largest ones are listed separately, because the table does not show them at a glance. */
const MANY_TENSORS = 6

/** @param noun - what is counted: parameters, elements, … */
export function summaryLines(summary: FileSummary, noun: string): string[] {
  if (summary.tensors === 0) return []
  const { byteLength, largest } = summary
  const dtypes = Object.entries(summary.dtypes)
  const types = dtypes.map(([dtype, part]) =>
    dtypes.length === 1
      ? dtype
      : `${dtype} ${formatNumber(part.parameters)} in ${formatBytes(part.byteLength)}`,
  )
  const lines = [
    `${noun}: ${formatNumber(summary.parameters)} in ${formatBytes(byteLength)}; ${types.join(', ')}`,
  ]
  if (summary.tensors >= MANY_TENSORS && largest.length > 0) {
    const names = largest.map(({ name, byteLength: bytes }) => {
      const share = Math.round((100 * bytes) / byteLength)
      return `${printableName(name)} ${formatBytes(bytes)} (${share} %)`
    })
    lines.push(`largest: ${names.join(', ')}`)
  }
  return lines
}
