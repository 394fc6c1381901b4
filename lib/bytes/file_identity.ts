/** Names and identities of files beside a file that is saved. */
import { lstat } from 'node:fs/promises'
import type { NativeFileIdentity } from '../native/types.js'

export type FileIdentity = NativeFileIdentity

/** A file below a folder, as it was when its identity was read. */
export interface IdentifiedFile {
  /** Relative to the folder. */
  readonly name: string
  readonly identity: FileIdentity
}

/** Undefined for anything but a regular file with one name: links may lead to another model's file. */
export async function identityAt(path: string): Promise<FileIdentity | undefined> {
  const status = await lstat(path, { bigint: true }).catch(() => undefined)
  if (!status?.isFile() || status.nlink !== 1n) return undefined
  return { device: status.dev, inode: status.ino, size: status.size, modified: status.mtimeNs }
}

/** Equal for names that may denote the same file: some file systems ignore case and Unicode normalization. */
export function keyOfName(name: string): string {
  return name.normalize('NFC').toLowerCase()
}
