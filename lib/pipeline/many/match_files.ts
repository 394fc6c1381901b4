/** Lists the files that match a pattern. */
import { checkOptions, readInput } from '../../caller_input.js'
import { throwIfAborted } from '../../cancel.js'
import { TileworkError } from '../../errors.js'
import { valueText } from '../../value_text.js'
import { matchPattern } from './pattern.js'

export interface MatchOptions {
  readonly signal?: AbortSignal
}

/**
 * Paths of the files that match a pattern with `*`, `**`, `?`, `[…]`, `{…,…}` or `!(…)`, sorted by code units; an empty list
 * without matches. Names that start with a dot match only where the pattern has the dot. Text without wildcards matches the file
 * of that name.
 *
 * @throws TileworkError ERR_ARGUMENT unless the pattern is a string; ERR_IO for a folder that cannot be read; ERR_ABORTED
 */
export async function matchFiles(pattern: string, options: MatchOptions = {}): Promise<string[]> {
  checkOptions(options, 'matchFiles', ['signal'])
  const signal = readInput('The options of matchFiles', () => options.signal)
  if (typeof pattern !== 'string') {
    throw new TileworkError('ERR_ARGUMENT', `A pattern is ${valueText(pattern)}; it must be a string.`)
  }
  throwIfAborted(signal)
  const { files } = await matchPattern(pattern, signal)
  throwIfAborted(signal)
  return files.map(({ path }) => path).sort()
}
