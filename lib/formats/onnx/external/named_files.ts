/** The data files that models name, and those of a model that is about to be replaced. */
import { basename, dirname, join, posix } from 'node:path'
import { type IdentifiedFile, identityAt, keyOfName } from '../../../bytes/file_identity.js'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import { Budget } from '../../budget.js'
import { FileFault } from '../../file_fault.js'
import { keysNamedIn, type NamingFormat, namesAt } from '../../named_files.js'
import { walkSource } from '../protobuf/wire.js'
import { DEFAULT_LIMITS, MAX_EXTERNAL_FILES } from '../schema.js'
import { decodeText } from '../text/decoded_source.js'
import { TEXT_EXTENSIONS } from '../text/text_kind.js'
import { nameOfLocation } from './files.js'
import { LocationFinder } from './unlisted_files.js'

export const namingModels: NamingFormat = {
  pattern: new RegExp(`(?:${['.onnx', ...TEXT_EXTENSIONS].join('|').replaceAll('.', '\\.')})$`, 'i'),
  namesOf,
}

async function namesOf(file: ByteSource): Promise<ReadonlySet<string> | undefined> {
  const source = await decodeText(file, 'ModelProto', DEFAULT_LIMITS.depth).catch((error: unknown) => {
    if (error instanceof TileworkError) return null
    throw error
  })
  return source === null ? undefined : namesOfMessage(source ?? file)
}

async function namesOfMessage(source: ByteSource): Promise<ReadonlySet<string> | undefined> {
  const finder = new LocationFinder(source, new Budget({}, DEFAULT_LIMITS))
  try {
    await walkSource(finder.message('ModelProto', 0, source.byteLength, 0), finder.cursor)
  } catch (error) {
    if (error instanceof FileFault) return undefined
    throw error
  }
  if (finder.locations.size > MAX_EXTERNAL_FILES) return undefined
  return new Set([...finder.locations.keys()].map(nameOfLocation))
}

/**
 * The data of the model at `path` that a new model under that name leaves without use: files with the names that saves of
 * this model choose. Others may not be ours.
 *
 * @param location - as the save was asked for
 */
export async function replacedData(path: string, location: string | undefined): Promise<IdentifiedFile[]> {
  const patterns = [`${basename(path)}.data`, ...(location === undefined ? [] : [location])].map(patternOf)
  const names = (await namesAt(path, namingModels)) ?? new Set()
  const ours = [...names].filter((name) => patterns.some((pattern) => pattern.test(name)))
  return identify(dirname(path), ours)
}

/** The files of `names` that only the model at `path` refers to, so that a save of this model may replace them. */
export async function ownData(path: string, names: readonly string[]): Promise<ReadonlySet<string>> {
  const own = (await namesAt(path, namingModels)) ?? new Set()
  const candidates = names.filter((name) => own.has(name))
  if (candidates.length === 0) return new Set()
  const others = await keysNamedIn(dirname(path), namingModels, basename(path))
  const sole = others ? candidates.filter((name) => !others.has(keyOfName(name))) : []
  return new Set((await identify(dirname(path), sole)).map(({ name }) => name))
}

async function identify(folder: string, names: readonly string[]): Promise<IdentifiedFile[]> {
  const files = await Promise.all(
    names.map(async (name) => ({ name, identity: await identityAt(join(folder, name)) })),
  )
  return files.filter((file): file is IdentifiedFile => file.identity !== undefined)
}

/** Fits a requested name and all names that are made of it: see `namesForData`. */
function patternOf(wanted: string): RegExp {
  const extension = posix.extname(wanted)
  const stem = wanted.slice(0, wanted.length - extension.length)
  const part = '(?:-\\d{5}-of-\\d{5})?(?:-[1-9]\\d*)?'
  return new RegExp(`^${escaped(stem)}${part}${escaped(extension)}$`, 'u')
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
}
