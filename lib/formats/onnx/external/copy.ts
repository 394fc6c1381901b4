/**
 * Plans unchanged copies of a model and its external data files.
 *
 * A different file of the same name in the target's folder is replaced only where nothing but the replaced model names it; else there is
 * no copy, and values need a file of another name. The same file (by device and inode) stays as it is.
 */
import type { BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkNewSibling } from '../../../bytes/sibling.js'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { SiblingPlan, WritePlan } from '../../format.js'
import { FORMAT_NAME, quote } from '../schema.js'
import { ownData } from './named_files.js'

/** See `Format.planCopy`. */
export async function planCopy(
  source: ByteSource,
  siblings: ReadonlyMap<string, ByteSource>,
  { path }: { readonly path: string },
): Promise<WritePlan | undefined> {
  const plans = await planSiblings(siblings, path)
  return plans && { ...whole(source), siblings: plans }
}

/**
 * Plans copies of the files that are not yet in the folder of `path`, or are those of the model that is replaced.
 *
 * @returns undefined where another file of the folder has one of the names
 * @throws TileworkError ERR_ARGUMENT for a path that is one of the files
 */
export async function planSiblings(
  siblings: ReadonlyMap<string, ByteSource>,
  path: string,
): Promise<readonly SiblingPlan[] | undefined> {
  const copied: SiblingPlan[] = []
  const target = await statOf(path)
  for (const [name, sibling] of siblings) {
    const there = await statOf(join(dirname(path), name))
    if (there === undefined) {
      await checkNewSibling(path, name)
      copied.push({ name, ...whole(sibling) })
    } else if (isSameFile(there, target)) throw ownDataError(name, path)
    else if (!isSameFile(there, await statOf(sibling.label))) {
      if (!(await ownData(path, [name])).has(name)) return undefined
      copied.push({ name, replaces: true, ...whole(sibling) })
    }
  }
  return copied
}

/**
 * Refuses a target that is one of the model's own data files: writing it would destroy the values.
 *
 * @throws TileworkError ERR_ARGUMENT
 */
export async function refuseOwnData(files: ReadonlyMap<string, ByteSource>, path: string): Promise<void> {
  const target = await statOf(path)
  if (target === undefined) return
  for (const [name, file] of files) {
    if (isSameFile(target, await statOf(file.label))) throw ownDataError(name, path)
  }
}

export function whole(source: ByteSource): WritePlan {
  const { byteLength } = source
  return { byteLength, segments: [{ kind: 'range', source, start: 0, end: byteLength }] }
}

async function statOf(path: string | undefined): Promise<BigIntStats | undefined> {
  return path === undefined ? undefined : stat(path, { bigint: true }).catch(() => undefined)
}

function isSameFile(one: BigIntStats, other: BigIntStats | undefined): boolean {
  return other !== undefined && one.dev === other.dev && one.ino === other.ino
}

function ownDataError(name: string, path: string): TileworkError {
  const message = `The target is ${quote(name)}, which has values of the model; save under another name.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}
