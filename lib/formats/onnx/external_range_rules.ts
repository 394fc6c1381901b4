/**
 * Ranges of external data: two tensors may share one range, as tied weights do, but ranges that share only some of their
 * bytes come from a wrong offset or length.
 */
import type { Report } from '../report.js'
import { quote } from './schema.js'
import type { ListedTensors } from './tensor_list.js'

interface Range {
  /** Index of the tensor. */
  readonly index: number
  readonly file: number
  readonly start: number
  readonly end: number
}

export function checkExternalRanges({ table, sources }: ListedTensors, report: Report): void {
  const ranges = Array.from({ length: table.length }, (_, index): Range => ({ index, ...table.at(index) }))
    .filter(({ index, file, start, end }) => table.at(index).kind === 'range' && file > 0 && end > start)
    .sort((one, other) => one.file - other.file || one.start - other.start || one.end - other.end)
  // Of all before it in the file the one that reaches farthest is the only one that a range has to be held against.
  let farthest: Range | undefined
  for (const range of ranges) {
    const before = farthest?.file === range.file ? farthest : undefined
    const isSame = before?.start === range.start && before.end === range.end
    if (before && !isSame && range.start < before.end) {
      const file = quote(sources[range.file]!.label ?? 'a file')
      const message = `Bytes ${range.start} to ${Math.min(range.end, before.end)} of ${file} are those of tensors ${before.index} and ${range.index}, whose ranges differ.`
      report.deviation('ERR_OVERLAP', message, { path: `tensors[${range.index}].external_data`, offset: 0 })
    }
    if (!before || range.end > before.end) farthest = range
  }
}
