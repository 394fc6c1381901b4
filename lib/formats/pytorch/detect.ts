/** Recognises the files of torch by their content; their names say nothing, since `.bin` is any file. */
import { firstMember } from '../../zip/first_member.js'
import type { FileHead } from '../file_head.js'
import { isWeightMap } from '../index_head.js'
import { LEGACY_MAGIC, MAX_PROTOCOL } from './schema.js'

/** How a file is stored, as far as its start tells. */
export type ContainerKind = 'archive' | 'legacy' | 'pickle' | 'tar' | 'index'

/** The first opcode of a pickle; the protocol follows. */
const PROTO = 0x80

/** Members of the archives of torch, below their one folder. */
const MEMBER =
  /^[^/]+\/(data\.pkl|constants\.pkl|version|byteorder|\.format_version|\.storage_alignment|\.data\/.*|data\/\d+|constants\/\d+|code\/.*)$/
/** Members of the tar archives that torch wrote before 0.1.10. */
const TAR_MEMBER = /^(sys_info|pickle|storages|tensors)$/
const TAR_MAGIC_AT = 257
/** Shards are named by the index; those of other formats have other names. */
const SHARD_NAME = /\.(bin|pt|pth|ckpt)$/

export async function containerOf(head: FileHead): Promise<ContainerKind | undefined> {
  const text = Buffer.from(head.bytes).toString('latin1')
  if (text.startsWith(LEGACY_MAGIC)) return 'legacy'
  if (head.bytes[0] === PROTO && head.bytes[1]! >= 2 && head.bytes[1]! <= MAX_PROTOCOL) return 'pickle'
  if (text.startsWith('PK\x03\x04')) return MEMBER.test(firstMember(head) ?? '') ? 'archive' : undefined
  if (text.startsWith('ustar', TAR_MAGIC_AT) && TAR_MEMBER.test(text.slice(0, text.indexOf('\0'))))
    return 'tar'
  return (await isWeightMap(head, SHARD_NAME)) ? 'index' : undefined
}

/** A pickle of another program starts with two bytes that are also numbers of other formats, so it is recognised last. */
export async function detect(head: FileHead): Promise<boolean> {
  const container = await containerOf(head)
  return container !== undefined && container !== 'pickle'
}

export async function isDamaged(head: FileHead): Promise<boolean> {
  return (await containerOf(head)) === 'pickle'
}
