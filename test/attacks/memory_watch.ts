/**
 * What reading a file costs in memory: a count from the file must not decide it. Garbage is counted with the rest, since
 * nobody knows when it goes, so there is an allowance beside the multiple of the file; what an open file keeps is
 * measured now and then, after a collection.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

/** Most that reading may take, in file sizes. */
const LIMIT_IN_FILES = 8

/** Names, numbers and generators of a walk, that are garbage when it ends: they have hundreds of bytes a struct. */
const GARBAGE_BYTES = 8 * 1024 * 1024

/** What an open file has beside its records: maps, pages, code that was compiled meanwhile. */
const KEPT_BYTES = 512 * 1024

/** A collection takes longer than reading hundreds of small files. */
const READS_OF_A_COLLECTION = 100

function collector(): () => void {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as () => void
}

function usedBytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

export class MemoryWatch {
  readonly #collect = collector()
  #reads = 0

  /** Runs `read` on a file of `byteLength` bytes; what it gives is held until the memory is measured. */
  async over<T>(byteLength: number, read: () => Promise<T>): Promise<T> {
    const isCollected = this.#reads++ % READS_OF_A_COLLECTION === 0
    if (isCollected) this.#collect()
    const before = usedBytes()
    const result = await read()
    // Less than nothing where a collection came between.
    expect(usedBytes() - before).toBeLessThanOrEqual(LIMIT_IN_FILES * byteLength + GARBAGE_BYTES)
    if (isCollected) {
      this.#collect()
      expect(usedBytes() - before).toBeLessThanOrEqual(LIMIT_IN_FILES * byteLength + KEPT_BYTES)
    }
    return result
  }
}
