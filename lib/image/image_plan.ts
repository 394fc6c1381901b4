/** What one image becomes, as a plan of the addon. Equal requests share one plan, since its weights take as long as a small resize. */
import { systemError } from '../bytes/system_error.js'
import { native } from '../native/addon.js'
import type { NativeImageDescription, NativeImagePlan } from '../native/types.js'
import type { ImageReference, ResizeFilter } from './options.js'
import type { Image, PixelFormat } from './pixels.js'
import { RecentValues } from './recent_values.js'
import { checkBytes, type Frame } from './sizes.js'
import type { Tables } from './tables.js'

/** Changes of colours before the resize. */
export type ColourStep = NativeImageDescription['source']['colours']

export interface ImageRequest {
  readonly image: Pick<Image, 'name' | 'width' | 'height' | 'channels' | 'sampleBytes'>
  readonly pixelFormat: PixelFormat
  readonly colours: ColourStep
  /** Under alpha; three samples. */
  readonly background: readonly number[]
  readonly like: ImageReference
  readonly filter: ResizeFilter
  readonly frame: Frame
  /** The sample, after the colour step, that each channel of the result shows. */
  readonly channels: readonly number[]
  readonly tables: Tables
  /** The sample that a border shows, per channel. */
  readonly border: readonly number[]
  readonly isPlanar: boolean
}

/** A plan with the sizes of its result. */
export interface ImagePlan {
  readonly native: NativeImagePlan
  readonly width: number
  readonly height: number
  readonly channels: number
  readonly elementBytes: number
  readonly isPlanar: boolean
}

/** A few hundred ordinary plans. One image of a hostile size can take 256 MiB of weights, which are not kept. */
const MAX_CACHED_PLAN_BYTES = 33_554_432
/** Bytes of an entry in JavaScript: its key and the objects around it. */
const ENTRY_BYTES = 2048

const recent = new RecentValues<ImagePlan>(
  MAX_CACHED_PLAN_BYTES,
  (plan) => ENTRY_BYTES + plan.native.footprint,
)
/** Numbers for tables, whose text would be long. */
const tableIds = new WeakMap<Tables, number>()
let nextTableId = 0

/** @throws TileworkError ERR_LIMIT for a result or a resize of too many bytes */
export function planOf(request: ImageRequest): ImagePlan {
  const { image, tables, frame, channels, isPlanar } = request
  const { width, height } = frame.size
  const { elementBytes } = tables
  checkBytes(`${image.name} would become ${width} × ${height}`, frame.size, channels.length * elementBytes)
  return recent.get(keyOf(request), () => ({
    native: systemError.wrap(image.name, () => native().planImage(descriptionOf(request))),
    width,
    height,
    channels: channels.length,
    elementBytes,
    isPlanar,
  }))
}

function keyOf({ image, tables, frame, ...rest }: ImageRequest): string {
  let id = tableIds.get(tables)
  if (id === undefined) {
    id = nextTableId++
    tableIds.set(tables, id)
  }
  const { width, height, channels, sampleBytes } = image
  const { resized, crop, place, size, inner } = frame
  return JSON.stringify([width, height, channels, sampleBytes, id, resized, crop, place, size, inner, rest])
}

function descriptionOf(request: ImageRequest): NativeImageDescription {
  const { image, frame, tables } = request
  const { width, height, channels, sampleBytes } = image
  const { size, place, crop, inner = { left: 0, top: 0, ...size }, resized } = frame
  const count = request.channels.length
  const { elementBytes } = tables
  const entries = tables.tables.byteLength / elementBytes / count
  const innerCodes = new Uint8Array(count * elementBytes)
  const outerCodes = new Uint8Array(count * elementBytes)
  for (let channel = 0; channel < count; channel++) {
    const at = (channel * entries + request.border[channel]!) * elementBytes
    innerCodes.set(tables.tables.subarray(at, at + elementBytes), channel * elementBytes)
    outerCodes.set(tables.zero, channel * elementBytes)
  }
  return {
    source: {
      format: request.pixelFormat,
      width,
      height,
      channels,
      sampleBytes,
      colours: request.colours,
      background: request.background,
    },
    ...ruleOf(request),
    resizedWidth: resized.width,
    resizedHeight: resized.height,
    crop,
    ...size,
    ...place,
    inner,
    channels: request.channels,
    elementBytes,
    tables: tables.tables,
    innerCodes,
    outerCodes,
    planar: request.isPlanar,
  }
}

function ruleOf({ like, filter }: ImageRequest): Pick<NativeImageDescription, 'rule' | 'filter'> {
  if (like === 'opencv') {
    const rule = `opencv-${filter}` as NativeImageDescription['rule']
    return { rule, filter: filter === 'nearest' ? 'nearest' : 'bilinear' }
  }
  return { rule: like, filter: filter as NativeImageDescription['filter'] }
}
