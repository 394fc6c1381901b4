/**
 * Finds and loads the addon, and types what it offers. Nothing else in `lib/` knows how it is loaded.
 * A failure ends in advice: what was looked for, what is needed, which command to run.
 */
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { TileworkError } from './errors.js'

/** An error that the addon throws: a system error (`code: 'ENOENT'`, `syscall`) or a tilework code (`ERR_…`). */
export interface NativeError extends Error {
  readonly code: string
  readonly syscall?: string
}

/** A memory-mapped file. The mapping is private and writable: a stray store changes a copy, never the file. */
export interface NativeMappedFile {
  readonly byteLength: number
  /**
   * A view of `[start, end)` on the mapping; a copy where the runtime refuses external buffers.
   * Throws ERR_CLOSED, ERR_RANGE, ERR_FILE_CHANGED.
   */
  view(start: number, end: number): Uint8Array
  /** Throws ERR_FILE_CHANGED if size or modification time moved since the file was opened. */
  verifyUnchanged(): void
  /** Drops the owner's use; memory goes with its last user. `revoke` also detaches the views given out. */
  close(revoke: boolean): void
}

/** One digit of a layout in memory, as the planner takes it. */
export interface NativeDigit {
  /** Positions of the axes in logical order; more than one means a fused row-major index over padded extents. */
  readonly axes: readonly number[]
  readonly radix: number
  readonly weight: number
}

/** A list of digits that holds for a part of the tensor: `lo <= padded index of axis < hi`. */
export interface NativePiece {
  readonly axis: number
  readonly lo: number
  readonly hi: number
  /** Outermost first; Horner over the list gives the element offset. Number of slots is the product of the radices. */
  readonly digits: readonly NativeDigit[]
}

/** One side of a reorder: a layout bound to a shape. */
export interface NativeSide {
  /** Explicit padding before the first element, one count an axis. */
  readonly lower: readonly number[]
  readonly upper: readonly number[]
  /** Usually one piece that covers everything (axis 0, 0 … Infinity is written as Number.MAX_SAFE_INTEGER). */
  readonly pieces: readonly NativePiece[]
  /** Storage elements, holes included. */
  readonly elements: number
}

export interface NativePlanDescription {
  /** 4, 8, 16, 32, 64 or 128. */
  readonly elementBits: number
  /** Logical extents, one an axis. */
  readonly shape: readonly number[]
  readonly from: NativeSide
  readonly to: NativeSide
}

/** An immutable reorder plan. Sizes are bytes of the storage of either side. */
export interface NativeReorderPlan {
  readonly sourceBytes: number
  readonly destinationBytes: number
  /**
   * Writes destination bytes `[start, end)` (whole elements; nibble pairs for 4 bit) to `destination`, which
   * has exactly `end - start` bytes. `source` has all `sourceBytes`. Throws ERR_ARGUMENT on wrong sizes.
   */
  runSync(source: Uint8Array, destination: Uint8Array, start: number, end: number): void
  /** As `runSync`, on the addon's own threads. `cancel` is looked at once a tile: a non-zero first byte stops. */
  run(
    source: Uint8Array,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  /** As `run`, with the source `[offset, offset + sourceBytes)` of a mapped file; works above 4 GiB on every Node. */
  runMapped(
    file: NativeMappedFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
    cancel?: Int32Array,
  ): Promise<void>
  runMappedSync(
    file: NativeMappedFile,
    offset: number,
    destination: Uint8Array,
    start: number,
    end: number,
  ): void
  explain(): NativeExplanation
}

export interface NativeExplanation {
  /** Name from the kernel table, for example `reorder_x32_reference`. */
  readonly kernel: string
  /** Why this kernel was taken. */
  readonly reason: string
  /** `identity` when source and destination storage are equal byte for byte. */
  readonly kind: 'identity' | 'loop-nest'
  /** Outermost first. `table` marks a node whose source offset comes from a table or from arithmetic, not a stride. */
  readonly nodes: readonly {
    readonly axes: readonly number[]
    readonly count: number
    readonly sourceStride: number | 'table'
    readonly destinationStride: number
    readonly tail: boolean
  }[]
}

/** A file under construction: a temporary in the folder of the target, renamed to it on commit. */
export interface NativeOutputFile {
  readonly temporaryPath: string
  /** Writes all of `bytes` at `position`. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Copies a range of another file without passing through JavaScript (`copy_file_range`, then plain copies). */
  copyFrom(file: NativeMappedFile, start: number, end: number, position: number): Promise<void>
  /** fsync, rename over the target, fsync of the folder. */
  commit(): Promise<void>
  /** Closes and removes the temporary. May be called twice, and after commit, where it does nothing. */
  abort(): void
}

export interface NativeAddon {
  /** Opens and maps a file. An empty file has byteLength 0. */
  openMapped(path: string): NativeMappedFile
  planReorder(description: NativePlanDescription): NativeReorderPlan
  /** Creates the temporary beside `path` and reserves `byteLength` bytes (ENOSPC at once on a full disk). */
  createOutput(path: string, byteLength: number): NativeOutputFile
  /** Threads of the addon's own pool: from affinity and cgroup quota, or TILEWORK_THREADS. */
  threads(): number
  setThreads(count: number): void
  /** Forces (false) or allows (true) external buffers: the switch behind TILEWORK_NO_EXTERNAL_BUFFERS=1. */
  setExternalBuffers(allowed: boolean): void
  /** Mappings that are still mapped in this environment; for tests of their life. */
  liveMappings(): number
  cpu(): { readonly architecture: string; readonly features: readonly string[] }
}

/** More threads than any machine that runs Node has; a typing error should not start a million. */
const MAX_THREADS = 1024

let loaded: NativeAddon | undefined

/** The addon, loaded on first use. Throws ERR_NATIVE_LOAD with advice. */
export function native(): NativeAddon {
  loaded ??= load()
  return loaded
}

function load(): NativeAddon {
  const require = createRequire(import.meta.url)
  const packageRoot = fileURLToPath(new URL('..', import.meta.url))
  // node-gyp-build recognises musl by Alpine's release file alone; the process report knows the C library itself.
  process.env.LIBC ??= isMusl() ? 'musl' : 'glibc'
  try {
    return require('node-gyp-build')(packageRoot) as NativeAddon
  } catch (cause) {
    throw new TileworkError(
      'ERR_NATIVE_LOAD',
      `The native addon of tilework could not be loaded for ${process.platform}-${process.arch} (Node ${process.versions.node}): ` +
        `no prebuilt binary fits and none was built in ${packageRoot}. ` +
        'In a checkout run "npm run build:all" (it needs a C++ compiler and cmake); ' +
        'in an application reinstall tilework, and unpack *.node files if they are inside an archive.',
      { cause },
    )
  }
}

function isMusl(): boolean {
  if (process.platform !== 'linux') return false
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined
  return report?.header !== undefined && report.header.glibcVersionRuntime === undefined
}

/** Threads that kernels use: from CPU affinity and cgroup quota, or TILEWORK_THREADS, or `setThreads`. */
export function threads(): number {
  return native().threads()
}

/**
 * Sets how many threads kernels use, for the whole process. Running jobs keep theirs.
 *
 * @throws TileworkError ERR_ARGUMENT for anything but a whole number from 1 to 1024
 */
export function setThreads(count: number): void {
  if (!Number.isInteger(count) || count < 1 || count > MAX_THREADS) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `threads must be a whole number from 1 to ${MAX_THREADS}; it is ${count}.`,
    )
  }
  native().setThreads(count)
}
