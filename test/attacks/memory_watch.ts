/**
 * What reading a file costs in memory: a count from the file must not decide it. What an open file keeps is measured after
 * a collection: now and then, and whenever memory has grown by more than it may keep. Before a collection garbage counts
 * with the rest, so there the bound is wide; no count that a file can lie about stays below it.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

/** Most that reading may take, in file sizes. */
const LIMIT_IN_FILES = 8

/** Places, numbers and generators of a walk, that are garbage when it ends: they have kilobytes a node. */
const GARBAGE_BYTES = 64 * 1024 * 1024

/** More garbage than most files make: a collection is worth its time then. */
const SUSPICIOUS_BYTES = 8 * 1024 * 1024

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
    const isDue = this.#reads++ % READS_OF_A_COLLECTION === 0
    if (isDue) this.#collect()
    const before = usedBytes()
    const result = await read()
    // Less than nothing where a collection came between.
    const grown = usedBytes() - before
    expect(grown).toBeLessThanOrEqual(LIMIT_IN_FILES * byteLength + GARBAGE_BYTES)
    const keptLimit = LIMIT_IN_FILES * byteLength + KEPT_BYTES
    if (isDue || grown > LIMIT_IN_FILES * byteLength + SUSPICIOUS_BYTES) {
      this.#collect()
      expect(usedBytes() - before).toBeLessThanOrEqual(keptLimit)
    }
    return result
  }
}
