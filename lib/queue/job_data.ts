/** What a job says: which file, where to, with which options. Written by the submitter, checked by the worker. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { isUrl } from '../bytes/remote/schemes.js'
import { TileworkError } from '../errors.js'
import type { ConvertOptions } from '../pipeline/convert.js'
import { isFields } from '../pipeline/many/manifest_line.js'
import type { OpenOptions } from '../pipeline/open.js'
import type { ValueQuantization } from '../pipeline/quantize_tensors.js'
import {
  count,
  either,
  extents,
  type FieldRule,
  flag,
  integer,
  namedExtents,
  type ObjectRules,
  oneOf,
  readFields,
  selectors,
  text,
} from './job_fields.js'

/** Increased when a worker of an earlier version would do something else with the data. */
export const JOB_VERSION = 1

/** BullMQ's name of every job. */
export const JOB_NAME = 'convert'

/** Largest job in bytes of JSON: ten thousand names of tensors fit. */
export const MAX_JOB_BYTES = 256 * 1024

/** Options that travel: those that decide the bytes of the output. Settings of machines and secrets stay at the worker. */
export type JobOptions = Pick<
  ConvertOptions,
  | 'tensors'
  | 'dtype'
  | 'layout'
  | 'lower'
  | 'upper'
  | 'fromLayout'
  | 'shape'
  | 'fromLower'
  | 'fromUpper'
  | 'as'
  | 'format'
  | 'weightsOnly'
  | 'keepOldData'
  | 'quantizeTo'
  | 'countLosses'
  | 'inputShapes'
  | 'batch'
  | 'quantized'
> & { readonly open?: Pick<OpenOptions, 'format' | 'message' | 'level'> }

/** The data of a job. */
export interface JobData {
  readonly version: typeof JOB_VERSION
  /** Absolute path, or URL. */
  readonly input: string
  /** Absolute path, or URL. */
  readonly output: string
  /** Hash of the options, for the manifest of the submitter. */
  readonly settings: string
  readonly options: JobOptions
}

/** Longest name of an element type, a format or a message type. */
const MAX_NAME_LENGTH = 64
/** Longest name of a layout. */
const MAX_LAYOUT_LENGTH = 256

const name = text(MAX_NAME_LENGTH)
const layout = text(MAX_LAYOUT_LENGTH)

const QUANTIZATION: ObjectRules<ValueQuantization> = {
  fields: { dtype: name, axis: integer, blockSize: count, symmetric: flag },
  required: ['dtype'],
}

const OPEN: ObjectRules<NonNullable<JobOptions['open']>> = {
  fields: { format: name, message: name, level: oneOf('lenient', 'strict') },
  required: [],
}

/** An object whose fields have rules of their own; `readJob` reads it again to name the field. */
const object: FieldRule = { allowed: 'an object', isAllowed: isFields }

const OPTIONS: ObjectRules<JobOptions> = {
  fields: {
    tensors: selectors,
    dtype: name,
    layout,
    lower: extents,
    upper: extents,
    fromLayout: layout,
    shape: extents,
    fromLower: extents,
    fromUpper: extents,
    as: oneOf('weights'),
    format: name,
    weightsOnly: flag,
    keepOldData: flag,
    quantizeTo: object,
    countLosses: flag,
    inputShapes: namedExtents,
    batch: either(count, text(MAX_LAYOUT_LENGTH)),
    quantized: oneOf('keep', 'dequantize'),
    open: object,
  },
  required: [],
}

const DATA: ObjectRules<JobData> = {
  fields: {
    version: oneOf(JOB_VERSION),
    input: text(),
    output: text(),
    settings: text(MAX_NAME_LENGTH),
    options: object,
  },
  required: ['version', 'input', 'output', 'settings', 'options'],
}

/**
 * The data of a job as a worker may use it.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_LIMIT
 */
export function readJob(value: unknown): JobData {
  checkSize(value)
  const data = readFields(value, DATA, 'job')
  const options = readFields(data.options, OPTIONS, 'job.options')
  const { quantizeTo, open } = options
  return {
    ...data,
    options: {
      ...options,
      ...(quantizeTo && { quantizeTo: readFields(quantizeTo, QUANTIZATION, 'job.options.quantizeTo') }),
      ...(open && { open: readFields(open, OPEN, 'job.options.open') }),
    },
  }
}

function checkSize(value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
  if (bytes <= MAX_JOB_BYTES) return
  throw new TileworkError('ERR_LIMIT', `The job has ${bytes} bytes; at most ${MAX_JOB_BYTES} are taken.`)
}

/**
 * The options of a run that its jobs carry.
 *
 * @param options - those of a conversion, undefined ones left out
 * @throws TileworkError ERR_UNSUPPORTED for an option that does not travel
 */
export function jobOptions(options: object): JobOptions {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  const other = entries.find(([option]) => !Object.hasOwn(OPTIONS.fields, option))
  if (other) throw notSent(other[0])
  const { open, ...rest } = Object.fromEntries(entries) as JobOptions
  const openAs = Object.entries(open ?? {}).filter(([, value]) => value !== undefined)
  const setting = openAs.find(([option]) => !Object.hasOwn(OPEN.fields, option))
  if (setting) throw notSent(`open.${setting[0]}`)
  return openAs.length > 0 ? { ...rest, open: Object.fromEntries(openAs) } : rest
}

function notSent(option: string): TileworkError {
  const message = `The option ${option} is not sent to workers; each worker has its own settings.`
  return new TileworkError('ERR_UNSUPPORTED', message)
}

/** A path as every machine sees it that has the folder. */
export function sentPath(path: string): string {
  return isUrl(path) ? path : resolve(path)
}

/** The id of the job that writes an output: two submissions of one target are one job. */
export function jobId(output: string): string {
  return createHash('sha256').update(output).digest('base64url').slice(0, 22)
}
