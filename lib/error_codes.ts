/**
 * The error codes. They are stable: programs may switch on them, and the native core has the same codes as an
 * enum, generated from this file. So the file holds literal data and imports nothing.
 */

/** Every code, with the sentence that the documentation shows for it. */
export const ERROR_CODES = {
  ERR_ABORTED: 'The operation was cancelled by its AbortSignal.',
  ERR_ARGUMENT: 'An argument has the wrong type or value.',
  ERR_ASYNC_ONLY: 'The source can only be read asynchronously.',
  ERR_CHECKSUM: 'The data do not have the checksum that the file declares for them.',
  ERR_CLOSED: 'The file, or a tensor of it, was used after close().',
  ERR_COMPRESSED: 'Compressed data are damaged, or do not have the size that the file declares.',
  ERR_COO_DUPLICATE: 'A sparse tensor has two entries at the same index, or entries out of order.',
  ERR_COO_INDEX: 'An index of a sparse tensor lies outside the shape.',
  ERR_COO_SHAPE: 'The index and value arrays of a sparse tensor do not fit each other or the shape.',
  ERR_DEVICE_BUILD: 'A kernel could not be built for the device; the message has the log of its compiler.',
  ERR_DEVICE_LOST: 'The device or its driver failed while it worked.',
  ERR_DEVICE_MEMORY: 'The device has no memory left for this.',
  ERR_DTYPE: 'The element type is unknown, or not allowed here.',
  ERR_DUPLICATE: 'Two entries of the file have the same name.',
  ERR_FILE_CHANGED: 'The file was changed or truncated by someone else while it was open.',
  ERR_GAP: 'Bytes of the file belong to no record, or reserved or padding bytes are not zero.',
  ERR_GRAPH:
    'The graph of a model cannot be run as it stands: nodes do not fit together, or wait for each other.',
  ERR_HEADER: 'The header is not written by the rules of its format.',
  ERR_INTERNAL: 'A fault of tilework itself; please report it with the message.',
  ERR_IO: 'The operating system refused an input or output operation.',
  ERR_LAYOUT_JOIN: 'Two layouts do not have the same logical axes.',
  ERR_LAYOUT_NAME: 'The name is no known layout and does not follow the layout grammar.',
  ERR_LAYOUT_SHAPE: 'The shape cannot be stored in this layout.',
  ERR_LIMIT: 'A limit of open() or of the call was exceeded.',
  ERR_MISALIGNED: 'A record does not start at a multiple of the bytes that its format demands.',
  ERR_NATIVE_LOAD: 'The native addon could not be loaded.',
  ERR_NO_DATA: 'The tensor has no data in the file.',
  ERR_NO_DEVICE: 'There is no such OpenCL device, or no OpenCL library.',
  ERR_OFFSET_RANGE: 'An offset points outside the area where it may point.',
  ERR_OVERFLOW: 'A number of the file, or a product of such numbers, is too large to be handled.',
  ERR_OVERLAP: 'Two records of the file share bytes.',
  ERR_PATH_ESCAPE: 'A file names another one that lies outside its folder.',
  ERR_QUANTIZATION: 'Quantization parameters do not fit their tensor or are no numbers that can be used.',
  ERR_RANGE: 'A requested range or index lies outside the data.',
  ERR_RANK: 'The number of axes is larger than the format allows.',
  ERR_TRUNCATED: 'The file ends before the data that it declares.',
  ERR_UNKNOWN_FORMAT: 'The bytes are not readable as any known format.',
  ERR_UNSUPPORTED: 'The target cannot hold this, or this version cannot do it.',
  ERR_VALUE: 'A field has a value that its format does not know.',
  ERR_VIEW_TOO_LARGE: 'The range is larger than one typed array may be on this version of Node.',
} as const

/** Codes of findings that are no error at any level, with the sentence that the documentation shows for each. */
export const NOTE_CODES = {
  AMBIGUOUS_MESSAGE: 'The content of an ONNX file fits more than one message.',
  BUFFER_LARGER: 'A buffer of a tmfile has more bytes than its tensor needs.',
  FILE_PADDING_MISSING: 'The last record of a BTF file is not padded.',
  LAYOUT_CODE_2: 'A sparse BTF tensor has layout code 2 in place of 1.',
  NAMES_ABSENT: 'Tensors of a tmfile have no names, which the reference needs to save the model.',
  NHWC_NOT_TURNED: 'The reference turns the shape of an NHWC constant and leaves its numbers.',
  NHWC_SAVED_AGAIN:
    'An NHWC model was saved by the reference, which turns its shapes a second time when it loads it.',
  OLDER_PARAMETERS: 'A parameter block of a tmfile has an older form, which the reference misreads.',
  OPERATOR_NOT_LOADED: 'The reference has no loader for an operator.',
  OPERATOR_NUMBERING: 'An operator number of a tmfile meant another operator when the file was written.',
  OPERATOR_UNKNOWN: 'An operator number of a tmfile is unassigned.',
  RUNTIME_DIFFERS: 'The reference loads something else than the file says.',
} as const
