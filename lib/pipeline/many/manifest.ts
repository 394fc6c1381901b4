/**
 * The record of finished files, which the next run skips. Append-only: each line is one write to a descriptor opened with
 * O_APPEND, so that several processes can share a manifest on a local file system. The last line of an output counts.
 */
import { closeSync, constants, fdatasync, fstatSync, openSync, read, readSync, writeSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { systemError } from '../../bytes/system_error.js'
import { isWindows, withSlashes } from '../../bytes/windows_names.js'
import { TileworkError } from '../../errors.js'
import {
  entryLine,
  MANIFEST_VERSION,
  type ManifestEntry,
  type ManifestLine,
  parseManifestLine,
  TORN_LINE,
  VERSION_LINE,
} from './manifest_line.js'
import { splitRecords } from './records.js'
import { publicName, urlOf } from './remote_files.js'

/**
 * Longest line: enough for a file with ten thousand parts or undo options of a few hundred bytes each. It bounds the memory for a
 * file of another kind without line breaks (CWE-770).
 */
const MAX_LINE_BYTES = 16 * 1024 * 1024
const LINE_FEED = 0x0a

/**
 * Interval of flushes. A killed process loses no line, because the operating system has it. A crash of the machine loses the
 * lines that are not on disk yet, and those files are converted again. So an occasional flush is enough; a flush per file would
 * cost as much as writing the file.
 */
const FLUSH_EVERY_MS = 5000

const flushToDisk = promisify(fdatasync)

/** Flushes to disk. Node's permission model disables the call; then the system decides when lines reach the disk. */
async function syncData(descriptor: number): Promise<void> {
  try {
    await flushToDisk(descriptor)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_ACCESS_DENIED') throw error
  }
}
const readAt = promisify(read)
const CHUNK_BYTES = 256 * 1024

/** The content of a manifest. */
interface Content {
  readonly entries: Map<string, ManifestEntry>
  readonly unreadable: readonly number[]
}

export class Manifest {
  readonly path: string
  /** Numbers of unreadable lines, from 1. These lines are ignored. */
  readonly unreadable: readonly number[]
  readonly #descriptor: number
  readonly #folder: string
  readonly #entries: Map<string, ManifestEntry>
  #isTorn: boolean
  #flushedAt = Date.now()
  #flush: Promise<void> | undefined
  #flushError: unknown

  private constructor(path: string, descriptor: number, content: Content, isTorn: boolean) {
    this.path = path
    this.unreadable = content.unreadable
    this.#descriptor = descriptor
    this.#folder = dirname(resolve(path))
    this.#entries = content.entries
    this.#isTorn = isTorn
  }

  /**
   * Opens the manifest at `path`, or creates one.
   *
   * @param outputs - the outputs that will be looked up; entries of other outputs are not kept in memory
   * @throws TileworkError ERR_IO; ERR_ARGUMENT for a file that is not a manifest; ERR_UNSUPPORTED for one of a later version
   */
  static async open(path: string, outputs: Iterable<string>): Promise<Manifest> {
    const folder = dirname(resolve(path))
    const wanted = new Set<string>()
    for (const output of outputs) wanted.add(keyOf(folder, output))
    // O_NONBLOCK: opening a pipe without a reader would block forever.
    const flags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0)
    const descriptor = systemError.wrap(path, () => openSync(path, flags, 0o666))
    try {
      const size = regularSize(path, descriptor)
      const content = await readContent(path, descriptor, wanted)
      const isTorn = size > 0 && byteAt(descriptor, size - 1) !== LINE_FEED
      const manifest = new Manifest(path, descriptor, content, isTorn)
      if (size === 0) manifest.#write(VERSION_LINE)
      return manifest
    } catch (error) {
      closeSync(descriptor)
      throw systemError.from(path, error)
    }
  }

  /** The entry of an output, by its path in this process. */
  get(output: string): ManifestEntry | undefined {
    return this.#entries.get(this.#key(output))
  }

  /**
   * Records a finished file. Call it only after the output has been committed.
   *
   * @param entry - its output path is the path in this process
   * @throws TileworkError ERR_IO
   */
  append(entry: ManifestEntry): void {
    const path = this.#key(entry.output.path)
    const line = entryLine({ ...entry, output: { ...entry.output, path } })
    systemError.wrap(this.path, () => this.#write(this.#isTorn ? TORN_LINE + line : line))
    this.#isTorn = false
    if (!this.#flush && Date.now() - this.#flushedAt >= FLUSH_EVERY_MS) this.#startFlush()
  }

  /** Flushes all lines to disk and closes the descriptor. */
  async close(): Promise<void> {
    try {
      await this.#flush
      await systemError.wrapAsync(this.path, () => syncData(this.#descriptor))
      // The operating system reports a failed flush only once; later flushes succeed although lines are lost.
      if (this.#flushError !== undefined) throw systemError.from(this.path, this.#flushError)
    } finally {
      closeSync(this.#descriptor)
    }
  }

  #key(output: string): string {
    return keyOf(this.#folder, output)
  }

  #write(text: string): void {
    const bytes = Buffer.from(text)
    const written = writeSync(this.#descriptor, bytes)
    if (written === bytes.length) return
    // On a full disk only a part of the line is written. The next line must not continue it.
    this.#isTorn = true
    throw new TileworkError(
      'ERR_IO',
      `${this.path}: only ${written} of ${bytes.length} bytes of a line were written.`,
      {
        path: this.path,
      },
    )
  }

  #startFlush(): void {
    this.#flushedAt = Date.now()
    this.#flush = syncData(this.#descriptor)
      .catch((error: unknown) => {
        this.#flushError = error
      })
      .finally(() => {
        this.#flush = undefined
      })
  }
}

/** The path relative to the manifest, with `/` on every system, so that a folder can be moved to another machine. */
function keyOf(folder: string, output: string): string {
  if (urlOf(output)) return publicName(output)
  const path = relative(folder, resolve(output))
  return isWindows ? withSlashes(path) : path
}

function regularSize(path: string, descriptor: number): number {
  const stats = fstatSync(descriptor)
  if (stats.isFile()) return stats.size
  throw new TileworkError('ERR_ARGUMENT', `${path} is not a regular file, so it cannot be a manifest.`)
}

function byteAt(descriptor: number, position: number): number | undefined {
  const byte = new Uint8Array(1)
  return readSync(descriptor, byte, 0, 1, position) === 1 ? byte[0] : undefined
}

/**
 * Reads a file from its start. A Node stream would close the descriptor some time after an early exit, when the number may
 * already belong to another file.
 */
async function* chunksOf(descriptor: number): AsyncGenerator<Uint8Array> {
  const buffer = new Uint8Array(CHUNK_BYTES)
  for (let position = 0; ; ) {
    const { bytesRead } = await readAt(descriptor, buffer, 0, CHUNK_BYTES, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function readContent(path: string, descriptor: number, wanted: ReadonlySet<string>): Promise<Content> {
  const entries = new Map<string, ManifestEntry>()
  const unreadable: number[] = []
  let number = 0
  for await (const { bytes, isEnded } of splitRecords(chunksOf(descriptor), LINE_FEED, MAX_LINE_BYTES)) {
    number++
    const text = bytes?.toString()
    const line = text === undefined ? undefined : parseManifestLine(text)
    if (number === 1) checkFirst(path, line, text)
    if (line?.kind === 'version') checkVersion(path, line.version)
    else if (line?.kind === 'entry') {
      const { path: output } = line.entry.output
      if (wanted.has(output)) entries.set(output, line.entry)
    } else if (line?.kind === 'torn') {
      if (unreadable.at(-1) === number - 1) unreadable.pop()
    } else if (isEnded && text !== '') unreadable.push(number)
  }
  return { entries, unreadable }
}

/** Refuses a file that is not a manifest, so that nothing is appended to it. */
function checkFirst(path: string, line: ManifestLine | undefined, text: string | undefined): void {
  // A process that was killed while it wrote the version line leaves a prefix of that line.
  if (line?.kind === 'version' || (text !== undefined && VERSION_LINE.startsWith(text))) return
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${path} does not start like a manifest; name another file, or remove this one to convert all files again.`,
  )
}

function checkVersion(path: string, version: number): void {
  if (version === MANIFEST_VERSION) return
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `${path} is a manifest of version ${version}; this version of tilework supports ${MANIFEST_VERSION}.`,
  )
}
