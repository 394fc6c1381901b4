/** Chooses the source for the input of `open`. */
import { fileURLToPath } from 'node:url'
import { checkOneOf, isInstance, readInput } from '../caller_input.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { BlobSource } from './blob_source.js'
import { MappedFileSource } from './mapped_file.js'
import { MemorySource } from './memory.js'
import type { FileBelow } from './open_native.js'
import { RangedFileSource } from './ranged_file.js'
import { DEFAULT_INPUT_BYTES, isReceivedInput, type ReceivedInput, receive } from './receive.js'
import type { RemoteOptions } from './remote/remote_options.js'
import { openRemote, remoteUrl } from './remote/schemes.js'
import type { ByteSource } from './source.js'
import { UserSource } from './user_source.js'
import { bytesOfBuffer } from './view_bytes.js'
import { isWindows } from './windows_names.js'

/** Windows refuses to replace or delete a file while it is mapped. */
const DEFAULT_MODE = isWindows ? 'read' : 'map'

export interface OpenSourceOptions {
  /** `map` (default, except on Windows) maps a file; `read` reads ranges of it. No effect on bytes in memory. */
  readonly mode?: 'map' | 'read'
  /** Survive the truncation of a mapped file; see `MappedFileOptions`. */
  readonly guard?: boolean
  /** Limit in bytes for inputs that are received into memory. */
  readonly maxInputBytes?: number
  /** Options for remote URLs. */
  readonly remote?: RemoteOptions
}

/** What `openSource` accepts. */
export type SourceInput = string | URL | Uint8Array | ArrayBuffer | ByteSource | Blob | ReceivedInput

/**
 * Opens a path, a URL, bytes in memory, a Blob, or a caller's own source, which the caller closes. A Response and
 * a stream are received into memory first.
 *
 * @throws TileworkError ERR_IO, ERR_ARGUMENT, ERR_LIMIT, ERR_NATIVE_LOAD
 */
export async function openSource(input: SourceInput, options: OpenSourceOptions = {}): Promise<ByteSource> {
  const { mode = DEFAULT_MODE, guard = false } = options
  checkOneOf(mode, 'mode', ['map', 'read'])
  if (typeof input === 'string' || isInstance(input, URL)) {
    const url = remoteUrl(input)
    if (url) return openRemote(url, options.remote)
    return openPath(typeof input === 'string' ? input : pathOfUrl(input), mode, guard)
  }
  if (isInstance(input, Uint8Array)) return new MemorySource(input)
  if (isInstance(input, ArrayBuffer)) return new MemorySource(bytesOfBuffer(input, 'memory'))
  if (isOwnSource(input)) return input
  if (isInstance(input, Blob)) return new BlobSource(input)
  if (readInput('The input', () => isReceivedInput(input))) {
    return receive(input as ReceivedInput, options.maxInputBytes ?? DEFAULT_INPUT_BYTES)
  }
  if (readInput('The input', () => isByteSource(input))) return new UserSource(input as unknown as ByteSource)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `The input is ${valueText(input)}; it must be a path, a URL, a Uint8Array, an ArrayBuffer, a Blob, a Response, a byte stream, or an object with byteLength and read().`,
  )
}

/** As `openSource`, for a file that another file names. @throws TileworkError also ERR_PATH_ESCAPE, ERR_FILE_CHANGED */
export async function openSourceBelow(file: FileBelow, options: OpenSourceOptions): Promise<ByteSource> {
  const { mode = DEFAULT_MODE, guard = false } = options
  return openPath(file, mode, guard)
}

function openPath(file: string | FileBelow, mode: 'map' | 'read', guard: boolean): ByteSource {
  // The guard replaces lost pages by zeros, which Windows cannot do, so there a guarded file is read.
  const isMapped = mode === 'map' && !(guard && isWindows)
  return isMapped ? new MappedFileSource(file, { guard }) : new RangedFileSource(file)
}

/** @throws TileworkError ERR_ARGUMENT for a URL that names no path of this machine */
export function pathOfUrl(url: URL): string {
  if (url.protocol !== 'file:') {
    throw new TileworkError('ERR_ARGUMENT', `Only file: URLs have a path; this one is ${url.protocol}`)
  }
  try {
    return fileURLToPath(url)
  } catch (cause) {
    throw new TileworkError('ERR_ARGUMENT', `${url.href} names no path of this machine.`, { cause })
  }
}

function isOwnSource(input: unknown): input is ByteSource {
  return (
    isInstance(input, MappedFileSource) ||
    isInstance(input, RangedFileSource) ||
    isInstance(input, MemorySource) ||
    isInstance(input, BlobSource) ||
    isInstance(input, UserSource)
  )
}

function isByteSource(input: unknown): input is ByteSource {
  if (typeof input !== 'object' || input === null) return false
  const { byteLength, read } = input as Partial<ByteSource>
  return Number.isSafeInteger(byteLength) && (byteLength as number) >= 0 && typeof read === 'function'
}
