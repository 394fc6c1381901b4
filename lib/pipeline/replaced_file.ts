/** What a save to a path may replace: with `overwrite: false` nothing, and a graph only by a model, unless the caller says so. */
import { lstat, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemError } from '../bytes/system_error.js'
import { TileworkError } from '../errors.js'
import type { SiblingPlan } from '../formats/format.js'
import { type OpenFile, open } from './open.js'
import { formatByName, formatOfModel } from './registry.js'

/**
 * Refuses a name that is taken, before anything is computed. The commit of a new file refuses it again, because another process
 * may take the name meanwhile.
 *
 * @throws TileworkError ERR_IO with a cause of code EEXIST, also for a link that leads nowhere; ERR_PERMISSION
 */
export async function refuseTakenName(path: string): Promise<void> {
  if (!(await isTaken(path))) return
  const cause = Object.assign(new Error('EEXIST: file already exists'), { code: 'EEXIST', path })
  throw new TileworkError('ERR_IO', `${path} exists, and overwrite is false.`, { path, cause })
}

/** As `refuseTakenName`, for the files beside a main file that would be replaced. */
export async function refuseTakenSiblings(folder: string, siblings: readonly SiblingPlan[]): Promise<void> {
  for (const { name } of siblings) await refuseTakenName(join(folder, name))
}

async function isTaken(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw systemError.from(path, error)
  }
}

/**
 * Refuses to replace a model by tensors alone.
 *
 * @throws TileworkError ERR_UNSUPPORTED
 */
export async function refuseLostGraph(path: string): Promise<void> {
  const file = await openReplaced(path)
  if (!file) return
  try {
    const nodes = await nodesOf(file)
    if (nodes === 0) return
    const article = /^[aeio]/.test(file.format) ? 'an' : 'a'
    const graph = `${article} ${file.format} model of ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `${path} holds ${graph}, which tensors alone would replace: its graph would be lost. Write another file, or set the option replaceGraph (--replace-graph).`,
      { path },
    )
  } finally {
    file.close()
  }
}

/** The file that will be replaced; undefined where there is none, and for one that cannot be read: it has no graph to lose. */
async function openReplaced(path: string): Promise<OpenFile | undefined> {
  try {
    // Opening a pipe would wait for its writer.
    if (!(await stat(path)).isFile()) return undefined
    return await open(path, { mode: 'read' })
  } catch {
    return undefined
  }
}

async function nodesOf(file: OpenFile): Promise<number> {
  const { modelProperty } = formatByName(file.format)
  const model = modelProperty === undefined ? undefined : file[modelProperty as keyof OpenFile]
  const format = await formatOfModel(model)?.load()
  return format?.nodesOf(model as object) ?? 0
}
