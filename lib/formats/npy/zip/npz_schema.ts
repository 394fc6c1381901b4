/** Constants of npz beyond ZIP, and the limits of reading it. */
import type { DefaultLimits } from '../../budget.js'

export const FORMAT_NAME = 'npz'

/** numpy reads members with this ending as arrays; the array's name comes before it. */
export const MEMBER_ENDING = '.npy'

/** Limits of reading an archive. */
export const DEFAULT_NPZ_LIMITS = {
  /**
   * Members; each takes about a kilobyte of memory. An archive of the plain ZIP format ends at 65,535, and nobody saves
   * a million arrays in one.
   */
  tensors: 2 ** 20,
  /** Directory, local headers and array headers: 256 bytes for each of a million members. */
  headerBytes: 2 ** 28,
  /**
   * Stored arrays cannot exceed the file, but compressed ones may have a thousand times its length. Any machine can hold
   * 4 GiB; beyond that, 4 times the file.
   */
  totalBytes: { perFileByte: 4, atLeast: 2 ** 32 },
} as const satisfies DefaultLimits

/** Alignment of members in bytes. The length of numpy's headers is a multiple of it, so the data are aligned for mapping. */
export const MEMBER_ALIGNMENT = 64
