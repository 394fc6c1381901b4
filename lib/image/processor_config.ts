/**
 * The fields of a `preprocessor_config.json`, checked. A field that is missing or null takes the default of its class.
 * Source: transformers 5.24, `image_processing_*.py` of each class and `image_processing_utils.py`.
 */
import { TileworkError } from '../errors.js'
import { nearestText } from '../nearest_names.js'
import { valueText } from '../value_text.js'
import type { ResizeFilter } from './options.js'
import type { Size } from './sizes.js'

export type ProcessorKind = 'ViT' | 'DeiT' | 'CLIP' | 'Siglip' | 'ConvNext' | 'Detr' | 'DPT' | 'GLPN'

/** `torchvision` is the default of transformers 5, `pil` is Pillow. */
export type ProcessorBackend = 'torchvision' | 'pil'

type Field = Readonly<Record<string, unknown>>

const HALF = [0.5, 0.5, 0.5]
const IMAGENET = { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] }
const CLIP = {
  mean: [0.48145466, 0.4578275, 0.40821073],
  std: [0.26862954, 0.26130258, 0.27577711],
}

/** Fields that every class has. */
const BASE = {
  do_resize: true,
  do_rescale: true,
  do_normalize: true,
  do_center_crop: false,
  do_convert_rgb: false,
  do_pad: false,
  rescale_factor: 1 / 255,
  image_mean: HALF,
  image_std: HALF,
  default_to_square: true,
}

const DEFAULTS: Readonly<Record<ProcessorKind, Field>> = {
  ViT: { ...BASE, resample: 2, size: { height: 224, width: 224 } },
  DeiT: {
    ...BASE,
    resample: 3,
    size: { height: 256, width: 256 },
    do_center_crop: true,
    crop_size: { height: 224, width: 224 },
  },
  CLIP: {
    ...BASE,
    resample: 3,
    image_mean: CLIP.mean,
    image_std: CLIP.std,
    size: { shortest_edge: 224 },
    default_to_square: false,
    do_center_crop: true,
    crop_size: { height: 224, width: 224 },
    do_convert_rgb: true,
  },
  Siglip: {
    ...BASE,
    resample: 3,
    size: { height: 224, width: 224 },
    default_to_square: false,
    do_convert_rgb: true,
  },
  ConvNext: {
    ...BASE,
    resample: 3,
    size: { shortest_edge: 384 },
    default_to_square: false,
    crop_pct: 224 / 256,
  },
  Detr: {
    ...BASE,
    resample: 2,
    image_mean: IMAGENET.mean,
    image_std: IMAGENET.std,
    size: { shortest_edge: 800, longest_edge: 1333 },
    default_to_square: false,
    do_pad: true,
  },
  DPT: {
    ...BASE,
    resample: 3,
    size: { height: 384, width: 384 },
    keep_aspect_ratio: false,
    ensure_multiple_of: 1,
  },
  GLPN: { ...BASE, resample: 2, do_normalize: false, size_divisor: 32 },
}

/** Pillow's codes, as the field `resample` has them. */
const FILTERS: readonly ResizeFilter[] = [
  'nearest',
  'lanczos',
  'bilinear',
  'bicubic',
  'box',
  'hamming',
  'mks2013',
  'mks2021',
]
/** torchvision has the first of them. */
const TORCHVISION_FILTERS = 4

/** Fields that change pixels in a way that is not built: an error where they ask for it. */
const UNSUPPORTED = [
  'do_flip_channel_order',
  'do_reduce_labels',
  'reduce_labels',
  'do_image_splitting',
  'do_split_image',
  'do_pan_and_scan',
  'do_color_quantize',
  'do_thumbnail',
  'do_align_long_axis',
  'do_binarize',
  'do_affine_transform',
  'do_rotate',
  'crop_to_patches',
  'patch_size',
  'temporal_patch_size',
  'merge_size',
  'min_pixels',
  'max_pixels',
  'offset',
] as const

/** Fields without an effect on pixels. */
const IGNORED = [
  'image_processor_type',
  'feature_extractor_type',
  'processor_class',
  'auto_map',
  '_processor_class',
  'return_tensors',
  'data_format',
  'input_data_format',
  'device',
  'disable_grouping',
  'backend',
  'image_seq_length',
  'format',
  'do_convert_annotations',
  'model_input_names',
]

/** Fields that some class reads. */
const KNOWN = [
  ...new Set(Object.values(DEFAULTS).flatMap((fields) => Object.keys(fields))),
  'crop_size',
  'pad_size',
  'max_size',
  'pad_and_return_pixel_mask',
  'size_divisor',
]

/** The size after the resize, in the form that the config has. */
export type SizeRule =
  | ({ readonly form: 'exact' } & Size)
  | { readonly form: 'shortest'; readonly edge: number; readonly limit?: number }
  | ({ readonly form: 'within' } & Size)

