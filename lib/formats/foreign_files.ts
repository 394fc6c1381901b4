/**
 * Names files that tilework does not read, for the message that refuses them. Most inputs that fit no format are a model
 * of another framework, an archive around the file, an image, or the answer of a server that had an error.
 *
 * Each kind is recognised by the signature that its specification gives; kinds share no code with the formats.
 */
import type { FileHead } from './file_head.js'

/** A kind of file that is not read. */
export interface ForeignKind {
  /** With an article, for `… is a Parquet file`. */
  readonly name: string
  /** What to do with such a file, as the second half of a sentence. */
  readonly advice?: string
  /** True for an archive that may be an npz all the same, whose reader knows better what is wrong with it. */
  readonly isZip?: boolean
  readonly isJson?: boolean
  /** True for a pickle, of which the reader of PyTorch names what it would import. */
  readonly isPickle?: boolean
}

interface Signature extends ForeignKind {
  /** Where the signature starts. Default: 0. */
  readonly at?: number
  /** Bytes as Latin-1 text. */
  readonly magic: string
}

const DECOMPRESS = 'decompress it first'
const DECODE = 'decode its pixels first'

/** Of protocol 2 to 5; from 4 on, a frame follows. */
const PICKLE = {
  name: 'a Python pickle (joblib, torch)',
  advice: 'loading it would run code, so save its tensors as safetensors in Python',
  isPickle: true,
}

/** The first that matches wins. */
const SIGNATURES: readonly Signature[] = [
  { magic: 'lmgg', name: 'a GGML model' },
  { magic: 'tjgg', name: 'a GGML model' },
  {
    at: 4,
    magic: 'ORTM',
    name: 'a model in the ORT format',
    advice: 'use the ONNX model that it was made of',
  },
  { at: 4, magic: 'ET12', name: 'an ExecuTorch program' },
  { magic: '\x89HDF\r\n\x1a\n', name: 'an HDF5 file (Keras weights, MATLAB 7.3, netCDF-4)' },
  { magic: 'CDF\x01', name: 'a netCDF file' },
  { magic: 'CDF\x02', name: 'a netCDF file' },
  { magic: 'CDF\x05', name: 'a netCDF file' },
  { magic: 'MATLAB 5.0 MAT-file', name: 'a MATLAB file' },
  { magic: 'PAR1', name: 'a Parquet file' },
  { magic: 'ARROW1', name: 'an Arrow file' },
  ...['\x80\x02', '\x80\x03', '\x80\x04\x95', '\x80\x05\x95'].map((magic) => ({ magic, ...PICKLE })),
  { magic: '\x1f\x8b', name: 'a gzip archive', advice: DECOMPRESS },
  { magic: '\x28\xb5\x2f\xfd', name: 'a Zstandard archive', advice: DECOMPRESS },
  { magic: '\xfd7zXZ\0', name: 'an xz archive', advice: DECOMPRESS },
  { magic: 'BZh', name: 'a bzip2 archive', advice: DECOMPRESS },
  { magic: '\x04\x22\x4d\x18', name: 'an LZ4 archive', advice: DECOMPRESS },
  { magic: '7z\xbc\xaf\x27\x1c', name: 'a 7z archive', advice: DECOMPRESS },
  { at: 257, magic: 'ustar', name: 'a tar archive', advice: 'unpack it first' },
  { magic: '\x89PNG\r\n\x1a\n', name: 'a PNG image', advice: DECODE },
  { magic: '\xff\xd8\xff', name: 'a JPEG image', advice: DECODE },
  { magic: 'GIF8', name: 'a GIF image', advice: DECODE },
  { at: 8, magic: 'WEBP', name: 'a WebP image', advice: DECODE },
  { at: 4, magic: 'ftypavif', name: 'an AVIF image', advice: DECODE },
  { magic: 'II*\0', name: 'a TIFF image', advice: DECODE },
  { magic: 'MM\0*', name: 'a TIFF image', advice: DECODE },
  { at: 128, magic: 'DICM', name: 'a DICOM image', advice: DECODE },
  { magic: '%PDF', name: 'a PDF document' },
  { magic: '\x7fELF', name: 'an ELF program or library' },
  {
    magic: 'version https://git-lfs',
    name: 'a Git LFS pointer',
    advice: 'fetch the file itself with git lfs pull',
  },
]

const ZIP = 'PK\x03\x04'
const EMPTY_ZIP = 'PK\x05\x06'
/** Offsets in the local header of the first member of an archive. */
const ZIP_NAME_LENGTH = 26
const ZIP_NAME = 30
const KERAS_MEMBER = /^(metadata\.json|config\.json|model\.weights\.h5)$/

/** The kind of a file that is not read; undefined for one of no kind that is known here. */
export function foreignKind({ bytes }: FileHead): ForeignKind | undefined {
  const text = Buffer.from(bytes).toString('latin1')
  const signature = SIGNATURES.find(({ at = 0, magic }) => text.startsWith(magic, at))
  if (signature) return signature
  if (text.startsWith(ZIP) || text.startsWith(EMPTY_ZIP)) return zipKind(bytes, text)
  return textKind(bytes, text)
}

function zipKind(bytes: Uint8Array, text: string): ForeignKind {
  const length = bytes.length > ZIP_NAME ? bytes[ZIP_NAME_LENGTH]! | (bytes[ZIP_NAME_LENGTH + 1]! << 8) : 0
  const member = text.slice(ZIP_NAME, ZIP_NAME + length)
  if (KERAS_MEMBER.test(member)) return { name: 'a Keras model (a ZIP archive)' }
  return { name: 'a ZIP archive without npy arrays', advice: 'unpack it first', isZip: true }
}

// All control characters of ISO 6429 except tab, line feed, form feed and carriage return.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const BINARY = /[\u0000-\u0008\u000b\u000e-\u001f\u007f]/

const TEXT_KINDS: readonly (ForeignKind & { readonly start: RegExp })[] = [
  { start: /^\s*<(!doctype )?html/i, name: 'an HTML page' },
  { start: /^\s*<\?xml/, name: 'an XML file' },
  { start: /^\s*[[{]/, name: 'a JSON file', isJson: true },
  { start: /^/, name: 'a text file' },
]

/** Every binary format has a NUL or another control character in its first numbers. */
function textKind(bytes: Uint8Array, latin: string): ForeignKind | undefined {
  if (latin === '' || BINARY.test(latin)) return undefined
  try {
    // `stream` accepts a character that is cut at the end of the head.
    new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
  return TEXT_KINDS.find(({ start }) => start.test(latin))
}
