/** The addon's file behind a source, for jobs that read it without passing through JavaScript. */
import type { NativeInputFile } from '../native/types.js'
import { MappedFileSource } from './mapped_file.js'
import { RangedFileSource } from './ranged_file.js'
import type { ByteSource } from './source.js'

/** @returns undefined for a source that is not a file */
export function nativeFileOf(source: ByteSource): NativeInputFile | undefined {
  const isFile = source instanceof MappedFileSource || source instanceof RangedFileSource
  return isFile ? source.native : undefined
}
