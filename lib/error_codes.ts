/**
 * The error codes. They are stable: programs may switch on them, and the native core has the same codes as an
 * enum, generated from this file. So the file holds literal data and imports nothing.
 */

/** Every error code, with its sentence in the documentation. */
export const ERROR_CODES = {
  ERR_ABORTED: 'The operation was cancelled by its AbortSignal.',
  ERR_ARGUMENT: 'An argument has the wrong type or value.',
  ERR_ASYNC_ONLY: 'The source can only be read asynchronously.',
  ERR_CHECKSUM: 'The checksum of the data differs from the one in the file.',
  ERR_CLOSED: 'The file, or a tensor of it, was used after close().',
  ERR_COMPRESSED: 'Compressed data are damaged, or their size differs from the one in the file.',
  ERR_COO_DUPLICATE: 'A sparse tensor has two entries at the same index, or entries out of order.',
  ERR_COO_INDEX: 'An index of a sparse tensor lies outside the shape.',
  ERR_COO_SHAPE: 'The index and value arrays of a sparse tensor disagree with each other or with the shape.',
  ERR_DEVICE_BUILD: 'A kernel could not be compiled for the device; the message contains the compiler log.',
  ERR_DEVICE_LOST: 'The device or its driver failed during a run.',
  ERR_DEVICE_MEMORY: 'The device has too little free memory.',
  ERR_DTYPE: 'The element type is unknown, or not allowed here.',
  ERR_DUPLICATE: 'Two entries of the file have the same name.',
  ERR_FILE_CHANGED: 'Another process changed or truncated the file while it was open.',
  ERR_GAP: 'Bytes of the file belong to no record, or reserved or padding bytes are not zero.',
  ERR_GRAPH: 'The graph of a model is invalid: its nodes are inconsistent or form a cycle.',
  ERR_HEADER: 'The header breaks the rules of its format.',
  ERR_INTERNAL: 'A fault of tilework itself; please report it with the message.',
  ERR_IO: 'The operating system refused an input or output operation.',
  ERR_LAYOUT_JOIN: 'Two layouts do not have the same logical axes.',
  ERR_LAYOUT_NAME: 'The name is not a known layout and does not follow the layout grammar.',
  ERR_LAYOUT_SHAPE: 'The shape cannot be stored in this layout.',
  ERR_LIMIT: 'A limit of open() or of the call was exceeded.',
  ERR_MISALIGNED: 'The start offset of a record is not a multiple of the alignment that its format requires.',
  ERR_NATIVE_LOAD: 'The native addon could not be loaded.',
  ERR_NO_DATA: 'The tensor has no data in the file.',
  ERR_NO_DEVICE: 'There is no such OpenCL device, or no OpenCL library.',
  ERR_OFFSET_RANGE: 'An offset is outside the range that it may refer to.',
  ERR_OVERFLOW: 'A number in the file, or a product of such numbers, is too large.',
  ERR_OVERLAP: 'Two records of the file share bytes.',
  ERR_PATH_ESCAPE: 'A file refers to a file outside its folder.',
  ERR_PERMISSION: "Node's permission model does not grant access to a file.",
  ERR_QUANTIZATION: 'Quantization parameters are invalid, or do not fit their tensor.',
  ERR_RANGE: 'A requested range or index lies outside the data.',
  ERR_RANK: 'The number of axes exceeds the limit of the format.',
  ERR_TRUNCATED: 'The file ends before the data that it declares.',
  ERR_UNKNOWN_FORMAT: 'The bytes are not in any known format.',
  ERR_UNSUPPORTED: 'The target cannot represent this, or this version does not support it.',
  ERR_VALUE: 'A field has a value that its format does not define.',
  ERR_VIEW_TOO_LARGE: 'The range exceeds the largest typed array of this version of Node.',
  ERR_WORKER_LOST: 'Every worker of a queue that took the file died while it converted it.',
} as const

/** Codes of findings that are not errors at any level, with their sentences in the documentation. */
export const NOTE_CODES = {
  AMBIGUOUS_MESSAGE: 'The content of an ONNX file is valid as more than one message type.',
  BUFFER_LARGER: 'A buffer of a tmfile has more bytes than its tensor needs.',
  FILE_PADDING_MISSING: 'The last record of a BTF file has no padding.',
  LAYOUT_CODE_2: 'A sparse BTF tensor has layout code 2 instead of 1.',
  NAMES_ABSENT: 'Tensors of a tmfile have no names; the reference needs names to save the model.',
  NHWC_NOT_TRANSPOSED: 'The reference permutes the shape of an NHWC constant and not its values.',
  NHWC_SAVED_AGAIN:
    'The reference saved this NHWC model and permutes its shapes again when it loads the model.',
  OLDER_PARAMETERS: 'A parameter block of a tmfile has an older format, which the reference misreads.',
  OPERATOR_NOT_LOADED: 'The reference has no loader for an operator of the model.',
  OPERATOR_NUMBERING: 'An operator number of a tmfile meant another operator when the file was written.',
  OPERATOR_UNKNOWN: 'An operator number of a tmfile is unassigned.',
  OUTPUT_READ:
    'A node reads an output of the graph; the reference reuses its memory, so the caller may see later numbers.',
  RUNTIME_DIFFERS: 'The reference loads values that differ from the file.',
} as const
