/**
 * Decides whether a file is unchanged since an earlier run: by length, modification time and inode, which cost one system call;
 * and where the time has changed, by a hash of its bytes.
 */
import { statSync } from 'node:fs'
import { readInto } from '../../bytes/fill_memory.js'
import { createHasher } from '../../bytes/hasher.js'
import { MemorySource } from '../../bytes/memory.js'
import { bufferWithinBudget } from '../../bytes/memory_budget.js'
import type { ByteSource } from '../../bytes/source.js'
import { systemError } from '../../bytes/system_error.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { type OpenFile, openedFile } from '../open.js'

/** The state of a file, as a manifest keeps it. */
export interface FileState {
  readonly bytes: number
  /**
   * Modification time in nanoseconds since 1970, as text: it is larger than a double holds, and only compared. Of an object
   * of another machine the tag of its version.
   */
  readonly mtime: string
  /** Empty for an object of another machine. */
  readonly inode: string
}

/** The state of an input. Without `mtime` equal states do not prove that it is unchanged, see {@link inputState}. */
export type InputState = Omit<FileState, 'mtime'> & Partial<Pick<FileState, 'mtime'>>

/** The coarsest resolution of modification times in use: FAT's two seconds. */
const MTIME_RESOLUTION_NS = 2_000_000_000n

/** Large enough that a mapped file is read on the threads of the addon, small enough for many jobs at a time. */
const CHUNK_BYTES = 4 * 1024 * 1024

/** Smallest chunk; the names of a file's parts must fit. */
const MIN_CHUNK_BYTES = 4096

/**
 * Synchronous, because the call takes a few microseconds and its asynchronous form ten times as long.
 *
 * @throws TileworkError ERR_IO
 */
export function fileState(path: string): FileState {
  const { size, mtimeNs, ino } = systemError.wrap(path, () => statSync(path, { bigint: true }))
  return { bytes: Number(size), mtime: String(mtimeNs), inode: String(ino) }
}

/**
 * The state of an input that is about to be read. A file that was written just now could be written again within the clock
 * resolution of its file system, so its time is omitted.
 */
export function inputState(state: FileState): InputState {
  const { bytes, mtime, inode } = state
  // An object has no inode; its tag changes with each write.
  if (inode === '') return state
  const isFresh = BigInt(Date.now()) * 1_000_000n - BigInt(mtime) < MTIME_RESOLUTION_NS
  return isFresh ? { bytes, inode } : { bytes, mtime, inode }
}

/** True when a file cannot have changed since it was noted. */
export function isUnchanged(noted: InputState, now: FileState | undefined): boolean {
  return noted.bytes === now?.bytes && noted.mtime === now.mtime && noted.inode === now.inode
}

/** The files that an open file has referred to so far, sorted by name. */
export function partsOf(file: OpenFile): readonly (readonly [name: string, source: ByteSource])[] {
  const siblings = openedFile(file)?.siblings ?? new Map<string, ByteSource>()
  return [...siblings].sort(([one], [other]) => (one < other ? -1 : 1))
}

/**
 * Hexadecimal SHA-256 of all bytes of an open file and of the name, length and bytes of each of its parts. The bytes are read
 * through the open sources, so that the hashed bytes are those that are converted, even if the path is replaced meanwhile.
 *
 * @param isNeeded - returning false stops the work; the result is then meaningless
 * @throws TileworkError ERR_ABORTED, and whatever reading throws
 */
export async function contentHash(
  file: OpenFile,
  signal: AbortSignal | undefined,
  isNeeded: () => boolean = () => true,
): Promise<string> {
  const source = openedFile(file)?.source
  if (!source) throw new TileworkError('ERR_ARGUMENT', 'Only a file that open() returned can be hashed.')
  const parts = partsOf(file)
  const total = parts.reduce((sum, [, { byteLength }]) => sum + byteLength, source.byteLength)
  const hasher = createHasher(
    total,
    bufferWithinBudget(Math.min(CHUNK_BYTES, Math.max(total, MIN_CHUNK_BYTES))),
  )
  const hash = async (from: ByteSource): Promise<void> => {
    for (let start = 0; start < from.byteLength && isNeeded(); ) {
      throwIfAborted(signal)
      const buffer = await hasher.buffer()
      const length = Math.min(buffer.byteLength, from.byteLength - start)
      await readInto(from, start, buffer.subarray(0, length))
      hasher.push(buffer, length)
      start += length
      await yieldToEventLoop()
    }
  }
  try {
    await hash(source)
    for (const [name, part] of parts) {
      await hash(new MemorySource(Buffer.from(`${name}\0${part.byteLength}\0`)))
      await hash(part)
    }
    return await hasher.digest()
  } finally {
    hasher.close()
  }
}
