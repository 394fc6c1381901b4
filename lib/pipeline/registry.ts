/**
 * The file formats of tilework. A new format needs its folder and one line in `FORMATS`. The entry of a format is always loaded;
 * its implementation is loaded when the first file of the format is read or written.
 */

import { extname } from 'node:path'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import { btfEntry } from '../formats/btf/entry.js'
import { FileHead } from '../formats/file_head.js'
import type { Detection, Format, FormatEntry, ModelFormatEntry } from '../formats/format.js'
import { ggufEntry } from '../formats/gguf/entry.js'
import { modelFormatOf } from '../formats/model_brand.js'
import { npyEntry, npzEntry } from '../formats/npy/entry.js'
import { pytorchEntry } from '../formats/pytorch/entry.js'
import { safetensorsEntry } from '../formats/safetensors/entry.js'
import { tfliteEntry } from '../formats/tflite/entry.js'
import { onnxEntry } from '../models/onnx/entry.js'
import { openvinoEntry } from '../models/openvino/entry.js'
import { tmfileEntry } from '../models/tmfile/entry.js'
import { expectedText } from '../nearest_names.js'
import type { AnyTensor } from '../tensor/tensor.js'
import { valueText } from '../value_text.js'

/**
 * In the order of detection: formats with a magic number first, then those without. BTF is last, because the few numbers by which
 * it is recognised may also occur at the start of other files.
 */
export const FORMATS = {
  npy: npyEntry,
  npz: npzEntry,
  gguf: ggufEntry,
  pytorch: pytorchEntry,
  tflite: tfliteEntry,
  safetensors: safetensorsEntry,
  openvino: openvinoEntry,
  tmfile: tmfileEntry,
  onnx: onnxEntry,
  btf: btfEntry,
} as const satisfies Record<string, FormatEntry<never>>

/** Name of a file format. */
export type FormatName = keyof typeof FORMATS

type Entry = (typeof FORMATS)[FormatName]
type OptionsOf<E> = E extends { load(): Promise<infer F> }
  ? F extends Format<infer Options, AnyTensor>
    ? Options
    : never
  : never
type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never

/** Options for the writers of all formats; each writer reads its own. */
export type WriteOptions = Intersection<OptionsOf<Entry>>

/** Names of the options of all writers, because tensors may be written in any format. */
export function writeOptionNames(): string[] {
  return [...new Set(allFormats().flatMap(({ writeOptions }) => Object.keys(writeOptions)))]
}

/** The format of tensors that are not from a file, where neither option nor extension names a format. */
const DEFAULT_FORMAT: FormatName = 'btf'

/** @throws TileworkError ERR_ARGUMENT for an unknown name */
export function formatByName(name: string): FormatEntry {
  if (typeof name !== 'string' || !Object.hasOwn(FORMATS, name)) {
    const known = allFormats().map((format) => format.name)
    throw new TileworkError('ERR_ARGUMENT', `unknown format ${valueText(name)}${expectedText(name, known)}`)
  }
  return FORMATS[name as FormatName]
}

/** The format and path of the file from which the content comes, if any. */
export interface OwnFormat {
  readonly format?: FormatName | undefined
  /** Path of the file. */
  readonly path?: string | undefined
}

/**
 * The format to write: the named one, otherwise that of the path's extension, otherwise the content's own.
 *
 * @throws TileworkError ERR_ARGUMENT for an unknown name, for an unknown extension that the content's own file does not have,
 * and for tensors that are not from a file and a path without extension: a typo would otherwise give a file that cannot be opened
 */
export function chooseFormat(
  name: string | undefined,
  path: string | undefined,
  own: OwnFormat = {},
): FormatEntry {
  checkTarget(name, path, own.path)
  if (name !== undefined) return formatByName(name)
  const named = formatByExtension(path)
  if (named) return named
  if (own.format === undefined && path !== undefined) {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${path} has no extension that names a format; set the option format to one of: ${namesOf(writtenFormats())}.`,
    )
  }
  return formatByName(own.format ?? DEFAULT_FORMAT)
}

/**
 * Checks a target independently of its content.
 *
 * @param ownPath - path of the file from which the content comes; its extension is allowed
 * @throws TileworkError ERR_ARGUMENT for an unknown format, and for an unknown extension where no format is named
 */
export function checkTarget(
  name: string | undefined,
  path: string | undefined,
  ownPath: string | undefined,
): void {
  if (name !== undefined) {
    formatByName(name)
    return
  }
  const extension = path === undefined ? '' : extname(path).toLowerCase()
  if (extension === '' || formatByExtension(path)) return
  if (ownPath !== undefined && extname(ownPath).toLowerCase() === extension) return
  const known = writtenFormats().flatMap(({ extensions }) => extensions)
  throw new TileworkError(
    'ERR_ARGUMENT',
    `${path} has the unknown extension "${extension}"${expectedText(extension, known)} For another name set the option format.`,
  )
}

function writtenFormats(): FormatEntry[] {
  return allFormats().filter(({ isReadOnly }) => !isReadOnly)
}

function namesOf(formats: readonly FormatEntry[]): string {
  return formats.map(({ name }) => name).join(', ')
}

/** The format of the model `content`; undefined for anything that is not a model. */
export function formatOfModel(content: unknown): ModelFormatEntry | undefined {
  const name = modelFormatOf(content)
  return name === undefined ? undefined : (formatByName(name) as ModelFormatEntry)
}

/** The format of a path's extension; `.safetensors.index.json` is one extension. */
export function formatByExtension(path: string | undefined): FormatEntry | undefined {
  return allFormats().find((format) => extensionOf(format, path) !== undefined)
}

/** The extension of a path, if it belongs to the format. */
export function extensionOf({ extensions }: FormatEntry, path: string | undefined): string | undefined {
  const name = path?.toLowerCase()
  return extensions.find((extension) => name?.endsWith(extension))
}

/** A format and the result of its detection; `detection` is absent where only the extension indicates the format. */
export interface DetectedFormat {
  readonly entry: FormatEntry
  readonly detection?: Detection
}

/**
 * The format of a source: that of its extension if the content matches; otherwise the first whose content matches; otherwise that
 * of the extension or of a damaged start, so that its reader reports what is wrong.
 *
 * @param name - a path, or the name of an upload
 */
export async function detectFormat(
  source: ByteSource,
  name: string | undefined,
): Promise<DetectedFormat | undefined> {
  const expected = formatByExtension(name)
  const others = allFormats().filter((format) => format !== expected)
  const head = await FileHead.read(source)
  for (const entry of expected ? [expected, ...others] : others) {
    const detection = await entry.detect(head)
    if (detection !== false) return { entry, detection }
  }
  if (expected) return { entry: expected }
  for (const entry of others) if (await entry.isDamaged?.(head)) return { entry }
  return undefined
}

function allFormats(): FormatEntry[] {
  return Object.values(FORMATS)
}
