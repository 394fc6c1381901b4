/** Output paths: a different one for each input, and none that replaces an input. */
import { extname, join, resolve } from 'node:path'
import { isWindows } from '../../bytes/windows_names.js'
import { TileworkError } from '../../errors.js'
import { extensionOf, formatByExtension } from '../registry.js'
import type { InputFile } from './input_list.js'
import { RealPaths } from './real_paths.js'
import { publicName, urlBelow, urlOf } from './remote_files.js'

/** An input with the path of its output. */
export interface FilePair {
  readonly input: string
  readonly output: string
  /** Length of the input when the list was made. */
  readonly byteLength: number
}

export interface OutputTarget {
  readonly outDir: string
  /** New extension of each output, with the dot. */
  readonly extension?: string | undefined
  /** Other files that no output may replace, each with a description. */
  readonly reserved?: ReadonlyMap<string, string>
}

/**
 * Pairs each input with its output below `outDir`, without writing anything.
 *
 * @throws TileworkError ERR_ARGUMENT where two inputs have the same output, or an output would replace an input
 */
export function pairOutputs(inputs: readonly InputFile[], target: OutputTarget): FilePair[] {
  const paths = new RealPaths()
  const folder = urlOf(target.outDir)
  const realOf = (path: string): string => (urlOf(path) ? path : sameName(paths.locate(resolve(path)).real))
  const inputsByReal = new Map(inputs.map(({ path, real }) => [urlOf(path) ? real : sameName(real), path]))
  const reserved = new Map(
    [...(target.reserved ?? [])].map(([path, what]) => [sameName(paths.locate(path).real), what]),
  )
  const taken = new Map<string, string>()
  return inputs.map((input) => {
    const name = withExtension(input.name, target.extension)
    const output = folder ? urlBelow(folder, name) : join(target.outDir, name)
    const key = realOf(output)
    const other = taken.get(key)
    if (other !== undefined) {
      refuse(
        `${publicName(other)} and ${publicName(input.path)} would both be written to ${publicName(output)}; set base to a folder above both to keep their paths.`,
      )
    }
    const replaced = inputsByReal.get(key)
    if (replaced !== undefined) {
      const whose = replaced === input.path ? '' : ` with the output of ${publicName(input.path)}`
      refuse(
        `${publicName(output)} would overwrite the input ${publicName(replaced)}${whose}; write to another folder.`,
      )
    }
    const what = reserved.get(key)
    if (what !== undefined) refuse(`The output of ${input.path} would replace ${what}.`)
    taken.set(key, input.path)
    return { input: input.path, output, byteLength: input.byteLength }
  })
}

/** The path below the output folder, with the extension of the written format. */
export function withExtension(name: string, extension: string | undefined): string {
  if (extension === undefined) return name
  const format = formatByExtension(name)
  const own = (format && extensionOf(format, name)) ?? extname(name)
  return name.slice(0, name.length - own.length) + extension
}

/** Equal for names that denote the same file: macOS ignores case and Unicode normalization, Windows ignores case. */
function sameName(path: string): string {
  if (process.platform === 'darwin') return path.normalize('NFC').toLowerCase()
  return isWindows ? path.toLowerCase() : path
}

function refuse(message: string): never {
  throw new TileworkError('ERR_ARGUMENT', message)
}
