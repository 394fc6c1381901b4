/**
 * Overlap check of external data. Tensors may share a whole range, as tied weights do; a partial overlap means a wrong
 * offset or length.
 */
import type { ByteSource } from '../../../bytes/source.js'
import type { Report } from '../../report.js'
import { quote } from '../schema.js'

/** Numbers per range: file, start, end, byte offset of the location in the model. */
const NUMBERS = 4

/** Ranges and declared digests of external tensors, stored as numbers because a file may have millions. */
export class ExternalRanges {
  readonly #numbers: number[] = []
  readonly #paths: string[] = []
  /** The distinct digests that are declared for each file. */
  readonly digests = new Map<string, DeclaredDigest>()

  get length(): number {
    return this.#paths.length
  }

  /** @param path - path of the tensor */
  add(path: string, file: number, start: number, end: number, offset: number): void {
    this.#numbers.push(file, start, end, offset)
    this.#paths.push(path)
  }

  addDigest(digest: DeclaredDigest): void {
    const key = `${digest.file} ${digest.value}`
    if (!this.digests.has(key)) this.digests.set(key, digest)
  }

  at(index: number): ExternalRange {
    const at = index * NUMBERS
    const [file, start, end, offset] = this.#numbers.slice(at, at + NUMBERS) as [
      number,
      number,
      number,
      number,
    ]
    return { path: this.#paths[index]!, file, start, end, offset }
  }

  /** Indices of the non-empty ranges, sorted by file, start and end. */
  sorted(): Uint32Array {
    const numbers = this.#numbers
    const order = Uint32Array.from(this.#paths.keys()).filter(
      (index) => numbers[index * NUMBERS + 2]! > numbers[index * NUMBERS + 1]!,
    )
    return order.sort((one, other) => {
      for (let number = 0; number < NUMBERS - 1; number++) {
        const difference = numbers[one * NUMBERS + number]! - numbers[other * NUMBERS + number]!
        if (difference !== 0) return difference
      }
      return one - other
    })
  }
}

/** The range of one tensor. */
interface ExternalRange {
  /** Path of the tensor. */
  readonly path: string
  /** Number of the file. */
  readonly file: number
  readonly start: number
  readonly end: number
  /** Byte offset of the location in the model. */
  readonly offset: number
}

/** A digest that a tensor declares for its file. */
interface DeclaredDigest {
  readonly file: number
  readonly value: string
  /** Path of the tensor. */
  readonly path: string
  /** Byte offset of the value in the model. */
  readonly offset: number
}

/** Reports partial overlaps. @param sources - files by number */
export function checkExternalRanges(
  ranges: ExternalRanges,
  sources: readonly ByteSource[],
  report: Report,
): void {
  // Ranges are sorted by start, so comparing with the earlier range that ends last finds an overlap.
  let farthest: ExternalRange | undefined
  for (const index of ranges.sorted()) {
    const range = ranges.at(index)
    const before = farthest?.file === range.file ? farthest : undefined
    const isSame = before?.start === range.start && before.end === range.end
    if (before && !isSame && range.start < before.end) {
      const file = quote(sources[range.file]!.label ?? 'a file')
      const message = `Bytes ${range.start} to ${Math.min(range.end, before.end)} of ${file} belong to both ${before.path} and ${range.path}, whose ranges differ.`
      const place = { path: `${range.path}.external_data`, offset: range.offset }
      report.deviation('ERR_OVERLAP', message, place)
    }
    if (!before || range.end > before.end) farthest = range
  }
}
