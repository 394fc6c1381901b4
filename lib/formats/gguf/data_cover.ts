/** Checks that the tensors lie in the file, and reports where they are not one after the other, as llama.cpp requires. */
import type { ByteSource } from '../../bytes/source.js'
import type { Report } from '../report.js'
import { aligned, tensorPath } from './schema.js'
import type { TensorTable } from './tensor_table.js'

export interface DataPart {
  readonly alignment: number
  /** Offset of the end of the infos, and of the first byte of data. */
  readonly infosEnd: number
  readonly dataStart: number
}

/** @returns false where a tensor does not lie in the file, which is reported */
export function checkData(
  table: TensorTable,
  { alignment, dataStart }: DataPart,
  fileBytes: number,
  report: Report,
): boolean {
  let isInside = true
  let expected = 0
  let isInOrder = true
  for (let index = 0; index < table.length; index++) {
    const offset = table.offset(index)
    const byteLength = table.byteLength(index)
    const path = tensorPath(table.name(index), index)
    const place = { path, offset: dataStart + offset }
    if (byteLength > fileBytes - dataStart - offset) {
      const code = offset > fileBytes - dataStart ? 'ERR_OFFSET_RANGE' : 'ERR_TRUNCATED'
      const message = `${path} needs ${byteLength} bytes at ${dataStart + offset}; the file ends at ${fileBytes}.`
      report.broken(code, message, place)
      isInside = false
      continue
    }
    if (offset % alignment !== 0) {
      const message = `${path} starts at ${offset} of the data, which is no multiple of the alignment ${alignment}.`
      report.deviation('ERR_MISALIGNED', message, place)
    }
    isInOrder &&= offset === expected
    expected = aligned(offset + byteLength, alignment)
  }
  if (isInside) checkCover(table, isInOrder, { alignment, dataStart, infosEnd: 0 }, fileBytes, report)
  return isInside
}

/** Reports gaps, overlaps, another order than that of the infos, and bytes behind the last tensor. */
function checkCover(
  table: TensorTable,
  isInOrder: boolean,
  { alignment, dataStart }: DataPart,
  fileBytes: number,
  report: Report,
): void {
  const order = Uint32Array.from({ length: table.length }, (_, index) => index)
  if (!isInOrder) order.sort((one, other) => table.offset(one) - table.offset(other) || one - other)
  let end = 0
  let owner = -1
  let last = -1
  for (const index of order) {
    const offset = table.offset(index)
    const path = () => tensorPath(table.name(index), index)
    const place = () => ({ path: path(), offset: dataStart + offset })
    if (offset < end) {
      const message = () =>
        `${path()} starts at ${offset} of the data, inside ${tensorPath(table.name(owner), owner)}, which ends at ${end}.`
      report.deviation('ERR_OVERLAP', message, place)
    } else if (offset > aligned(end, alignment)) {
      const message = () =>
        `${offset - end} bytes at ${end} of the data, before ${path()}, belong to no tensor.`
      report.deviation('ERR_GAP', message, place)
    }
    if (index < last) {
      const message = () =>
        `${path()} comes later in the data than in the list of tensors; llama.cpp refuses that.`
      report.deviation('ERR_OFFSET_RANGE', message, place)
    }
    last = Math.max(last, index)
    const own = offset + table.byteLength(index)
    if (own >= end) {
      end = own
      owner = index
    }
  }
  const mostBytes = aligned(end, alignment)
  if (fileBytes - dataStart > mostBytes) {
    const message = `${fileBytes - dataStart - mostBytes} bytes behind the last tensor belong to none.`
    report.deviation('ERR_GAP', message, { path: '', offset: dataStart + mostBytes })
  }
}

/** Bytes of paddings that are read at a time: those between small tensors come with one read. */
const WINDOW_BYTES = 64 * 1024

/** Reports the first padding byte that is not zero: between header and data, and behind each tensor. */
export async function checkPaddings(
  source: ByteSource,
  table: TensorTable,
  { alignment, infosEnd, dataStart }: DataPart,
  report: Report,
): Promise<void> {
  const paddings = new PaddingReader(source)
  const isZero = async (start: number, end: number, path: string): Promise<boolean> => {
    const bytes = await paddings.read(start, Math.min(end, source.byteLength))
    const found = bytes.findIndex((byte) => byte !== 0)
    if (found < 0) return true
    const message = `The padding byte at ${start + found} is ${bytes[found]}; padding is zeros.`
    report.deviation('ERR_GAP', message, { path, offset: start + found })
    return false
  }
  if (!(await isZero(infosEnd, dataStart, ''))) return
  for (let index = 0; index < table.length; index++) {
    const end = dataStart + table.offset(index) + table.byteLength(index)
    const next = dataStart + aligned(end - dataStart, alignment)
    // In a file whose tensors overlap the bytes behind one may be data of the next.
    const limit = index + 1 < table.length ? Math.min(next, dataStart + table.offset(index + 1)) : next
    if (end < limit && !(await isZero(end, limit, tensorPath(table.name(index), index)))) return
  }
}

class PaddingReader {
  readonly #source: ByteSource
  #window: Uint8Array = new Uint8Array(0)
  #start = 0

  constructor(source: ByteSource) {
    this.#source = source
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    if (end <= start) return new Uint8Array(0)
    const isHeld = start >= this.#start && end <= this.#start + this.#window.byteLength
    if (!isHeld) {
      const windowEnd = Math.min(this.#source.byteLength, Math.max(end, start + WINDOW_BYTES))
      // A copy: a source may reuse its memory.
      this.#window = new Uint8Array(await this.#source.read(start, windowEnd))
      this.#start = start
    }
    return this.#window.subarray(start - this.#start, end - this.#start)
  }
}