export interface ProcessorConfig {
  readonly kind: ProcessorKind
  readonly backend: ProcessorBackend
  /** Undefined where the image keeps its size. */
  readonly filter: ResizeFilter | undefined
  /** Undefined for GLPN, whose size follows from `divisor`. */
  readonly size: SizeRule | undefined
  readonly crop: Size | undefined
  /** `size` undefined: up to the largest image of the batch. */
  readonly pad: { readonly size?: Size } | undefined
  readonly toRgb: boolean
  readonly rescale: number | undefined
  readonly normal: { readonly mean: readonly number[]; readonly std: readonly number[] } | undefined
  /** ConvNext. */
  readonly cropShare: number
  /** DPT. */
  readonly keepsRatio: boolean
  readonly multiple: number
  /** GLPN's size, and DPT's border. */
  readonly divisor: number | undefined
}

/**
 * @param warn - is called with a sentence for each field that is unknown
 * @throws TileworkError ERR_ARGUMENT for wrong values, ERR_UNSUPPORTED for classes and fields that are not built
 */
export function readConfig(
  config: Field,
  backend: ProcessorBackend,
  warn: (message: string) => void,
): ProcessorConfig {
  const kind = kindOf(config)
  for (const name of Object.keys(config)) checkField(name, config[name], warn)
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null))
  const fields: Field = { ...DEFAULTS[kind], ...given }
  const rescale = flagOf(fields, 'do_rescale') ? numberOf(fields, 'rescale_factor') : undefined
  const isNormal = flagOf(fields, 'do_normalize')
  if (isNormal && rescale === 0) throw wrong('rescale_factor', 0, 'not 0 where do_normalize is set')
  const hasCrop = !['Detr', 'DPT', 'GLPN'].includes(kind) && flagOf(fields, 'do_center_crop')
  const isResized = flagOf(fields, 'do_resize')
  return {
    kind,
    backend,
    filter: isResized ? filterOf(fields, backend) : undefined,
    size: isResized && kind !== 'GLPN' ? checkRule(kind, sizeOf(kind, fields)) : undefined,
    crop: hasCrop ? pairOf(fields, 'crop_size') : undefined,
    pad: padOf(kind, fields),
    toRgb: flagOf(fields, 'do_convert_rgb'),
    rescale,
    normal: isNormal
      ? { mean: numbersOf(fields, 'image_mean'), std: numbersOf(fields, 'image_std') }
      : undefined,
    cropShare: fields.crop_pct === undefined ? 1 : numberOf(fields, 'crop_pct', (share) => share > 0),
    keepsRatio: fields.keep_aspect_ratio !== undefined && flagOf(fields, 'keep_aspect_ratio'),
    multiple: fields.ensure_multiple_of === undefined ? 1 : countOf(fields, 'ensure_multiple_of'),
    divisor: fields.size_divisor === undefined ? undefined : countOf(fields, 'size_divisor'),
  }
}

function kindOf(config: Field): ProcessorKind {
  const name = config.image_processor_type ?? config.feature_extractor_type
  const kind = String(name).replace(
    /(FeatureExtractor|ImageProcessorFast|ImageProcessorPil|ImageProcessor)$/,
    '',
  )
  if (typeof name === 'string' && Object.hasOwn(DEFAULTS, kind)) return kind as ProcessorKind
  const known = Object.keys(DEFAULTS).map((each) => `${each}ImageProcessor`)
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `image_processor_type is ${valueText(name)}; built are ${known.join(', ')}.`,
  )
}

function checkField(name: string, value: unknown, warn: (message: string) => void): void {
  const isAsked = value !== null && value !== false && value !== undefined
  if ((UNSUPPORTED as readonly string[]).includes(name)) {
    if (!isAsked) return
    throw new TileworkError(
      'ERR_UNSUPPORTED',
      `the config asks for ${name}, which is not built; pixels would differ.`,
    )
  }
  if (KNOWN.includes(name) || IGNORED.includes(name)) return
  warn(`unknown field ${valueText(name)} of the image processor${nearestText(name, KNOWN)}`)
}

function wrong(name: string, value: unknown, rule: string): TileworkError {
  return new TileworkError(
    'ERR_ARGUMENT',
    `${name} of the image processor is ${valueText(value)}; it must be ${rule}.`,
  )
}

function flagOf(fields: Field, name: string): boolean {
  const value = fields[name]
  if (typeof value === 'boolean') return value
  throw wrong(name, value, 'true or false')
}

function numberOf(fields: Field, name: string, holds: (value: number) => boolean = () => true): number {
  const value = fields[name]
  if (typeof value === 'number' && Number.isFinite(value) && holds(value)) return value
  throw wrong(name, value, 'a finite number in its range')
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 1
}

function countOf(fields: Field, name: string): number {
  const value = fields[name]
  if (isCount(value)) return value
  throw wrong(name, value, 'a whole number from 1')
}

