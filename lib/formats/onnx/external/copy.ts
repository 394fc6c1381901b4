/**
 * Copies a model and its files of external data as they are. A file of the target's folder that has a name of one of
 * them and is another file belongs to somebody else, so nothing is written then; one that is the very file stays.
 */
import type { BigIntStats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { checkNewSibling } from '../../../bytes/sibling.js'
import type { ByteSource } from '../../../bytes/source.js'
import { TileworkError } from '../../../errors.js'
import type { SiblingPlan, WritePlan } from '../../format.js'
import { FORMAT_NAME, quote } from '../schema.js'

/** See `Format.planCopy`. @throws TileworkError ERR_ARGUMENT where a name is taken */
export async function planCopy(
  source: ByteSource,
  siblings: ReadonlyMap<string, ByteSource>,
  { path }: { readonly path: string },
): Promise<WritePlan> {
  return { ...whole(source), siblings: await planSiblings(siblings, path) }
}

/** Copies of those files that are not in the folder of `path` already. @throws TileworkError ERR_ARGUMENT as above */
export async function planSiblings(
  siblings: ReadonlyMap<string, ByteSource>,
  path: string,
): Promise<SiblingPlan[]> {
  const copied: SiblingPlan[] = []
  const target = await statOf(path)
  for (const [name, sibling] of siblings) {
    const there = await statOf(join(dirname(path), name))
    if (there === undefined) {
      await checkNewSibling(path, name)
      copied.push({ name, ...whole(sibling) })
    } else if (isSameFile(there, target)) throw ownDataError(name, path)
    else if (!isSameFile(there, await statOf(sibling.label))) throw takenError(name, path)
  }
  return copied
}

/**
 * Refuses a file that is one of those that a model's values lie in: whatever is written there, the model loses them.
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

/** The model would be written over the values that it refers to. */
function ownDataError(name: string, path: string): TileworkError {
  const message = `The file would replace ${quote(name)}, which it refers to; save it under another name.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}

function takenError(name: string, path: string): TileworkError {
  const message = `The model refers to ${quote(name)}, and the folder of the target has another file of that name; save it into another folder.`
  return new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
}
