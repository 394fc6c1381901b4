/**
 * Reads of a remote object. Small reads go through a bounded cache of blocks: adjacent blocks share a request, sequential reads
 * get growing read-ahead, and prefetch hints are loaded by parallel requests. Large reads are split into parallel requests that
 * bypass the cache.
 */

import { append } from '../../long_lists.js'
import { Allowance } from '../allowance.js'
import { checkRange, checkReturned, closedError } from '../check_range.js'
import type { ExpectedReads, ReadsAhead } from '../expected_reads.js'
import type { ByteSource } from '../source.js'
import { unfilledBytes } from '../view_limit.js'
import type { CheckedRemoteOptions } from './remote_options.js'
import { withRetries } from './retry.js'
import type { RemoteObject } from './url_scheme.js'

/** Bytes of a block: a header between two payloads fits into one or two blocks. */
export const BLOCK_BYTES = 16 * 1024

/**
 * Bytes of the smallest request without a prefetch hint. A request has a latency of 30 to 100 ms whatever its size; a connection
 * of 10 to 40 Mbit/s loads this much in the same time.
 */
export const MIN_REQUEST_BYTES = 128 * 1024
const MIN_REQUEST_BLOCKS = MIN_REQUEST_BYTES / BLOCK_BYTES

/** Reads of this size or more bypass the cache: payloads are read once. */
const DIRECT_BYTES = 2 * 1024 ** 2

/** Smallest part of a large read that is split over the connections; smaller parts cost more than they save. */
const MIN_PART_BYTES = 1024 ** 2
/** Largest part of a large read: a failure repeats one part. */
const MAX_PART_BYTES = 8 * 1024 ** 2

/** Most blocks of read-ahead for a sequential reader: 8 MiB. */
const MAX_AHEAD_BLOCKS = 512

/** Most blocks of one prefetch request: 1 MiB. */
const MAX_RUN_BLOCKS = 64

/** Prefetch requests per connection: while one is consumed, the next is in flight. */
const RUNS_PER_CONNECTION = 2

/** Blocks `[first, behind)`. */
interface Run {
  readonly first: number
  readonly behind: number
}

export class CachedSource implements ByteSource, ReadsAhead {
  readonly byteLength: number
  readonly label: string
  readonly version: string | undefined
  readonly #object: RemoteObject
  readonly #options: CheckedRemoteOptions
  readonly #requests: Allowance
  /** Blocks by number, least recently used first. */
  readonly #blocks = new Map<number, Promise<Uint8Array>>()
  readonly #maxBlocks: number
  /** The block after the last read, and how many to read ahead from there. */
  #next = 0
  #ahead = 0
  /** Runs of blocks still to prefetch, and the requested runs that the reader has not reached yet. */
  #expected: Iterator<Run> | undefined
  #runs: Run[] = []
  #closed = false
  #pending = 0

  constructor(object: RemoteObject, label: string, options: CheckedRemoteOptions) {
    this.byteLength = object.byteLength
    this.label = label
    this.version = object.version
    this.#object = object
    this.#options = options
    this.#requests = new Allowance(options.connections)
    this.#maxBlocks = Math.floor(options.cacheBytes / BLOCK_BYTES)
    this.#keepHead(object.head)
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    if (start === end) return new Uint8Array(0)
    if (end - start < DIRECT_BYTES) return this.#readBlocks(start, end)
    const bytes = unfilledBytes(end - start)
    await this.#readDirect(start, bytes)
    return bytes
  }

