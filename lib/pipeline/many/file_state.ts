/**
 * What tells whether a file is still the one of an earlier run: length, modification time and inode, which cost one
 * look, and the hash of its bytes, which costs a read and is the truth where the time has moved.
 */
import { createHash, type Hash } from 'node:crypto'
import { statSync } from 'node:fs'
import type { ByteSource } from '../../bytes/source.js'
import { systemError } from '../../bytes/system_error.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { type OpenFile, openedFile } from '../open.js'

/** One look at a file, as a manifest keeps it. */
export interface FileState {
  readonly bytes: number
  /** Modification time in nanoseconds since 1970, as text: it is larger than a double holds, and only compared. */
  readonly mtime: string
  readonly inode: string
}

/** A look at an input. Without `mtime` equal states prove nothing, see {@link inputState}. */
export type InputState = Omit<FileState, 'mtime'> & Partial<Pick<FileState, 'mtime'>>

/** The coarsest step of modification times in use, that of FAT. */
const MTIME_STEP_NS = 2_000_000_000n

/** Small enough that other work gets its turn between two, large enough that calls cost nothing beside the hash. */
const WINDOW_BYTES = 1024 * 1024

/**
 * A synchronous look, as in the making of the list: some microseconds.
 *
 * @throws TileworkError ERR_IO
 */
export function fileState(path: string): FileState {
  const { size, mtimeNs, ino } = systemError.wrap(path, () => statSync(path, { bigint: true }))
  return { bytes: Number(size), mtime: String(mtimeNs), inode: String(ino) }
}

/** As `fileState`; undefined for what cannot be looked at. */
export function tryFileState(path: string): FileState | undefined {
  try {
    return fileState(path)
  } catch {
    return undefined
  }
}

/**
 * The state of an input that is about to be read. A file that was written a moment ago may be written again within
 * the same step of its file system's clock, so its time is left out.
 */
export function inputState(state: FileState): InputState {
  const { bytes, mtime, inode } = state
  const isFresh = BigInt(Date.now()) * 1_000_000n - BigInt(mtime) < MTIME_STEP_NS
  return isFresh ? { bytes, inode } : { bytes, mtime, inode }
}

/** True when a file cannot have changed since it was noted. */
export function isUnchanged(noted: InputState, now: FileState | undefined): boolean {
  return noted.bytes === now?.bytes && noted.mtime === now.mtime && noted.inode === now.inode
}

/** The other files that an open file has referred to so far, by name, in the order of their names. */
export function partsOf(file: OpenFile): readonly (readonly [name: string, source: ByteSource])[] {
  const siblings = openedFile(file)?.siblings ?? new Map<string, ByteSource>()
  return [...siblings].sort(([one], [other]) => (one < other ? -1 : 1))
}

/**
 * Hexadecimal SHA-256 of all bytes of an open file; of one with parts, of its bytes and the name, length and bytes of
 * each part. Read through the file's own sources, so that it is the hash of what is converted even when a path has
 * come to name another file.
 *
 * @param isNeeded - false ends the work, with a hash of no meaning
 * @throws TileworkError ERR_ABORTED, and what reading throws
 */
export async function contentHash(
  file: OpenFile,
  signal: AbortSignal | undefined,
  isNeeded: () => boolean = () => true,
): Promise<string> {
  const source = openedFile(file)?.source
  if (!source) throw new TileworkError('ERR_ARGUMENT', 'Only a file that open() returned can be hashed.')
  const hash = createHash('sha256')
  await hashSource(source, hash, signal, isNeeded)
  for (const [name, part] of partsOf(file)) {
    hash.update(`${name}\0${part.byteLength}\0`)
    await hashSource(part, hash, signal, isNeeded)
  }
  return hash.digest('hex')
}

async function hashSource(
  source: ByteSource,
  hash: Hash,
  signal: AbortSignal | undefined,
  isNeeded: () => boolean,
): Promise<void> {
  for (let start = 0; start < source.byteLength && isNeeded(); start += WINDOW_BYTES) {
    throwIfAborted(signal)
    hash.update(await source.read(start, Math.min(start + WINDOW_BYTES, source.byteLength)))
    // A mapped source answers without a turn of the event loop, so other files and signals would have to wait.
    if (source.byteLength > WINDOW_BYTES) await yieldToEventLoop()
  }
}
