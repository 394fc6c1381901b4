/**
 * The records of ZIP that npz and PyTorch use.
 *
 *     archive   = (local header · name · extra · data · data descriptor?) × n · directory · zip64 end? · end
 *     directory = (entry · name · extra · comment) × n
 *
 * All numbers are little-endian. A size or offset of 0xffffffff is in a zip64 extra field instead. Source: PKWARE's
 * APPNOTE.TXT 6.3.10, sections 4.3 to 4.5, and Python's `zipfile`, which numpy writes and reads archives with.
 *
 * No package reads the records, because those for Node stop at the first fault and report it without code and offset. They
 * also do not compare local headers with the directory or members with each other (the attacks on a reader that maps
 * members), and read each entry through its own streams, which is slow for many small arrays.
 */

/** Signature and fixed size of a record, without its variable parts. */
export const LOCAL_HEADER = { signature: 0x04034b50, bytes: 30 } as const
export const DIRECTORY_ENTRY = { signature: 0x02014b50, bytes: 46 } as const
export const END = { signature: 0x06054b50, bytes: 22 } as const
export const ZIP64_END = { signature: 0x06064b50, bytes: 56 } as const
export const ZIP64_LOCATOR = { signature: 0x07064b50, bytes: 20 } as const
export const DESCRIPTOR_SIGNATURE = 0x08074b50

/** A number that does not fit its field is written as one of these and is in a zip64 field. */
export const U16_ESCAPE = 0xffff
export const U32_ESCAPE = 0xffffffff

export const STORED = 0
export const DEFLATED = 8

/** General purpose flags. */
export const FLAG_ENCRYPTED = 0x0001
/** CRC and sizes follow the data, because the writer streamed the file. */
export const FLAG_DESCRIPTOR = 0x0008
export const FLAG_PATCH = 0x0020
export const FLAG_STRONG_ENCRYPTION = 0x0040
export const FLAG_UTF8 = 0x0800
export const FLAG_MASKED = 0x2000

export const EXTRA_ZIP64 = 0x0001
/** Android's tag for an extra field that only aligns what follows; others skip it. */
export const EXTRA_ALIGNMENT = 0xd935

/** Maximum comment after the end record, and so the distance to search back from the end of the file. */
export const MAX_COMMENT_BYTES = 0xffff

/** Deflate encodes at most 258 bytes in two bits. */
export const MAX_DEFLATE_RATIO = 1032
