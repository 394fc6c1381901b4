/** The metadata of a model as texts, for comparisons and the page. */
import { createHash } from 'node:crypto'
import type { ModelDescription } from '../model_description.js'
import type { GgufMetadata } from './metadata.js'
import type { GgufArray, GgufValue } from './metadata_values.js'

/** Elements of an array that are listed; of longer ones a hash says whether they differ. */
const MAX_LISTED = 16

/** What is described of a model. */
interface DescribedModel {
  readonly metadata: GgufMetadata
  readonly version: number
  readonly alignment: number
}

export function describeGguf({ metadata, version, alignment }: DescribedModel): ModelDescription {
  const texts = new Map([
    ['GGUF version', String(version)],
    ['alignment', String(alignment)],
  ])
  for (const key of metadata.keys()) texts.set(key, ggufValueText(metadata.get(key)!))
  return { metadata: texts, graphs: [] }
}

/** A value in one line; long arrays by their length, first elements and a hash. */
export function ggufValueText(value: GgufValue): string {
  if (value.type !== 'array') return String(value.value)
  const { items, value: list } = value
  const shown = elementTexts(list, MAX_LISTED).join(', ')
  if (list.length <= MAX_LISTED) return `[${shown}]`
  const hash = createHash('sha256')
  for (const text of elementTexts(list, list.length)) hash.update(`${text.length}:${text}`)
  return `${items}[${list.length}] [${shown}, …] sha256 ${hash.digest('hex').slice(0, 16)}`
}

function elementTexts(list: GgufArray, count: number): string[] {
  return Array.from({ length: Math.min(count, list.length) }, (_, index) => {
    const item = list[index]!
    if (typeof item === 'object') return ggufValueText(item)
    return typeof item === 'string' ? JSON.stringify(item) : String(item)
  })
}

/** Longest array that tensors carry as text. */
const MAX_TEXT_ITEMS = 100

/** The metadata as tensors of the file carry them, so that a safetensors file of them has them: short values as text. */
export function metadataTexts(metadata: GgufMetadata): ReadonlyMap<string, string> {
  const texts = new Map<string, string>()
  for (const key of metadata.keys()) {
    if ((metadata.arrayLengthOf(key) ?? 0) > MAX_TEXT_ITEMS) continue
    texts.set(key, ggufJsonText(metadata.get(key)!))
  }
  return texts
}

/** Text as it is, other values as JSON. */
function ggufJsonText(value: GgufValue): string {
  if (value.type !== 'array') return String(value.value)
  return `[${elementTexts(value.value, value.value.length).join(',')}]`
}
