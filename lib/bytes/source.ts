/**
 * Where bytes come from. A format reader sees only this interface, so a file that is mapped, a file that is
 * read by ranges, memory and a user's own source (HTTP, object storage) are read by the same code.
 */

/** Half-open range of bytes. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** A random-access source of bytes. Users may pass their own to `open`. */
export interface ByteSource {
  /** Length in bytes. */
  readonly byteLength: number
  /** A name for messages: a path, or for example `memory`. */
  readonly label?: string
  /**
   * The bytes of `[start, end)`; may share memory with the source, never to be written to. Of a file they are a copy:
   * memory that is mapped can vanish with the end of the file, and whoever looks at it then is killed.
   * Errors: ERR_CLOSED, ERR_RANGE, ERR_IO, ERR_FILE_CHANGED, ERR_VIEW_TOO_LARGE.
   */
  read(start: number, end: number): Promise<Uint8Array>
  /**
   * A view of mapped memory, to be handed to users, who want no copy. Nothing of tilework's own may look into it.
   * Absent where there is none; `read` then gives what there is.
   */
  readonly view?: ((start: number, end: number) => Uint8Array) | undefined
  /** As `read`, into memory of the caller. Absent where `read` alone can; callers then copy. */
  readInto?(start: number, target: Uint8Array): Promise<void>
  /** As `read`, at once. Absent where the source cannot; callers then throw ERR_ASYNC_ONLY. */
  readSync?(start: number, end: number): Uint8Array
  /** As `readInto`, at once. */
  readIntoSync?(start: number, target: Uint8Array): void
  /** Ends the use of the source. Views that were given out stay valid unless `revoke` is true. May be called twice. */
  close?(options?: { readonly revoke?: boolean }): void
}