/** One number for all channels, or one per channel. */
function numbersOf(fields: Field, name: 'image_mean' | 'image_std'): readonly number[] {
  const value = fields[name]
  const list = typeof value === 'number' ? [value] : value
  const isRight = (each: unknown): boolean => Number.isFinite(each) && (name === 'image_mean' || each !== 0)
  if (Array.isArray(list) && list.length >= 1 && list.length <= 4 && list.every(isRight))
    return list as number[]
  throw wrong(name, value, `finite numbers${name === 'image_std' ? ' other than 0' : ''}, one per channel`)
}

function filterOf(fields: Field, backend: ProcessorBackend): ResizeFilter {
  const { resample } = fields
  const filter = Number.isInteger(resample) ? FILTERS[resample as number] : undefined
  if (filter === undefined) throw wrong('resample', resample, 'a whole number from 0 to 7')
  if (backend === 'pil' || (resample as number) < TORCHVISION_FILTERS) return filter
  throw new TileworkError(
    'ERR_UNSUPPORTED',
    `resample is ${resample} (${filter}), which the backend torchvision lacks; use the backend "pil".`,
  )
}

/** A number, a pair of height and width, or an object of exactly one form. */
function sizeOf(kind: ProcessorKind, fields: Field): SizeRule {
  const { size } = fields
  if (kind === 'Detr' && isCount(size)) {
    return {
      form: 'shortest',
      edge: size,
      limit: fields.max_size === undefined ? 1333 : countOf(fields, 'max_size'),
    }
  }
  if (isCount(size) && !flagOf(fields, 'default_to_square')) return { form: 'shortest', edge: size }
  const pair = pairFrom(size)
  if (pair) return { form: 'exact', ...pair }
  const entries = typeof size === 'object' && size !== null ? Object.entries(size) : []
  const numbers = Object.fromEntries(entries.filter(([, value]) => value !== null)) as Record<string, number>
  const keys = Object.keys(numbers).sort().join()
  if (Object.values(numbers).every(isCount)) {
    const { shortest_edge: edge, longest_edge: limit, max_height: height, max_width: width } = numbers
    if (keys === 'shortest_edge') return { form: 'shortest', edge: edge! }
    if (keys === 'longest_edge,shortest_edge') return { form: 'shortest', edge: edge!, limit: limit! }
    if (keys === 'max_height,max_width') return { form: 'within', height: height!, width: width! }
  }
  const found = keys === '' ? valueText(size) : `{ ${keys} }`
  throw new TileworkError(
    'ERR_ARGUMENT',
    `size of the image processor is ${found}; it must be a number, [height, width], or numbers from 1 by the names height and width, shortest_edge, shortest_edge and longest_edge, or max_height and max_width.`,
  )
}

/** What a class does with a form of size. @throws TileworkError ERR_ARGUMENT */
function checkRule(kind: ProcessorKind, rule: SizeRule): SizeRule {
  const isRight = kind === 'ConvNext' ? rule.form === 'shortest' : kind !== 'DPT' || rule.form === 'exact'
  if (isRight) return rule
  const wanted = kind === 'ConvNext' ? 'shortest_edge' : 'height and width'
  throw new TileworkError('ERR_ARGUMENT', `size of ${kind}ImageProcessor must have ${wanted}.`)
}

function pairFrom(value: unknown): Size | undefined {
  if (isCount(value)) return { width: value, height: value }
  if (Array.isArray(value)) {
    const [height, width] = value as unknown[]
    return value.length === 2 && isCount(height) && isCount(width) ? { width, height } : undefined
  }
  if (typeof value !== 'object' || value === null) return undefined
  const { height, width, ...others } = value as Field
  const isPair = Object.values(others).every((other) => other === null)
  return isPair && isCount(height) && isCount(width) ? { width, height } : undefined
}

function pairOf(fields: Field, name: 'crop_size' | 'pad_size'): Size {
  const pair = pairFrom(fields[name])
  if (pair) return pair
  throw wrong(name, fields[name], 'a number, [height, width], or height and width, from 1')
}

function padOf(kind: ProcessorKind, fields: Field): ProcessorConfig['pad'] {
  const older = kind === 'Detr' ? fields.pad_and_return_pixel_mask : undefined
  if (!flagOf(older === undefined ? fields : { do_pad: older }, 'do_pad')) return undefined
  if (kind === 'ConvNext' || kind === 'GLPN') return undefined
  if (kind === 'DPT') return fields.size_divisor === undefined ? undefined : {}
  return fields.pad_size === undefined ? {} : { size: pairOf(fields, 'pad_size') }
}

/** What of a configuration or a preset the pixels need. */
export interface PixelRules extends Pick<ProcessorConfig, 'filter' | 'toRgb' | 'pad'> {
  readonly kind?: ProcessorKind
  readonly like: 'pillow' | 'torchvision' | 'opencv'
  readonly border: number
}
