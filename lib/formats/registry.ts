/** The file formats that tilework knows. Adding one is its folder and one line here. */
import { extname } from 'node:path'
import type { ByteSource } from '../bytes/source.js'
import { TileworkError } from '../errors.js'
import { valueText } from '../value_text.js'
import { btf } from './btf/index.js'
import type { Format } from './format.js'
import { npy, npz } from './npy/index.js'
import { onnx } from './onnx/index.js'
import { safetensors } from './safetensors/index.js'
import { tmfile } from './tmfile/index.js'

/**
 * In the order in which content is asked: formats that begin with a magic number first, then those that have none, BTF
 * last: its few numbers are easily taken for something else's.
 */
export const FORMATS = { npy, npz, safetensors, tmfile, onnx, btf } as const satisfies Record<
  string,
  Format<never>
>

/** Name of a file format. */
export type FormatName = keyof typeof FORMATS

type OptionsOf<F> = F extends Format<infer Options> ? Options : never
type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never

/** Options for the writers of all formats; each writer looks at its own. */
export type WriteOptions = Intersection<OptionsOf<(typeof FORMATS)[FormatName]>>

/** Names of the options of all writers: what is converted may become any format. */
export function writeOptionNames(): string[] {
  return [...new Set(allFormats().flatMap(({ writeOptions }) => writeOptions as readonly string[]))]
}

/** What tensors without a file are written as when nothing says otherwise. */
const DEFAULT_FORMAT: FormatName = 'btf'

/** @throws TileworkError ERR_ARGUMENT for a name that is no format */
export function formatByName(name: string): Format<unknown> {
  if (typeof name !== 'string' || !Object.hasOwn(FORMATS, name)) {
    const known = Object.keys(FORMATS).join(', ')
    throw new TileworkError('ERR_ARGUMENT', `${valueText(name)} is no known format; known are: ${known}.`)
  }
  return FORMATS[name as FormatName] as Format<unknown>
}

/**
 * The format in which something is written: the one named, else the one of the path's extension, else its own.
 *
 * @throws TileworkError ERR_ARGUMENT for a name that is no format, and for an extension that is of none where what is
 * written has no format of its own: a slip of the pen would else become a file that nobody can open
 */
export function chooseFormat(
  name: string | undefined,
  path: string | undefined,
  own: FormatName | undefined,
): Format<unknown> {
  if (name !== undefined) return formatByName(name)
  const extension = path === undefined ? '' : extname(path).toLowerCase()
  const named = formatByExtension(path)
  if (named) return named
  if (own === undefined && extension !== '') {
    throw new TileworkError(
      'ERR_ARGUMENT',
      `${extension} is no extension of a known format (${Object.keys(FORMATS).join(', ')}); name the format to write it under this name.`,
    )
  }
  return formatByName(own ?? DEFAULT_FORMAT)
}

/** The format whose model something is. */
export function formatOfModel(content: unknown): Format<unknown> | undefined {
  return allFormats().find((format) => format.isModel?.(content) === true)
}

/** The format whose extension a path has; `.safetensors.index.json` is one extension. */
export function formatByExtension(path: string | undefined): Format<unknown> | undefined {
  return allFormats().find((format) => extensionOf(format, path) !== undefined)
}

/** The extension of the format that a path has. */
export function extensionOf({ extensions }: Format<unknown>, path: string | undefined): string | undefined {
  const name = path?.toLowerCase()
  return extensions.find((extension) => name?.endsWith(extension))
}

/**
 * The format of a source: the one of its extension where the content agrees, else the first whose content agrees,
 * else the one of the extension, whose reader then says what is wrong.
 */
export async function detectFormat(
  source: ByteSource,
  path: string | undefined,
): Promise<Format<unknown> | undefined> {
  const expected = formatByExtension(path)
  const others = allFormats().filter((format) => format !== expected)
  for (const format of expected ? [expected, ...others] : others) {
    if (await format.detect(source)) return format
  }
  return expected
}

function allFormats(): Format<unknown>[] {
  return Object.values(FORMATS) as Format<unknown>[]
}
