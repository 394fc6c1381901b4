/**
 * npy, numpy's format of one array: the constants of the format and the limits of reading it.
 *
 *     file   = magic "\x93NUMPY" · major u8 · minor u8 · header length (u16, from version 2.0 on u32) · header · data
 *     header = a Python dictionary literal with the keys descr, fortran_order and shape, spaces, a line feed
 *     data   = the elements, last axis fastest, or first axis fastest where fortran_order is True
 *
 * Versions 1.0 and 2.0 write the header in Latin-1, 3.0 in UTF-8. Source: the format document in the module
 * docstring of `numpy/lib/_format_impl.py` (formerly `numpy/lib/format.py`) of numpy 2.4, and the code below it.
 */

import type { DefaultLimits } from '../budget.js'

export const FORMAT_NAME = 'npy'

export const MAGIC: Uint8Array = Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59)

/** Magic, version, and the shorter of the two length fields. */
export const SHORTEST_PREFIX_BYTES = 10

/** Offset of the length field, after magic and version. */
export const LENGTH_FIELD_AT = 8

export interface NpyVersion {
  readonly lengthBytes: 2 | 4
  readonly encoding: 'latin1' | 'utf-8'
}

/** Header forms by major version; the minor version has always been 0. */
export const VERSIONS: ReadonlyMap<number, NpyVersion> = new Map([
  [1, { lengthBytes: 2, encoding: 'latin1' }],
  [2, { lengthBytes: 4, encoding: 'latin1' }],
  [3, { lengthBytes: 4, encoding: 'utf-8' }],
])

/** numpy pads the header to a multiple of this, so that mapped data are aligned. */
export const DATA_ALIGNMENT = 64

/**
 * Digits of the largest dimension. numpy reserves space for them, so that the dimension of the growing axis (the first, or the
 * last in Fortran order) can be rewritten in place.
 */
export const GROWTH_DIGITS = 21

/** The maximum of numpy 2; numpy 1 has 32. */
export const MAX_RANK = 64

/** Limits of reading a file. */
export const DEFAULT_LIMITS = {
  /**
   * numpy's own `max_header_size`, for one array. The header of an array of 64 axes has less than 1,500 bytes; only
   * structured types, which tilework does not read, need more.
   */
  headerBytes: 10_000,
} as const satisfies DefaultLimits

/** numpy counts bytes in signed 64-bit numbers and refuses arrays from this size on, even where another dimension is 0. */
export const BYTES_LIMIT = 2n ** 63n

/** numpy holds the item size in a signed 32-bit number. */
export const MAX_ITEM_BYTES = 2 ** 31 - 1

/** Metadata key of a numpy type without a tilework name: dates, raw bytes, fixed-length strings. */
export const DESCR_KEY = 'numpy.descr'

/** numpy's name for the first unnamed array. */
export const UNNAMED = 'arr_0'
