/** Writes the two files of an IR: NAME.bin first, then NAME.xml, which names it by its own name. */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { RangedFileSource } from '../../bytes/ranged_file.js'
import type { ByteSource } from '../../bytes/source.js'
import { TileworkError } from '../../errors.js'
import { FileHead } from '../../formats/file_head.js'
import type { SiblingPlan, WritePlan } from '../../formats/format.js'
import type { NamingFormat } from '../../formats/named_files.js'
import { weightsName } from '../../formats/openvino/constants.js'
import { detectIr } from '../../formats/openvino/detect.js'
import { FORMAT_NAME } from '../../formats/openvino/schema.js'

/** An IR names the file of its weights by its own name; other XML files name none. */
export const namingPairs: NamingFormat = {
  pattern: /\.xml$/i,
  namesOf: async (source) => new Set((await isIr(source)) ? [weightsName(source.label)] : []),
}

async function isIr(source: ByteSource): Promise<boolean> {
  return detectIr(await FileHead.read(source))
}

/**
 * The file of weights beside the XML file at `path`. It replaces only the file of an IR that is there already: an unrelated file
 * may have its name.
 *
 * @throws TileworkError ERR_ARGUMENT where the name is taken
 */
export async function planWeights(path: string, weights: WritePlan): Promise<SiblingPlan> {
  if (!/\.xml$/i.test(path)) {
    const message = `${path} must end in .xml: the file of the weights has the same name with .bin.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  }
  const name = weightsName(path)
  const replaces = await isReplaced(path)
  if (!replaces && (await stat(join(dirname(path), name)).catch(() => undefined))) {
    const message = `The weights of ${path} would be written to ${name}, which is there and belongs to no IR; save under another name.`
    throw new TileworkError('ERR_ARGUMENT', message, { format: FORMAT_NAME, path })
  }
  return { ...weights, name, replaces }
}

async function isReplaced(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isFile()) return false
  const source = new RangedFileSource(path)
  try {
    return await isIr(source)
  } finally {
    source.close?.()
  }
}

/** See `Format.planCopy`. @throws TileworkError ERR_ARGUMENT where the name of the weights is taken */
export async function planCopy(
  source: ByteSource,
  siblings: ReadonlyMap<string, ByteSource>,
  { path }: { readonly path: string },
): Promise<WritePlan> {
  const [weights] = siblings.values()
  if (!weights || (await isAt(weights, join(dirname(path), weightsName(path))))) return whole(source)
  return { ...whole(source), siblings: [await planWeights(path, whole(weights))] }
}

/** True where a source is the file at `path`, which then stays as it is. */
async function isAt({ label }: ByteSource, path: string): Promise<boolean> {
  if (label === undefined) return false
  const [one, other] = await Promise.all(
    [label, path].map((each) => stat(each, { bigint: true }).catch(() => undefined)),
  )
  return one !== undefined && other !== undefined && one.dev === other.dev && one.ino === other.ino
}

function whole(source: ByteSource): WritePlan {
  const { byteLength } = source
  return { byteLength, segments: [{ kind: 'range', source, start: 0, end: byteLength }] }
}
