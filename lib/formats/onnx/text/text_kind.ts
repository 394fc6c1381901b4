/** The forms of an ONNX model as text: their names, extensions, and how their start is recognised. */
import { camelCase, fieldsByName } from '../schema.js'

/** How a file stores a message: as the bytes of protobuf, in ONNX text, or in the text or JSON form of protobuf. */
export type OnnxEncoding = 'protobuf' | 'onnxtxt' | 'textproto' | 'json'

export type TextKind = Exclude<OnnxEncoding, 'protobuf'>

/** By kind; other files have the other extensions too, so those that are common elsewhere (`.json`) are recognised by content. */
const EXTENSIONS: Readonly<Record<TextKind, readonly string[]>> = {
  onnxtxt: ['.onnxtxt', '.onnxtext'],
  textproto: ['.textproto', '.txtpb', '.pbtxt'],
  json: ['.onnxjson'],
}

export const TEXT_EXTENSIONS: readonly string[] = Object.values(EXTENSIONS).flat()

export const ENCODINGS: readonly OnnxEncoding[] = ['protobuf', ...(Object.keys(EXTENSIONS) as TextKind[])]

/** The kind of text that the extension of a path means. */
export function kindOfPath(path: string | undefined): TextKind | undefined {
  const name = path?.toLowerCase()
  return (Object.keys(EXTENSIONS) as TextKind[]).find((kind) =>
    EXTENSIONS[kind].some((extension) => name?.endsWith(extension)),
  )
}

const FIELDS = [...fieldsByName('ModelProto').keys()]
const NAMES = FIELDS.flatMap((name) => [name, camelCase(name)])

/** What a model begins with, after a byte order mark, whitespace and comments. */
const STARTS: Readonly<Record<TextKind, RegExp>> = {
  onnxtxt: new RegExp(`^<\\s*(?:${FIELDS.join('|')})\\s*:`),
  textproto: new RegExp(`^(?:${FIELDS.join('|')})\\s*[:{<]`),
  json: new RegExp(`^\\{\\s*"(?:${NAMES.join('|')})"\\s*:`),
}

/** The kind of text that the first bytes of a file are. */
export function kindOfStart(head: Uint8Array): TextKind | undefined {
  const text = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
    .toString('latin1')
    .replace(/^\xef\xbb\xbf/, '')
    .replace(/^(?:\s+|#[^\n]*\n)*/, '')
  return (Object.keys(STARTS) as TextKind[]).find((kind) => STARTS[kind].test(text))
}
