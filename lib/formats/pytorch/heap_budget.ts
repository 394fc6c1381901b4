/** Bounds the memory that the values of a pickle take: one byte of a pickle can make an object of a hundred. */
import { FileFault } from '../file_fault.js'
import { HEAP_AT_LEAST, HEAP_PER_FILE_BYTE } from './schema.js'

export class HeapBudget {
  #left: number
  readonly #limit: number

  /** @param fileBytes - of all files opened so far */
  constructor(fileBytes: number) {
    this.#limit = HEAP_AT_LEAST + HEAP_PER_FILE_BYTE * fileBytes
    this.#left = this.#limit
  }

  /** @throws FileFault ERR_LIMIT at `offset` when more is spent than the file may take */
  spend(bytes: number, offset: number): void {
    this.#left -= bytes
    if (this.#left >= 0) return
    throw new FileFault(
      'ERR_LIMIT',
      `The values of the file would take more than ${this.#limit} bytes of memory.`,
      offset,
    )
  }
}
