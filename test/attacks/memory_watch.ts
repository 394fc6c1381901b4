/**
 * Measures the memory that reading a file takes, which must not follow a count that the file declares. What an open file
 * keeps is measured after a garbage collection, at intervals and whenever memory has grown suspiciously. Without a
 * collection garbage is included, so that bound is wide; a lying count still exceeds it.
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

/** Maximum memory of a read, in file sizes. */
const LIMIT_IN_FILES = 8

/** Garbage of a walk (objects, numbers, generators): some kilobytes per node. */
const GARBAGE_BYTES = 64 * 1024 * 1024

/** More garbage than most files make: a collection is then worth its time. */
const SUSPICIOUS_BYTES = 8 * 1024 * 1024

/** Memory of an open file beside its records: maps, pages, compiled code. */
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

  /** Runs `read` on a file of `byteLength` bytes and holds the result until the memory is measured. */
  async over<T>(byteLength: number, read: () => Promise<T>): Promise<T> {
    const isDue = this.#reads++ % READS_OF_A_COLLECTION === 0
    if (isDue) this.#collect()
    const before = usedBytes()
    const result = await read()
    // Negative when a collection ran in between.
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
