/**
 * The formats npy and npz for the registry. They share a folder because an npz archive is a list of npy files. An npy file starts
 * with a magic number; a ZIP archive is an npz if its first member is an array or if it is empty.
 */
import { firstMember } from '../../zip/first_member.js'
import { END, LOCAL_HEADER } from '../../zip/schema.js'
import type { FileHead } from '../file_head.js'
import type { FormatEntry } from '../format.js'
import { isFortranOrder } from './fortran_order.js'
import { MAGIC, FORMAT_NAME as NPY } from './schema.js'
import type { NpyWriteOptions } from './write.js'
import { MEMBER_ENDING, FORMAT_NAME as NPZ } from './zip/npz_schema.js'
import type { NpzWriteOptions } from './zip/npz_write.js'

/** Length of the signatures of ZIP records. */
const U32_BYTES = 4

export const npyEntry = {
  name: NPY,
  extensions: ['.npy'],
  writeOptions: {},
  detect: detectNpy,
  isDamaged: ({ bytes }) => bytes.length > 0 && bytes.every((byte, at) => byte === MAGIC[at]),
  keepsLayout: isFortranOrder,
  load: async () => (await import('./index.js')).npy,
} as const satisfies FormatEntry<NpyWriteOptions>

export const npzEntry = {
  name: NPZ,
  extensions: ['.npz'],
  writeOptions: { zip64: true },
  detect: detectNpz,
  isDamaged: isCutZip,
  keepsLayout: isFortranOrder,
  load: async () => (await import('./index.js')).npz,
} as const satisfies FormatEntry<NpzWriteOptions>

function detectNpy({ bytes }: FileHead): boolean {
  return MAGIC.every((byte, at) => bytes[at] === byte)
}

/** An archive whose first member name reaches beyond the head of the file is legal, but not recognised. */
function detectNpz(head: FileHead): boolean {
  const { bytes, byteLength } = head
  if (byteLength === END.bytes) {
    return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true) === END.signature
  }
  return firstMember(head)?.endsWith(MEMBER_ENDING) === true
}

/** True for a ZIP archive that is truncated inside the header of its first member, so that its kind is unknown. */
function isCutZip({ bytes, byteLength }: FileHead): boolean {
  if (byteLength < U32_BYTES || byteLength >= LOCAL_HEADER.bytes) return false
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true) === LOCAL_HEADER.signature
}
