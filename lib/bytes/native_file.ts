/** The addon's own file behind a source, for jobs that run from descriptor to descriptor. */
import type { NativeInputFile } from '../native/types.js'
import { MappedFileSource } from './mapped_file.js'
import { RangedFileSource } from './ranged_file.js'
import type { ByteSource } from './source.js'

/** Absent where the bytes come from anywhere else. */
export function nativeFileOf(source: ByteSource): NativeInputFile | undefined {
  const isFile = source instanceof MappedFileSource || source instanceof RangedFileSource
  return isFile ? source.native : undefined
}