  async readInto(start: number, target: Uint8Array): Promise<void> {
    const end = start + target.byteLength
    if (target.byteLength < DIRECT_BYTES) {
      target.set(await this.read(start, end))
      return
    }
    if (this.#closed) throw closedError(this.label)
    checkRange(start, end, this.byteLength, this.label)
    await this.#readDirect(start, target)
  }

  expectReads(reads: ExpectedReads): void {
    const maxRuns = RUNS_PER_CONNECTION * this.#options.connections
    // A smaller cache would lose blocks before they are read.
    if (this.#closed || this.#maxBlocks < 2 * maxRuns * MAX_RUN_BLOCKS) return
    this.#expected = runsOf(reads, this.byteLength)
    this.#runs = []
    this.#loadExpected(0)
  }

  /** Pending reads complete. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#expected = undefined
    this.#blocks.clear()
    if (this.#pending === 0) this.#object.close?.()
  }

  #keepHead(head: Uint8Array | undefined): void {
    if (!head) return
    for (let block = 0; block * BLOCK_BYTES < head.byteLength; block++) {
      const end = Math.min((block + 1) * BLOCK_BYTES, this.byteLength)
      if (end <= head.byteLength)
        this.#blocks.set(block, Promise.resolve(head.slice(block * BLOCK_BYTES, end)))
    }
  }

  /** Copies cached blocks at both ends, such as the first block of the object, and requests the rest in parallel. */
  async #readDirect(start: number, bytes: Uint8Array): Promise<void> {
    const [from, to] = await this.#copyCachedEnds(start, bytes)
    const each = Math.ceil((to - from) / this.#options.connections)
    const partBytes = Math.min(Math.max(each, MIN_PART_BYTES), MAX_PART_BYTES)
    const parts = Array.from(
      { length: Math.ceil((to - from) / partBytes) },
      (_, part) => from + part * partBytes,
    )
    await Promise.all(
      parts.map(async (at) => bytes.set(await this.#request(at, Math.min(at + partBytes, to)), at - start)),
    )
  }

  /** Copies the blocks that the cache has at the start and the end of a range; returns the range between them. */
  async #copyCachedEnds(start: number, bytes: Uint8Array): Promise<[from: number, to: number]> {
    let [from, to] = [start, start + bytes.byteLength]
    while (from < to) {
      const block = Math.floor(from / BLOCK_BYTES)
      const known = await this.#blocks.get(block)
      if (!known) break
      const part = known.subarray(from - block * BLOCK_BYTES, to - block * BLOCK_BYTES)
      bytes.set(part, from - start)
      from += part.byteLength
    }
    while (from < to) {
      const block = Math.floor((to - 1) / BLOCK_BYTES)
      const known = await this.#blocks.get(block)
      if (!known) break
      const first = Math.max(from, block * BLOCK_BYTES)
      bytes.set(known.subarray(first - block * BLOCK_BYTES, to - block * BLOCK_BYTES), first - start)
      to = first
    }
    return [from, to]
  }

  async #readBlocks(start: number, end: number): Promise<Uint8Array> {
    const first = Math.floor(start / BLOCK_BYTES)
    const last = Math.floor((end - 1) / BLOCK_BYTES)
    const asked = this.#blocksOf(first, last)
    if (this.#expected) this.#loadExpected(first)
    const blocks = await Promise.all(asked)
    const base = first * BLOCK_BYTES
    if (blocks.length === 1) return blocks[0]!.slice(start - base, end - base)
    const bytes = new Uint8Array(end - start)
    for (const [index, block] of blocks.entries()) {
      const at = base + index * BLOCK_BYTES
      const from = Math.max(start - at, 0)
      bytes.set(block.subarray(from, Math.min(end - at, block.byteLength)), at + from - start)
    }
    return bytes
  }

  /** The blocks `first` to `last`; missing ones are requested, adjacent ones together. */
  #blocksOf(first: number, last: number): Promise<Uint8Array>[] {
    const isSequential = first === this.#next || first === this.#next - 1
    this.#next = last + 1
    const blocks: Promise<Uint8Array>[] = []
    for (let block = first; block <= last; ) {
      const known = this.#blocks.get(block)
      if (known) {
        this.#keep(block, known)
        blocks.push(known)
        block++
        continue
      }
      let behind = block + 1
      while (behind <= last && !this.#blocks.has(behind)) behind++
      const wanted = this.#load(block, behind, isSequential && behind > last)
      append(blocks, wanted.slice(0, behind - block))
      block = behind
    }
    return blocks
  }

  /** One request for the blocks `[first, behind)`, and for the read-ahead of a sequential reader. */
  #load(first: number, behind: number, isSequential: boolean): Promise<Uint8Array>[] {
    if (isSequential) {
      this.#ahead = Math.min(Math.max(this.#ahead * 2, MIN_REQUEST_BLOCKS), MAX_AHEAD_BLOCKS, this.#maxBlocks)
    } else {
      this.#ahead = 0
    }
    const wanted = Math.max(behind + this.#ahead, first + MIN_REQUEST_BLOCKS)
    let end = Math.min(wanted, Math.ceil(this.byteLength / BLOCK_BYTES))
    for (let block = behind; block < end; block++) if (this.#blocks.has(block)) end = block
    return this.#loadRun({ first, behind: end })
  }

  /** Keeps prefetch requests in flight ahead of a reader that is at block `at`. */
  #loadExpected(at: number): void {
    this.#runs = this.#runs.filter(({ behind }) => behind > at)
    const maxRuns = RUNS_PER_CONNECTION * this.#options.connections
    while (this.#expected && this.#runs.length < maxRuns) {
      const { done, value: run } = this.#expected.next()
      if (done) {
        this.#expected = undefined
        return
      }
      if (run.behind <= at) continue
      let { first, behind } = run
      while (first < behind && this.#blocks.has(first)) first++
      while (first < behind && this.#blocks.has(behind - 1)) behind--
      if (first === behind) continue
      this.#loadRun({ first, behind })
      this.#runs.push(run)
    }
  }

  /** One request for a run of blocks, which are put into the cache. */
  #loadRun({ first, behind }: Run): Promise<Uint8Array>[] {
    const bytes = this.#request(first * BLOCK_BYTES, Math.min(behind * BLOCK_BYTES, this.byteLength))
    return Array.from({ length: behind - first }, (_, index) => {
      // A copy: a view would keep the whole response in memory.
      const block = bytes.then((all) => all.slice(index * BLOCK_BYTES, (index + 1) * BLOCK_BYTES))
      block.catch(() => {
        if (this.#blocks.get(first + index) === block) this.#blocks.delete(first + index)
      })
      this.#keep(first + index, block)
      return block
    })
  }

  #keep(number: number, block: Promise<Uint8Array>): void {
    this.#blocks.delete(number)
    this.#blocks.set(number, block)
    if (this.#blocks.size <= this.#maxBlocks) return
    const [oldest] = this.#blocks.keys()
    this.#blocks.delete(oldest!)
  }

  /** One request, as soon as a connection is free. */
  async #request(start: number, end: number): Promise<Uint8Array> {
    this.#pending++
    try {
      return await this.#requests.lend(1, this.#options.signal, () =>
        withRetries(this.label, this.#options, async () =>
          checkReturned(await this.#object.read(start, end), start, end, this.label),
        ),
      )
    } finally {
      this.#pending--
      if (this.#closed && this.#pending === 0) this.#object.close?.()
    }
  }
}

/** The blocks of expected reads, merged into runs where loading the gap between them costs less than a request. */
function* runsOf({ starts, byteLength }: ExpectedReads, sourceBytes: number): Generator<Run, undefined> {
  const blockCount = Math.ceil(sourceBytes / BLOCK_BYTES)
  let run: Run | undefined
  for (const start of starts) {
    const first = Math.floor(start / BLOCK_BYTES)
    const behind = Math.min(Math.ceil((start + byteLength) / BLOCK_BYTES), blockCount)
    // Offsets come from the file, which may be hostile.
    if (!(first >= 0 && first < behind)) continue
    if (run && first >= run.first && isNear(run, first, behind)) {
      run = { first: run.first, behind: Math.max(run.behind, behind) }
      continue
    }
    if (run) yield run
    run = { first, behind }
  }
  if (run) yield run
  return undefined
}

function isNear(run: Run, first: number, behind: number): boolean {
  return first - run.behind < MIN_REQUEST_BLOCKS && behind - run.first <= MAX_RUN_BLOCKS
}
