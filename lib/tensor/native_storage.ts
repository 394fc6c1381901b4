/** Where the addon's own threads can read a tensor's storage, so that its bytes need not pass through JavaScript. */
import { isPinned } from '../bytes/fill_memory.js'
import { MemorySource } from '../bytes/memory.js'
import { nativeFileOf } from '../bytes/native_file.js'
import type { NativeBytes } from '../native/types.js'
import type { StoredTensor } from './dense.js'

export interface NativeStorage {
  readonly side: NativeBytes
  /** Byte offset of the storage in `side`. */
  readonly start: number
}

/** @returns undefined for memory that its owner may take away, and for sources other than files and memory */
export function nativeStorageOf(tensor: StoredTensor): NativeStorage | undefined {
  const file = nativeFileOf(tensor.source)
  if (file) return { side: file, start: tensor.start }
  if (!(tensor.source instanceof MemorySource)) return undefined
  const bytes = tensor.bytesSync()
  return isPinned(bytes) ? { side: bytes, start: 0 } : undefined
}
